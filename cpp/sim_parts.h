// SimParts: the environments of a session, training or playing: worker pool, physics, task and
// update step, built in that order from the configuration and freed in reverse.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "physics_mujoco.h"
#include "task.h"
#include "update.h"
#include "worker_pool.h"

namespace millrace {

struct SimParts {
  // `threads` 0 measures at start; the choice and its figures go to the manifest. A device that
  // copies sim fields or carriers pins them.
  SimParts(const nlohmann::json& config, int num_envs, int threads, uint64_t seed,
           Backend* device = nullptr);

  nlohmann::json describe() const;

  nlohmann::json thread_choice;
  std::unique_ptr<WorkerPool> pool;
  std::unique_ptr<PhysicsMujoco> physics;
  std::unique_ptr<Task> task;
  std::unique_ptr<UpdateStep> update;
};

// Where Java put the built-in robot models, from the configuration's `resources_dir`.
std::string resources_dir_of(const nlohmann::json& config);

}  // namespace millrace
