// The policy on the CPU: a private copy of the actor's parameters and its own programs, so that it
// acts while the learner changes its weights. One thread at a time; load() is the only way in and
// copies, hence a snapshot never changes under act(). PolicyPrograms is what acting computes,
// wherever it runs.
#pragma once

#include <optional>

#include "network.h"
#include "normalizer.h"
#include "policy_network.h"
#include "program.h"

namespace millrace {

// Registers the tensors of a network of one or more groups as "{name}/l0/weight" (one group) or
// "{name}/0/l0/weight", …; `suffix` is appended ("/m").
void register_network(StateRegistry& registry, const Network& network, const std::string& name,
                      const std::string& suffix, float* parameters);

// Which draws exploration takes: those of the tick, or of a tick for each row.
enum class Noise { kNone, kOfTheTick, kOfEachRow };

// Acting on up to max_rows observations at a time: the observations of the arguments' rows become
// `action`. Only records: memory comes with workspace.allocate().
struct PolicyPrograms {
  PolicyPrograms(PolicyShape shape, int max_rows);
  PolicyPrograms(const PolicyPrograms&) = delete;
  PolicyPrograms& operator=(const PolicyPrograms&) = delete;

  Program record(int rows, Noise noise) const;

  const PolicyShape shape;
  const int max_rows;
  const std::unique_ptr<PolicyNetwork> network;
  const size_t parameter_count;
  Workspace workspace;
  Operand parameters, input, heads, action, noise, no_noise;
  Operand drawn_at;  // u64 [row]; of Noise::kOfEachRow
};

class Policy {
 public:
  // Acts on up to max_rows observations at a time. Zero until load() or a restored checkpoint.
  Policy(PolicyShape shape, int max_rows);

  // Mean, scale and weights; parameter_count() floats.
  void load(const float* parameters);
  size_t parameter_count() const { return programs_.parameter_count; }

  // observations: count x observation_dim; actions: count x action_dim. Exploration draws from the
  // exploration stream with environment = row, of `tick`, or of drawn_at[row] where that is given.
  void act_exploring(const float* observations, int count, uint64_t seed, uint64_t tick,
                     float* actions, const uint64_t* drawn_at = nullptr);
  void act_deterministic(const float* observations, int count, float* actions);

  // For play: the actor's and the normaliser's tensors, under the learner's names.
  void register_state(StateRegistry& registry);
  void state_restored();
  size_t bytes() const { return programs_.workspace.bytes(); }

 private:
  struct Recorded {
    int rows;
    Program program;
  };
  void act(std::optional<Recorded>& recorded, Noise noise, const Arguments& arguments, int count,
           float* actions);

  PolicyPrograms programs_;
  std::optional<Recorded> exploring_, repeating_, deterministic_;
  Normalizer normalizer_;
};

}  // namespace millrace
