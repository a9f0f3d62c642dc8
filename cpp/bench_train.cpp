#include "bench_train.h"

#include <algorithm>
#include <vector>

#include "quantile.h"
#include "run.h"

namespace millrace {

namespace {

constexpr const char* kMeasured[] = {
    "env_steps_per_s", "updates_per_s",  "time/tick_ms",         "time/act_ms",
    "time/physics_ms", "time/update_ms", "time/publish_ms",      "time/reset_ms",
    "time/learn_ms",   "time/replay_ms", "time/learner_wait_ms", "update_share_of_physics"};

nlohmann::json measure_round(Run& run, uint64_t ticks) {
  const nlohmann::json metrics = run.advance(ticks).at("metrics");
  nlohmann::json row;
  for (const char* name : kMeasured) {
    if (metrics.contains(name)) row[name] = metrics[name];
  }
  row["update_share_of_physics"] =
      (metrics.at("time/update_ms").get<double>() + metrics.at("time/publish_ms").get<double>()) /
      metrics.at("time/physics_ms").get<double>();
  return row;
}

}  // namespace

nlohmann::json bench_train(const nlohmann::json& request) {
  const int64_t rounds = request.value("rounds", int64_t{7});
  const int64_t ticks = request.value("ticks", int64_t{50});
  const int64_t warmup_ticks = request.value("warmup_ticks", int64_t{50});
  if (rounds < 1 || ticks < 1 || warmup_ticks < 0) {
    throw Failure(Code::kInvalid, "bench train: rounds and ticks must be positive");
  }
  Run run(request.at("config"));
  run.advance(static_cast<uint64_t>(warmup_ticks));
  nlohmann::json rows = nlohmann::json::array();
  for (int64_t round = 0; round < rounds; ++round) {
    rows.push_back(measure_round(run, static_cast<uint64_t>(ticks)));
  }
  nlohmann::json medians;
  for (const char* name : kMeasured) {
    std::vector<double> values;
    for (const nlohmann::json& row : rows) {
      if (row.contains(name)) values.push_back(row[name].get<double>());
    }
    if (!values.empty()) medians[name] = median(values);
  }
  return {{"rounds", std::move(rows)},
          {"medians", std::move(medians)},
          {"ticks_per_round", ticks},
          {"warmup_ticks", warmup_ticks},
          {"facts", run.facts()}};
}

}  // namespace millrace
