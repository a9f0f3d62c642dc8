// A small learner problem that the learner's tests share: settings, random rows, named tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "learner_fastsac.h"
#include "philox.h"

namespace millrace {

inline LearnerSpec small_spec() {
  LearnerSpec spec{};
  spec.batch = 16;
  spec.updates_per_tick = 1;
  spec.learning_starts = 1;
  spec.policy_frequency = 1;
  spec.gamma = 0.97f;
  spec.tau = 0.125f;
  spec.actor_hidden = 16;
  spec.critic_hidden = 32;
  spec.atoms = 11;
  spec.v_min = -20;
  spec.v_max = 20;
  spec.actor_lr = spec.critic_lr = spec.alpha_lr = 3e-4f;
  spec.weight_decay = 0.001f;
  spec.beta1 = 0.9f;
  spec.beta2 = 0.95f;
  spec.alpha_init = 0.01f;
  spec.lr_final_share = 1.0f;
  spec.noise_repeat_max = 1;
  spec.threads = 1;
  return spec;
}

inline RowLayout small_layout() { return {5, 3, 7}; }

// Reverses each vector and flips every second sign: an involution because widths are odd.
inline RowMirror small_mirror() {
  const auto reversed = [](int width) {
    MirrorColumns map;
    for (int i = 0; i < width; ++i) {
      map.source.push_back(width - 1 - i);
      map.sign.push_back(i % 2 == 0 ? 1.0f : -1.0f);
    }
    return map;
  };
  const RowLayout layout = small_layout();
  return {reversed(layout.observation_dim), reversed(layout.critic_dim),
          reversed(layout.action_dim)};
}

// Row r: every fourth done, every eighth of a time limit alone; actions in (-1, 1).
inline std::vector<float> random_rows(const RowLayout& layout, int count, uint64_t seed) {
  std::vector<float> rows(static_cast<size_t>(count) * layout.width());
  for (int r = 0; r < count; ++r) {
    const RandomSource source = random_source(seed, kStreamEvent, r, 0);
    float* row = rows.data() + static_cast<size_t>(r) * layout.width();
    for (int i = 0; i < layout.width(); ++i) row[i] = random_normal(source, i);
    for (int i = 0; i < layout.action_dim; ++i) {
      row[layout.action() + i] = mr_tanh(row[layout.action() + i]);
    }
    row[layout.reward()] *= 3.0f;
    row[layout.done()] = r % 4 == 3 ? 1.0f : 0.0f;
    row[layout.truncated()] = r % 8 == 7 ? 1.0f : 0.0f;
  }
  return rows;
}

inline std::map<std::string, StateTensor> tensors_of(Learner& learner) {
  StateRegistry registry;
  learner.register_state(registry);
  std::map<std::string, StateTensor> tensors;
  for (const StateTensor& tensor : registry.tensors()) tensors[tensor.name] = tensor;
  return tensors;
}

inline bool is_network_tensor(const std::string& name) {
  return name.rfind("actor/", 0) == 0 || name.rfind("critic/", 0) == 0 ||
         name.rfind("target/", 0) == 0;
}

// Moves every network parameter off its initial value; gains and variances stay near one.
inline void randomise_networks(Learner& learner, uint64_t seed) {
  u32 number = 0;
  for (auto& [name, tensor] : tensors_of(learner)) {
    if (!is_network_tensor(name)) continue;
    std::vector<float> values(tensor.bytes() / sizeof(float));
    const RandomSource source = random_source(seed, kStreamReset, ++number, 0);
    const bool is_gain = name.find("norm/weight") != std::string::npos;
    const bool is_weight = tensor.shape.size() == 2;
    const bool is_variance = name.substr(name.size() - 4) == "/var";
    const float scale = is_weight ? 1.0f / mr_sqrt(static_cast<float>(tensor.shape[1])) : 0.3f;
    for (size_t i = 0; i < values.size(); ++i) {
      const float drawn = scale * random_normal(source, static_cast<u32>(i));
      values[i] = is_variance ? mr_exp(drawn) : (is_gain ? 1.0f : 0.0f) + drawn;
    }
    tensor.write(0, values.data(), tensor.bytes());
  }
}

// What a checkpoint would carry from one to the other; rows of either may be filled up.
inline void copy(const StateTensor& from, const StateTensor& to) {
  std::vector<char> bytes(from.bytes());
  from.read(0, bytes.data(), bytes.size());
  to.write(0, bytes.data(), bytes.size());
}

inline std::vector<float> floats_of(const StateTensor& tensor) {
  std::vector<float> values(tensor.bytes() / sizeof(float));
  tensor.read(0, values.data(), tensor.bytes());
  return values;
}

}  // namespace millrace
