// bench train: whole ticks of a configuration, as a user runs it, in rounds: env steps and updates
// per second, and where the time goes. The shares of the update step are (update + publish) over
// physics and over the tick, all as wall time. With modes the same configuration runs with the
// update step on the host, launched eagerly on the device and as a graph there, round by round in
// turn; each mode is a session of its own, so memory for all of them is needed.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// request: {config, rounds, ticks (per round), warmup_ticks, modes? [host, eager, graph]}. Report:
// {rounds: [{…}], medians: {…}, facts}, with modes {modes: {<mode>: {rounds, medians, facts}}}.
nlohmann::json bench_train(const nlohmann::json& request);

}  // namespace millrace
