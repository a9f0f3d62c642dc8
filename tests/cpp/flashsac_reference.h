// FlashSAC in double precision, written plainly from the formulas, a whole batch at a time: what
// the programs are compared with.
#pragma once

#include "fastsac_reference.h"

namespace millrace {

struct FlashSacReference : FastSacReference {
  using Rows = std::vector<Vector>;

  const Vector& at(const std::string& name) const { return parameters.at(name); }

  // By the statistics of the rows, or the running ones.
  void batch_norm(Rows& x, const std::string& name, bool is_training) const {
    for (size_t i = 0; i < x[0].size(); ++i) {
      double mean = 0, variance = 0;
      for (const Vector& row : x) mean += row[i] / x.size();
      for (const Vector& row : x) variance += (row[i] - mean) * (row[i] - mean) / x.size();
      if (!is_training) {
        mean = at(name + "/mean")[i];
        variance = at(name + "/var")[i];
      }
      for (Vector& row : x) {
        row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * at(name + "/weight")[i] +
                 at(name + "/bias")[i];
      }
    }
  }
  Rows linear(const Rows& x, const std::string& name, bool has_bias = false) const {
    const Vector& weight = at(name + "/weight");
    const Vector none(weight.size() / x[0].size(), 0.0);
    Rows y;
    for (const Vector& row : x)
      y.push_back(affine(weight, has_bias ? at(name + "/bias") : none, row));
    return y;
  }
  static void relu(Rows& x) {
    for (Vector& row : x) {
      for (double& value : row) value = std::max(0.0, value);
    }
  }

