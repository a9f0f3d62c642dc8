#include "selection.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "quantile.h"
#include "status.h"

namespace millrace {

namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * share);
  return text;
}

using Field = std::string SelectionKey::*;
struct NamedField {
  const char* name;
  Field field;
};
constexpr NamedField kFields[] = {
    {"shapes", &SelectionKey::shapes},           {"program", &SelectionKey::program},
    {"layout", &SelectionKey::layout},           {"device", &SelectionKey::device},
    {"driver", &SelectionKey::driver},           {"sharing", &SelectionKey::sharing},
    {"concurrency", &SelectionKey::concurrency},
};

}  // namespace

RunTimes run_times(std::string way, const std::vector<double>& samples_us) {
  RunTimes times;
  times.way = std::move(way);
  times.rounds = samples_us.size();
  if (samples_us.empty()) return times;
  times.median_us = median(samples_us);
  times.p99_us = quantile(samples_us, 0.99);
  std::vector<double> distances;
  for (const double sample : samples_us) distances.push_back(std::abs(sample - times.median_us));
  times.deviation_us = median(distances);
  return times;
}

Selection select(const std::vector<RunTimes>& ways, size_t current) {
  MR_CHECK(current < ways.size(), "a selection is made among ways, one of which runs already");
  Selection selection;
  selection.measured = ways;
  const RunTimes& now = ways[current];
  selection.way = now.way;
  size_t least_rounds = now.rounds, best = current;
  for (size_t i = 0; i < ways.size(); ++i) {
    least_rounds = std::min(least_rounds, ways[i].rounds);
    if (ways[i].median_us < ways[best].median_us) best = i;
  }
  if (least_rounds < kLeastRounds) {
    selection.reason = "only " + std::to_string(least_rounds) + " of " +
                       std::to_string(kLeastRounds) + " rounds could be measured";
    return selection;
  }
  if (ways.size() == 1) {
    selection.reason = "there is no other way";
    return selection;
  }
  if (best == current) {
    selection.reason = "no other way is faster";
    return selection;
  }
  const double gain = 1.0 - ways[best].median_us / now.median_us;
  const double noise = kDeviationsOfAGain * std::max(now.deviation_us, ways[best].deviation_us);
  const double needed = std::max(kLeastGain, noise / now.median_us);
  const std::string against = " against " + now.way + ", " + percent(needed) + " are needed";
  if (gain > needed) {
    selection.way = ways[best].way;
    selection.reason = "it gains " + percent(gain) + against;
  } else {
    selection.reason =
        "the best other way, " + ways[best].way + ", gains only " + percent(gain) + against;
  }
  return selection;
}

std::string SelectionKey::difference(const SelectionKey& other) const {
  for (const NamedField& each : kFields) {
    if (this->*each.field == other.*each.field) continue;
    return std::string(each.name) + " '" + other.*each.field + "' instead of '" +
           this->*each.field + "'";
  }
  return "";
}

nlohmann::json to_json(const Selection& selection) {
  nlohmann::json measured = nlohmann::json::array();
  for (const RunTimes& times : selection.measured) {
    measured.push_back({{"way", times.way},
                        {"median_us", times.median_us},
                        {"p99_us", times.p99_us},
                        {"mad_us", times.deviation_us},
                        {"rounds", times.rounds}});
  }
  return {{"way", selection.way},
          {"reason", selection.reason},
          {"profile_ms", selection.profile_ms},
          {"measured", std::move(measured)}};
}

nlohmann::json to_json(const SelectionKey& key) {
  nlohmann::json json;
  for (const NamedField& each : kFields) json[each.name] = key.*each.field;
  return json;
}

Selection selection_from(const nlohmann::json& json) {
  Selection selection;
  json.at("way").get_to(selection.way);
  json.at("reason").get_to(selection.reason);
  json.at("profile_ms").get_to(selection.profile_ms);
  for (const nlohmann::json& each : json.at("measured")) {
    RunTimes times;
    each.at("way").get_to(times.way);
    each.at("median_us").get_to(times.median_us);
    each.at("p99_us").get_to(times.p99_us);
    each.at("mad_us").get_to(times.deviation_us);
    each.at("rounds").get_to(times.rounds);
    selection.measured.push_back(std::move(times));
  }
  return selection;
}

SelectionKey selection_key_from(const nlohmann::json& json) {
  SelectionKey key;
  for (const NamedField& each : kFields) json.at(each.name).get_to(key.*each.field);
  return key;
}

}  // namespace millrace
