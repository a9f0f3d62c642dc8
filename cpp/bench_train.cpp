#include "bench_train.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "quantile.h"
#include "run.h"

namespace millrace {

namespace {

constexpr const char* kMeasured[] = {
    "env_steps_per_s",     "updates_per_s",  "time/tick_ms",         "time/act_ms",
    "time/physics_ms",     "time/update_ms", "time/publish_ms",      "time/reset_ms",
    "time/learn_ms",       "time/replay_ms", "time/learner_wait_ms", "update_share_of_physics",
    "update_share_of_tick"};

// A training session under one way of running the update step.
struct Mode {
  std::string name;
  std::unique_ptr<Run> run;
  nlohmann::json rounds = nlohmann::json::array();
};

nlohmann::json measure_round(Run& run, uint64_t ticks) {
  const nlohmann::json metrics = run.advance(ticks).at("metrics");
  nlohmann::json row;
  for (const char* name : kMeasured) {
    if (metrics.contains(name)) row[name] = metrics[name];
  }
  const double update =
      metrics.at("time/update_ms").get<double>() + metrics.at("time/publish_ms").get<double>();
  row["update_share_of_physics"] = update / metrics.at("time/physics_ms").get<double>();
  row["update_share_of_tick"] = update / metrics.at("time/tick_ms").get<double>();
  return row;
}

// What the mode changes in the configuration; "as_configured" nothing.
nlohmann::json configured(nlohmann::json config, const std::string& mode) {
  if (mode == "as_configured") return config;
  if (mode != "host" && mode != "eager" && mode != "graph") {
    throw Failure(Code::kInvalid,
                  "bench train: mode '" + mode + "' is not one of host, eager, graph");
  }
  config["collector"]["update"] = mode == "host" ? "host" : "device";
  config["graph"] = mode == "graph" ? "on" : "off";
  return config;
}

std::unique_ptr<Run> open_run(const nlohmann::json& config, const std::string& mode) {
  nlohmann::json wanted = configured(config, mode);
  if (mode == "as_configured") return std::make_unique<Run>(wanted);
  try {
    return std::make_unique<Run>(wanted);
  } catch (const Failure& failure) {  // of keys that the mode has set, not the configuration
    throw Failure(failure.code(), "--modes " + mode + ": " + failure.what() +
                                      "; --modes host runs on every device");
  }
}

nlohmann::json medians_of(const nlohmann::json& rounds) {
  nlohmann::json medians;
  for (const char* name : kMeasured) {
    std::vector<double> values;
    for (const nlohmann::json& row : rounds) {
      if (row.contains(name)) values.push_back(row[name].get<double>());
    }
    if (!values.empty()) medians[name] = median(values);
  }
  return medians;
}

}  // namespace

nlohmann::json bench_train(const nlohmann::json& request) {
  const int64_t rounds = request.value("rounds", int64_t{7});
  const int64_t ticks = request.value("ticks", int64_t{50});
  const int64_t warmup_ticks = request.value("warmup_ticks", int64_t{50});
  if (rounds < 1 || ticks < 1 || warmup_ticks < 0) {
    throw Failure(Code::kInvalid, "bench train: rounds and ticks must be positive");
  }
  const auto names = request.value("modes", std::vector<std::string>{"as_configured"});
  std::vector<Mode> modes;
  for (const std::string& name : names) {
    modes.push_back({name, open_run(request.at("config"), name)});
    modes.back().run->advance(static_cast<uint64_t>(warmup_ticks));
  }
  for (int64_t round = 0; round < rounds; ++round) {  // in turn, so that all see the same machine
    for (Mode& mode : modes) {
      mode.rounds.push_back(measure_round(*mode.run, static_cast<uint64_t>(ticks)));
    }
  }
  nlohmann::json report = {{"ticks_per_round", ticks}, {"warmup_ticks", warmup_ticks}};
  for (Mode& mode : modes) {
    nlohmann::json measured = {{"medians", medians_of(mode.rounds)},
                               {"rounds", std::move(mode.rounds)},
                               {"facts", mode.run->facts()}};
    if (mode.name == "as_configured") {
      report.update(measured);
    } else {
      report["modes"][mode.name] = std::move(measured);
    }
  }
  return report;
}

}  // namespace millrace
