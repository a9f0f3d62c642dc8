// How long a learner's update takes on a backend, eagerly and as a graph, and which of its ops take
// that long.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// {kind: "learner", backend, precision, config (resolved, with resources_dir), runs, launches, ops,
// without} -> {configuration…, medians: {eager_us, graph_us?, one_by_one_us?, critic_us, whole_us,
// arguments_us, tflop_per_s}, iqr, rounds, ops?, without?}. one_by_one_us is that of a graph whose
// ops wait for each other, instead of for what they need. An update is the mean of one period of
// learner.policy_frequency: that many critic steps and one actor step; critic_us and whole_us, both
// eager, are those of an update without and with the actor's. tflop_per_s counts matrix
// products alone, in the faster way. `ops` asks for the time of every op by itself, longest first,
// and how many bytes its operands are; ops of programs that no update runs are left out. `without`
// asks for [{kind, us}]: an update, as a graph where there are any, without all ops of each kind,
// and without "nothing". Where what is left makes numbers that are not finite, the optimizers'
// steps are left out, too.
nlohmann::json bench_learner(const nlohmann::json& request);

}  // namespace millrace
