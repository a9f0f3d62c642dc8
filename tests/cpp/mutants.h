// Mutants of the update step: update_body.h compiled again, with one thing frozen at the value of
// the first tick, as a capture would freeze it that takes what varies by value. Each has a source
// of its own, in a namespace of its own. `launch` is an UpdateLaunch; begin() forgets the values.
#pragma once

namespace millrace_mutants {

struct Mutant {
  void (*begin)();
  void (*run)(const void* launch);
};

extern const Mutant kFrozenRandomness;  // every draw is that of the first tick
extern const Mutant kFrozenStep;        // the episode's clock stands
extern const Mutant kFrozenCommand;     // the command's ranges do not follow the parameters
extern const Mutant kFrozenPenalty;     // nor does the penalty scale follow the curriculum

}  // namespace millrace_mutants
