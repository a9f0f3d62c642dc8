// What the tests of sessions share: the built-in configurations made tiny, every tensor of a
// session as bytes, and a watchdog for what must not hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "resources.h"
#include "session.h"

namespace millrace {

// java/resources/configs/*.yaml as the core gets them, with few environments and tiny networks.
// Learning starts at 20 rows: the first batch is asked for in the fifth tick, used in the sixth.
inline nlohmann::json tiny_config() {
  return {{"mode", "train"},
          {"algo", "fastsac"},
          {"profile", "auto"},
          {"seed", 1},
          {"device", "cpu"},
          {"graph", "auto"},
          {"precision", "auto"},
          {"run", {{"max_ticks", 0}, {"max_seconds", 0}}},
          {"env",
           {{"num_envs", 4},
            {"threads", 1},
            {"noise", true},
            {"events", true},
            {"model_file", nullptr}}},
          {"collector", {{"sync", true}, {"max_lead_ticks", 4}, {"update", "auto"}}},
          {"replay",
           {{"pipeline", "device_resident"},
            {"capacity_rows", 256},
            {"ingress_depth", 2},
            {"save", true}}},
          {"learner",
           {{"batch", 16},
            {"updates_per_tick", 2},
            {"learning_starts", 5},
            {"policy_frequency", 2},
            {"gamma", 0.97},
            {"tau", 0.125},
            {"network", "auto"},
            {"actor_hidden", 8},
            {"critic_hidden", 8},
            {"critic", "c51"},
            {"atoms", 11},
            {"v_min", -20.0},
            {"v_max", 20.0},
            {"actor_lr", 1e-3},
            {"critic_lr", 1e-3},
            {"alpha_lr", 1e-3},
            {"lr_decay_steps", 0},
            {"lr_final_share", 1.0},
            {"reward_scaling", "off"},
            {"noise_repeat_max", 1},
            {"weight_decay", 0.001},
            {"beta1", 0.9},
            {"beta2", 0.95},
            {"alpha_init", 0.1},
            {"target_entropy_ratio", 0.5},
            {"max_grad_norm", 0.0},
            {"symmetry", false},
            {"observation_normalizer", false},
            {"threads", 1},
            {"place", "auto"}}},
          {"log", {{"interval_ticks", 50}, {"tensorboard", true}, {"trace", false}}},
          {"checkpoint", {{"interval_ticks", 0}, {"keep", 3}}},
          {"resources_dir", resources()}};
}

inline nlohmann::json cartpole_config(const nlohmann::json& patch = nlohmann::json::object()) {
  nlohmann::json config = tiny_config();
  config["task"] = "cartpole_swingup";
  config["rewards"] = {{"upright", {{"weight", 50.0}}}};
  config["curriculum"]["penalty"] = {
      {"enabled", false},    {"start", 1.0},        {"min", 1.0},    {"max", 1.0},
      {"lower_length", 150}, {"upper_length", 400}, {"rate", 0.001}, {"window", 1000}};
  config.merge_patch(patch);
  return config;
}

inline nlohmann::json g1_config(const nlohmann::json& patch = nlohmann::json::object()) {
  nlohmann::json config = tiny_config();
  config["task"] = "g1_walk_flat";
  config["rewards"] = {{"tracking_lin_vel", {{"weight", 2.0}}},
                       {"tracking_ang_vel", {{"weight", 1.5}}},
                       {"penalty_ang_vel_xy", {{"weight", -1.0}}},
                       {"penalty_orientation", {{"weight", -10.0}}},
                       {"penalty_action_rate", {{"weight", -4.0}}},
                       {"pose", {{"weight", -0.5}}},
                       {"penalty_feet_ori", {{"weight", -20.0}}},
                       {"feet_phase", {{"weight", 5.0}}},
                       {"alive", {{"weight", 10.0}}}};
  config["curriculum"]["penalty"] = {
      {"enabled", true},     {"start", 0.5},        {"min", 0.5},    {"max", 1.0},
      {"lower_length", 150}, {"upper_length", 750}, {"rate", 0.001}, {"window", 1000}};
  config["learner"]["symmetry"] = true;
  config.merge_patch(patch);
  return config;
}

// With everything that FlashSAC's settings keep from tick to tick.
inline nlohmann::json flashsac(nlohmann::json config) {
  config["algo"] = "flashsac";
  config["learner"].update({{"reward_scaling", "episode"},
                            {"noise_repeat_max", 16},
                            {"lr_decay_steps", 30},
                            {"lr_final_share", 0.5}});
  return config;
}

inline nlohmann::json motion_config(const nlohmann::json& patch = nlohmann::json::object()) {
  nlohmann::json config = tiny_config();
  config["task"] = "g1_motion_tracking";
  config["env"]["motion_file"] = nullptr;
  config["env"]["motion_start"] = "adaptive";
  config["learner"]["gamma"] = 0.99;
  config["learner"]["max_grad_norm"] = 10.0;
  config.merge_patch(patch);
  return config;
}

// What a checkpoint holds, by name.
using Tensors = std::map<std::string, std::string>;

inline Tensors tensors_of(const Session& session) {
  Tensors tensors;
  for (const StateTensor& tensor : session.registry().tensors()) {
    std::string& bytes = tensors[tensor.name];
    bytes.resize(tensor.bytes());
    tensor.read(0, bytes.data(), bytes.size());
  }
  return tensors;
}

inline StateTensor tensor_named(const Session& session, const std::string& name) {
  for (const StateTensor& tensor : session.registry().tensors()) {
    if (tensor.name == name) return tensor;
  }
  throw Failure(Code::kBug, "no tensor is called " + name);
}

// Restores what a checkpoint with or without the replay would.
inline void restore(Session& session, const Tensors& tensors, bool with_replay) {
  for (const StateTensor& tensor : session.registry().tensors()) {
    if (tensor.is_replay && !with_replay) continue;
    const std::string& bytes = tensors.at(tensor.name);
    MR_CHECK(bytes.size() == tensor.bytes(), tensor.name + " has another size");
    tensor.write(0, bytes.data(), bytes.size());
  }
  session.restored(with_replay);
}

// Names of the tensors that are not the same, byte for byte.
inline std::vector<std::string> differences(const Tensors& a, const Tensors& b) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second != bytes) names.push_back(name);
  }
  for (const auto& item : b) {
    if (a.count(item.first) == 0) names.push_back(item.first);
  }
  return names;
}

using Names = std::vector<std::string>;

// The metrics that must be equal in equal runs.
inline nlohmann::json without_times(const nlohmann::json& metrics) {
  const auto ends_with = [](const std::string& text, const std::string& end) {
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
  };
  nlohmann::json kept = nlohmann::json::object();
  for (const auto& [name, value] : metrics.items()) {
    if (!ends_with(name, "_s") && !ends_with(name, "_ms")) kept[name] = value;
  }
  return kept;
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Ends the process when it lives longer than `seconds`: a deadlock fails instead of hanging.
class Watchdog {
 public:
  explicit Watchdog(int seconds) {
    thread_ = std::thread([this, seconds] {
      std::unique_lock<std::mutex> lock(mutex_);
      if (changed_.wait_for(lock, std::chrono::seconds(seconds), [this] { return is_done_; })) {
        return;
      }
      std::fprintf(stderr, "watchdog: nothing ended within %d s\n", seconds);
      std::abort();
    });
  }
  ~Watchdog() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace millrace
