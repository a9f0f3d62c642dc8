#include "sim_parts.h"

#include "motion_clip.h"
#include "thread_choice.h"

namespace millrace {

namespace {

nlohmann::json to_json(const ThreadChoice& choice) {
  nlohmann::json measured = nlohmann::json::array();
  for (const ThreadChoice::Measurement& each : choice.measured) {
    measured.push_back({{"threads", each.threads}, {"env_steps_per_s", each.env_steps_per_s}});
  }
  return {{"requested", "auto"}, {"effective", choice.threads}, {"measured", std::move(measured)}};
}

}  // namespace

std::string resources_dir_of(const nlohmann::json& config) {
  return config.at("resources_dir").get<std::string>();
}

SimParts::SimParts(const nlohmann::json& config, int num_envs, int threads, uint64_t seed,
                   Backend* device) {
  const SimSpec spec = sim_spec_of(config, resources_dir_of(config));
  if (threads == 0) {
    const ThreadChoice choice = measure_threads(spec, num_envs);
    threads = choice.threads;
    thread_choice = to_json(choice);
  } else {
    thread_choice = {{"requested", threads}, {"effective", threads}};
  }
  pool = std::make_unique<WorkerPool>(threads);
  physics = std::make_unique<PhysicsMujoco>(spec, num_envs, *pool, device);
  task = std::make_unique<Task>(make_task(config, physics->model()));
  update = std::make_unique<UpdateStep>(*task, physics->state_view(), num_envs, seed, device);
}

nlohmann::json SimParts::describe() const {
  const SimCapabilities can = physics->capabilities();
  nlohmann::json description = {{"backend", can.name},
                                {"host_owned", can.is_host_owned},
                                {"randomises_gains", can.can_randomise_gains},
                                {"mujoco", physics->model().mujoco_version},
                                {"nq", physics->model().nq},
                                {"nv", physics->model().nv},
                                {"actions", physics->model().num_actions},
                                {"unstable", physics->unstable_count()},
                                {"unstable_causes", physics->unstable_causes()},
                                {"non_finite", update->statistics().non_finite_count()},
                                {"first_bad", update->statistics().describe_first_bad()}};
  if (task->motion) description["motion"] = task->motion->describe();
  return description;
}

}  // namespace millrace
