// What the task tests share: the robots' names without a model file, and a SimBackend whose
// "physics" is random numbers, a pure function of (seed, environment, tick).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "philox.h"
#include "sim_backend.h"
#include "task.h"
#include "task_g1_walk_flat.h"

namespace millrace {

inline SimModel g1_model() {
  SimModel model = {};
  model.nq = 36;
  model.nv = 35;
  model.num_actions = 29;
  model.joint_names = g1_walk_flat().sim.joint_names;
  model.default_qpos.assign(36, 0.0);
  model.default_qpos[2] = 0.754;
  model.default_qpos[3] = 1.0;
  model.default_joint_position.resize(29);
  for (size_t j = 0; j < 29; ++j) {
    model.default_joint_position[j] = 0.02 * static_cast<double>(j % 6) - 0.05;
    model.default_qpos[7 + j] = model.default_joint_position[j];
    model.joint_qpos_address.push_back(7 + static_cast<int>(j));
    model.joint_dof_address.push_back(6 + static_cast<int>(j));
  }
  model.joint_lower.assign(29, -0.8);
  model.joint_upper.assign(29, 0.8);
  return model;
}

inline SimModel cartpole_model() {
  SimModel model = {};
  model.nq = model.nv = 2;
  model.num_actions = 1;
  model.joint_names = {"slider", "hinge"};
  model.default_qpos = {0, 0};
  model.default_joint_position = {0, 0};
  model.joint_lower = {-1.8, -1e10};
  model.joint_upper = {1.8, 1e10};
  return model;
}

class RandomSim final : public SimBackend {
 public:
  RandomSim(const SimModel& model, bool legged, int num_envs, uint64_t seed)
      : model_(model), num_envs_(num_envs), seed_(seed) {
    const int joints = static_cast<int>(model.joint_names.size());
    const int dims[kSimFieldCount] = {3, 4, 3, 3, joints, joints, 3, 3, 3, 6, 8, 2, 3, 4, 3, 3, 1};
    HostBlockLayout layout;
    uint64_t offsets[kSimFieldCount];
    for (int field = 0; field < kSimFieldCount; ++field) {
      const bool used =
          legged || field == kJointPosition || field == kJointVelocity || field >= kBodyPosition;
      const int dim = used ? dims[field] : 0;
      views_[field] = {nullptr, dim, 1, dim};
      offsets[field] = layout.add(static_cast<uint64_t>(num_envs * dim) * sizeof(float));
    }
    fields_ = std::make_unique<HostBlock>(layout, nullptr);
    for (int field = 0; field < kSimFieldCount; ++field) {
      if (views_[field].dim == 0) continue;
      views_[field].data = reinterpret_cast<float*>(fields_->at(offsets[field]));
    }
    for (int env = 0; env < num_envs; ++env) randomise(env, 1u << 20, 1.0f);
  }

  SimCapabilities capabilities() const override { return {true, true, "random"}; }
  const SimModel& model() const override { return model_; }
  const FieldView* state_view() const override { return views_; }
  HostRange state_memory() const override { return fields_->range(); }
  Receipt step(const float*, uint64_t tick) override {
    for (int env = 0; env < num_envs_; ++env) randomise(env, tick, 1.0f);
    return {Operation::kStep, tick + 1, 0};
  }
  void reset(const uint8_t* mask, const double* qpos, const double*, const double* gains) override {
    for (int env = 0; env < num_envs_; ++env) {
      if (!mask[env]) continue;
      resets += 1;
      randomise(env, 1u << 21, 1.0f);
      last_gain = gains[2 * env];
      for (int i = 0; i < views_[kRootPosition].dim; ++i) {
        at(kRootPosition, env, i) = static_cast<float>(qpos[env * model_.nq + i]);
      }
      for (int i = 0; i < views_[kJointPosition].dim; ++i) {
        const int skip = views_[kRootPosition].dim ? 7 : 0;
        at(kJointPosition, env, i) = static_cast<float>(qpos[env * model_.nq + skip + i]);
      }
      at(kUnstable, env, 0) = 0;
    }
  }
  void apply_velocity_change(const uint8_t*, const float*) override {}
  uint64_t unstable_count() const override { return 0; }
  void register_state(StateRegistry&) override {}
  void state_restored() override {}

  float& at(SimField field, int env, int i) { return component(views_[field], env, i); }

  // Plausible values at size 1; larger sizes leave the plausible range. Stable and upright at 1.
  void randomise(int env, uint64_t tick, float size) {
    u32 draw = 0;
    const RandomSource source =
        random_source(seed_, kStreamExploration, static_cast<u32>(env), tick);
    for (int field = 0; field < kSimFieldCount; ++field) {
      const auto name = static_cast<SimField>(field);
      for (int i = 0; i < views_[field].dim; ++i) {
        at(name, env, i) = size * random_uniform(source, draw++, -1.0f, 1.0f);
      }
    }
    if (views_[kRootPosition].dim) {
      at(kRootPosition, env, 2) = 0.75f + 0.1f * at(kRootPosition, env, 2);
      normalise(kRootQuaternion, env, 0, 4);
      at(kProjectedGravity, env, 2) = -4.0f + at(kProjectedGravity, env, 2);
      normalise(kProjectedGravity, env, 0, 3);
      for (int foot = 0; foot < 2; ++foot) {
        normalise(kFootQuaternion, env, 4 * foot, 4);
        at(kFootPosition, env, 3 * foot + 2) *= 0.1f;
        float& contact = at(kFootContact, env, foot);
        contact = contact > 0.0f ? 1.0f : 0.0f;
      }
    }
    normalise(kBodyQuaternion, env, 0, 4);
    at(kUnstable, env, 0) = 0.0f;
  }

  int resets = 0;
  double last_gain = 0;

 private:
  void normalise(SimField field, int env, int first, int count) {
    float norm = 0;
    for (int i = 0; i < count; ++i) norm += squared(at(field, env, first + i));
    for (int i = 0; i < count; ++i) at(field, env, first + i) /= mr_sqrt(norm);
  }

  SimModel model_;
  int num_envs_;
  uint64_t seed_;
  std::unique_ptr<HostBlock> fields_;
  FieldView views_[kSimFieldCount];
};

}  // namespace millrace
