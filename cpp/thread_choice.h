// ThreadChoice: how many workers step the physics when the configuration says `auto`. Measured
// once, before the run's own pool exists; the numbers go into the manifest. Results of a run never
// depend on the choice (physics_mujoco.h).
#pragma once

#include <vector>

#include "sim_backend.h"

namespace millrace {

struct ThreadChoice {
  struct Measurement {
    int threads;
    double env_steps_per_s;
  };
  int threads;
  std::vector<Measurement> measured;
};

// What is worth trying, ascending: the physical cores and the hardware threads that this process
// may run on, and the whole processors of its control group's quota if that is less.
std::vector<int> thread_candidates();

// Steps the task's model with every candidate for a share of half a second and takes the fastest.
ThreadChoice measure_threads(const SimSpec& spec, int num_envs);

}  // namespace millrace