  Rows flash_network(const std::string& name, Rows x, bool is_training) const {
    batch_norm(x, name + "/embed/norm", is_training);
    Rows stream = linear(x, name + "/embed");
    for (const std::string block : {"/b0", "/b1"}) {
      Rows y = linear(stream, name + block + "/l0");
      batch_norm(y, name + block + "/l0/norm", is_training);
      relu(y);
      y = linear(y, name + block + "/l1");
      batch_norm(y, name + block + "/l1/norm", is_training);
      relu(y);
      for (size_t r = 0; r < y.size(); ++r) {
        for (size_t i = 0; i < y[r].size(); ++i) stream[r][i] += y[r][i];
      }
    }
    for (Vector& row : stream) {
      double squares = 0;
      for (const double value : row) squares += value * value / row.size();
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] *= at(name + "/norm/weight")[i] / std::sqrt(squares + 1e-6);
      }
    }
    return linear(stream, name + "/head", true);
  }

  Sample flash_sample(int r, const Vector& heads, int first_normal) const {
    const int actions = layout.action_dim;
    Sample sample{Vector(actions), 0};
    for (int i = 0; i < actions; ++i) {
      const double log_std = -10 + 6 * (1 + std::tanh(heads[actions + i]));
      const double noise =
          random_normal(random_source(seed, kStreamLearnerNoise, r, update), first_normal + i);
      const double x = heads[i] + std::exp(log_std) * noise;
      sample.action[i] = std::tanh(x);
      const double log_det = 2 * (std::log(2.0) - x - std::log1p(std::exp(-2 * x)));
      sample.log_probability += -0.5 * noise * noise - log_std - 0.5 * std::log(2 * M_PI) - log_det;
    }
    return sample;
  }

  // s, then s'.
  Rows observations() const {
    Rows all;
    for (const int column : {layout.observation(), layout.next_observation()}) {
      for (int r = 0; r < spec.batch; ++r) all.push_back(observation(r, column));
    }
    return all;
  }
  std::vector<Sample> next_samples() const {
    Rows next = observations();
    next.erase(next.begin(), next.begin() + spec.batch);
    const Rows heads = flash_network("actor", next, false);
    std::vector<Sample> samples;
    for (int r = 0; r < spec.batch; ++r) samples.push_back(flash_sample(r, heads[r], 0));
    return samples;
  }
  // (s, a), then (s', a').
  Rows critic_inputs() const {
    const std::vector<Sample> next = next_samples();
    Rows all;
    for (int r = 0; r < spec.batch; ++r) {
      all.push_back(join(critic_observation(r, layout.critic()),
                         read(r, layout.action(), layout.action_dim, mirror.action)));
    }
    for (int r = 0; r < spec.batch; ++r) {
      all.push_back(join(critic_observation(r, layout.next_critic()), next[r].action));
    }
    return all;
  }
  double expected(const Vector& p) const {
    double value = 0;
    for (int i = 0; i < spec.atoms; ++i) value += p[i] * atom(i);
    return value;
  }

  Rows flash_targets(double reward_scale) const {
    const Rows inputs = critic_inputs();
    const std::vector<Sample> next = next_samples();
    Rows logits[2] = {flash_network("target/0", inputs, true),
                      flash_network("target/1", inputs, true)};
    Rows targets;
    for (int r = 0; r < spec.batch; ++r) {
      const float* row = rows.data() + (r % spec.gathered_rows()) * layout.width();
      const double bootstrap =
          std::max(0.0, std::min(1.0, 1.0 - row[layout.done()] + row[layout.truncated()]));
      const Vector p0 = probabilities(logits[0][spec.batch + r]);
      const Vector p1 = probabilities(logits[1][spec.batch + r]);
      const Vector& p = expected(p1) < expected(p0) ? p1 : p0;
      Vector target(spec.atoms, 0.0);
      for (int i = 0; i < spec.atoms; ++i) {
        double z = reward_scale * row[layout.reward()] +
                   spec.gamma * bootstrap * (atom(i) - alpha() * next[r].log_probability);
        z = std::max<double>(spec.v_min, std::min<double>(spec.v_max, z));
        const double position = (z - spec.v_min) / (atom(1) - atom(0));
        const int lower = std::min(static_cast<int>(std::floor(position)), spec.atoms - 1);
        const int upper = std::min(lower + 1, spec.atoms - 1);
        target[lower] += p[i] * (1 - (position - lower));
        target[upper] += p[i] * (position - lower);
      }
      targets.push_back(target);
    }
    return targets;
  }

  // Of one critic: the loss is the mean of both.
  double flash_critic_loss(int critic, const Rows& targets, const Rows& inputs) const {
    double loss = 0;
    const Rows logits = flash_network("critic/" + std::to_string(critic), inputs, true);
    for (int r = 0; r < spec.batch; ++r) {
      const Vector p = probabilities(logits[r]);
      for (int i = 0; i < spec.atoms; ++i) {
        loss -= targets[r][i] * std::max(-30.0, std::log(p[i])) / spec.batch;
      }
    }
    return loss;
  }

  std::vector<Sample> samples() const {
    const Rows heads = flash_network("actor", observations(), true);
    std::vector<Sample> all;
    for (int r = 0; r < spec.batch; ++r) {
      all.push_back(flash_sample(r, heads[r], layout.action_dim));
    }
    return all;
  }
  double flash_actor_loss() const {
    const std::vector<Sample> now = samples();
    Rows inputs;
    for (int r = 0; r < spec.batch; ++r) {
      inputs.push_back(join(critic_observation(r, layout.critic()), now[r].action));
    }
    const Rows logits[2] = {flash_network("critic/0", inputs, false),
                            flash_network("critic/1", inputs, false)};
    double loss = 0;
    for (int r = 0; r < spec.batch; ++r) {
      const double value =
          std::min(expected(probabilities(logits[0][r])), expected(probabilities(logits[1][r])));
      loss += (alpha() * now[r].log_probability - value) / spec.batch;
    }
    return loss;
  }
  double flash_temperature_loss() const {
    double mean = 0;
    for (const Sample& sample : samples()) mean += sample.log_probability / spec.batch;
    return -alpha() * (mean - spec.target_entropy_ratio * layout.action_dim);
  }
};

}  // namespace millrace
