// What the physics tests share: the specs of the built-in robots and random states of the G1.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "resources.h"
#include "sim_backend.h"

namespace millrace {

inline SimSpec g1_spec(int substeps = 3) {
  SimSpec spec = {};
  spec.model_path = resources() + "/models/g1.xml";
  spec.substeps = substeps;
  spec.tick_seconds = 0.02 * substeps / 3;
  spec.action_scale = 1.0;
  spec.is_legged = true;
  spec.torso_body = "torso_link";
  spec.pelvis_imu_site = "imu_in_pelvis";
  spec.torso_imu_site = "imu_in_torso";
  spec.foot_sites = {"left_foot", "right_foot"};
  spec.body_names = {"pelvis", "left_knee_link", "torso_link", "right_wrist_yaw_link"};
  return spec;
}

inline SimSpec cartpole_spec() {
  SimSpec spec = {};
  spec.model_path = resources() + "/models/cartpole.xml";
  spec.substeps = 2;
  spec.tick_seconds = 0.02;
  spec.action_scale = 1.0;
  return spec;
}

class RandomState {
 public:
  explicit RandomState(unsigned seed) : generator_(seed) {}

  double uniform(double half_width) {
    return std::uniform_real_distribution<double>(-half_width, half_width)(generator_);
  }
  // Near the default pose, turned and moving.
  std::vector<double> qpos(const SimModel& model) {
    std::vector<double> qpos = model.default_qpos;
    double norm = 0.0;
    for (int i = 0; i < 2; ++i) qpos[static_cast<size_t>(i)] += uniform(0.5);
    qpos[2] += uniform(0.05);
    const double quaternion[4] = {1.0, uniform(0.2), uniform(0.2), uniform(1.0)};
    for (double q : quaternion) norm += q * q;
    for (int i = 0; i < 4; ++i) qpos[static_cast<size_t>(3 + i)] = quaternion[i] / std::sqrt(norm);
    for (size_t i = 7; i < qpos.size(); ++i) qpos[i] += uniform(0.1);
    return qpos;
  }
  std::vector<double> qvel(const SimModel& model) {
    std::vector<double> qvel(static_cast<size_t>(model.nv));
    for (double& v : qvel) v = uniform(0.5);
    return qvel;
  }
  std::vector<float> actions(const SimModel& model, float half_width) {
    std::vector<float> actions(static_cast<size_t>(model.num_actions));
    for (float& a : actions) a = static_cast<float>(uniform(half_width));
    return actions;
  }

 private:
  std::mt19937 generator_;
};

}  // namespace millrace
