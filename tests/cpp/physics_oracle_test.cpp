// Our half of the comparison with MuJoCo's official WebAssembly build (tests/oracle): trajectories
// of 100 physics steps from 3 seeds, recorded as a test property. tools/show_physics_oracle reads
// them from gtest's JSON report.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "physics_fixture.h"
#include "physics_mujoco.h"

namespace millrace {
namespace {

constexpr int kSteps = 100, kSeeds = 3;

TEST(PhysicsOracle, RecordsTrajectories) {
  WorkerPool pool(2);
  PhysicsMujoco physics(g1_spec(1), kSeeds, pool);
  const SimModel& model = physics.model();
  nlohmann::json trajectories = nlohmann::json::array();
  std::vector<double> qpos, qvel, gains;
  std::vector<float> actions;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    RandomState random(seed);
    const std::vector<double> start_qpos = random.qpos(model), start_qvel = random.qvel(model);
    const std::vector<float> action = random.actions(model, 0.1f);
    std::vector<double> controls;
    for (size_t i = 0; i < action.size(); ++i) {
      controls.push_back(model.default_joint_position[i] + static_cast<double>(action[i]));
    }
    trajectories.push_back({{"seed", seed},
                            {"qpos0", start_qpos},
                            {"qvel0", start_qvel},
                            {"ctrl", controls},
                            {"qpos", nlohmann::json::array()},
                            {"qvel", nlohmann::json::array()}});
    qpos.insert(qpos.end(), start_qpos.begin(), start_qpos.end());
    qvel.insert(qvel.end(), start_qvel.begin(), start_qvel.end());
    actions.insert(actions.end(), action.begin(), action.end());
    gains.insert(gains.end(), {1.0, 1.0});
  }
  const std::vector<uint8_t> everyone(kSeeds, 1);
  physics.reset(everyone.data(), qpos.data(), qvel.data(), gains.data());
  for (int step = 0; step < kSteps; ++step) {
    physics.step(actions.data(), static_cast<uint64_t>(step));
    for (int env = 0; env < kSeeds; ++env) {
      trajectories[static_cast<size_t>(env)]["qpos"].push_back(
          std::vector<double>(physics.qpos(env), physics.qpos(env) + model.nq));
      trajectories[static_cast<size_t>(env)]["qvel"].push_back(
          std::vector<double>(physics.qvel(env), physics.qvel(env) + model.nv));
    }
  }
  EXPECT_EQ(physics.unstable_count(), 0u);
  RecordProperty("mujoco", model.mujoco_version);
  RecordProperty("trajectories", trajectories.dump());
}

}  // namespace
}  // namespace millrace
