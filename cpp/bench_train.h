// bench train: whole ticks of a configuration, as a user runs it, in rounds: env steps and updates
// per second, and where the time goes. The share of the update step is (update + publish) /
// physics, both as the collector's wall time.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// request: {config, rounds, ticks (per round), warmup_ticks}. Report: {rounds: [{…}], medians:
// {…}}.
nlohmann::json bench_train(const nlohmann::json& request);

}  // namespace millrace
