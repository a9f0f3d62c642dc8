// Certification: what every built-in term, and expressions like those that users write, must do in
// the update step. One table has a row for each; certify() says what a term fails.
//
// The rows run on a made-up robot with every field there is, in six environments for sixteen ticks,
// in which seed, penalty scale and parameters change, one environment becomes unstable and another
// gets an action that is not finite.
#pragma once

#include <string>
#include <vector>

#include "fake_cuda.h"
#include "term_table.h"

namespace millrace {

enum class Draws {
  kNever,
  kInUpdate,  // when its noise, range or interval is on
  kAtReset
};

struct TermRow {
  TermKind kind;
  std::string name;
  Draws draws = Draws::kNever;
  std::string expression = {};     // a reward of a configuration
  bool steers_to_heading = false;  // of the command `velocity`
};

const std::vector<TermRow>& certification_table();

// What the term fails on a backend with graphs; empty if it is certified:
//   host      eager launches and a program of replays and eager launches give the host's bits
//   team      so do several lanes
//   draws     seed and noise matter to what draws, and to nothing else
//   vacuous   the rollout shows the term at work
std::vector<std::string> certify(const TermRow& row, const BackendApi& api);

// The part of it on bits against the host. `replayed`: another kernel for the graphs of fake_cuda,
// to see it fail.
std::vector<std::string> certify_bits(const TermRow& row, const BackendApi& api,
                                      FakeCuda::Kernel replayed = nullptr);

}  // namespace millrace
