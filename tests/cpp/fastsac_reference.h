// FastSAC and plain SAC in double precision, written plainly from the formulas, one row at a time:
// what the programs are compared with. Shares nothing with cpp/ but the row layout, the random
// stream and the learner's settings.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "layout.h"
#include "learner.h"
#include "philox.h"

namespace millrace {

using Vector = std::vector<double>;
using Parameters = std::map<std::string, Vector>;  // by checkpoint name

struct FastSacReference {
  LearnerSpec spec;
  RowLayout layout;
  RowMirror mirror;
  uint64_t seed;
  uint64_t update;
  std::vector<float> rows;  // gathered rows, layout.width() apart
  Parameters parameters;
  Vector observation_mean, observation_scale, critic_mean, critic_scale;

  static Vector affine(const Vector& weight, const Vector& bias, const Vector& x) {
    Vector y = bias;
    for (size_t o = 0; o < y.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
    }
    return y;
  }

  Vector network(const std::string& name, Vector x) const {
    const auto at = [&](const std::string& tensor) -> const Vector& {
      return parameters.at(name + "/" + tensor);
    };
    for (const std::string layer : {"l0", "l1", "l2"}) {
      Vector y = affine(at(layer + "/weight"), at(layer + "/bias"), x);
      if (spec.network == NetworkBody::kPlain) {
        for (double& v : y) v = std::max(v, 0.0);
        x = y;
        continue;
      }
      double mean = 0, variance = 0;
      for (const double v : y) mean += v / y.size();
      for (const double v : y) variance += (v - mean) * (v - mean) / y.size();
      for (size_t i = 0; i < y.size(); ++i) {
        const double z =
            (y[i] - mean) / std::sqrt(variance + 1e-5) * at(layer + "/norm/weight")[i] +
            at(layer + "/norm/bias")[i];
        y[i] = z / (1 + std::exp(-z));
      }
      x = y;
    }
    return affine(at("head/weight"), at("head/bias"), x);
  }

  // Row r of the batch: the second half mirrors the first with symmetry.
  Vector read(int r, int column, int width, const MirrorColumns& map) const {
    const int gathered = spec.gathered_rows();
    const float* row = rows.data() + (r % gathered) * layout.width() + column;
    Vector x(width);
    for (int i = 0; i < width; ++i) {
      x[i] = r < gathered ? row[i] : map.sign[i] * row[map.source[i]];
    }
    return x;
  }
  Vector observation(int r, int column) const {
    Vector x = read(r, column, layout.observation_dim, mirror.observation);
    for (size_t i = 0; spec.observation_normalizer && i < x.size(); ++i) {
      x[i] = (x[i] - observation_mean[i]) * observation_scale[i];
    }
    return x;
  }
  Vector critic_observation(int r, int column) const {
    Vector x = read(r, column, layout.critic_dim, mirror.critic);
    for (size_t i = 0; spec.observation_normalizer && i < x.size(); ++i) {
      x[i] = (x[i] - critic_mean[i]) * critic_scale[i];
    }
    return x;
  }

  struct Sample {
    Vector action;
    double log_probability;
  };
  Sample act(int r, const Vector& observation, int first_normal) const {
    const int actions = layout.action_dim;
    const Vector heads = network("actor", observation);
    Sample sample{Vector(actions), 0};
    for (int i = 0; i < actions; ++i) {
      const double mean = std::max(-10.0, std::min(10.0, heads[i]));
      const double log_std = -5 + 2.5 * (std::tanh(heads[actions + i]) + 1);
      const double noise =
          random_normal(random_source(seed, kStreamLearnerNoise, r, update), first_normal + i);
      const double x = mean + std::exp(log_std) * noise;
      const double a = std::tanh(x);
      sample.action[i] = a;
      sample.log_probability += -(x - mean) * (x - mean) / (2 * std::exp(2 * log_std)) - log_std -
                                0.5 * std::log(2 * M_PI) - std::log(1 - a * a + 1e-6);
    }
    return sample;
  }

  Vector probabilities(const Vector& logits) const {
    const double top = *std::max_element(logits.begin(), logits.end());
    Vector p(logits.size());
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(logits[i] - top);
    for (double& v : p) v /= sum;
    return p;
  }
  double atom(int i) const {
    return spec.v_min + i * (double{spec.v_max} - spec.v_min) / (spec.atoms - 1);
  }
  static Vector join(Vector a, const Vector& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  double alpha() const { return std::exp(parameters.at("alpha/log")[0]); }

  bool is_scalar() const { return spec.critic == CriticKind::kScalar; }

  // The smaller of both critics' values.
  double least_value(const std::string& critics, const Vector& input) const {
    return std::min(network(critics + "/0", input)[0], network(critics + "/1", input)[0]);
  }

  // Target distributions [row][critic]; they do not depend on the online critics. Of scalar
  // critics: a vector of one value, the same for both.
  std::vector<std::vector<Vector>> targets() const {
    std::vector<std::vector<Vector>> all(spec.batch, std::vector<Vector>(2));
    for (int r = 0; r < spec.batch; ++r) {
      const float* row = rows.data() + (r % spec.gathered_rows()) * layout.width();
      const Sample next = act(r, observation(r, layout.next_observation()), 0);
      const double bootstrap =
          std::max(0.0, std::min(1.0, 1.0 - row[layout.done()] + row[layout.truncated()]));
      const Vector input = join(critic_observation(r, layout.next_critic()), next.action);
      if (is_scalar()) {
        const double value = least_value("target", input) - alpha() * next.log_probability;
        all[r][0] = all[r][1] = {row[layout.reward()] + spec.gamma * bootstrap * value};
        continue;
      }
      for (int c = 0; c < 2; ++c) {
        const Vector p = probabilities(network("target/" + std::to_string(c), input));
        Vector target(spec.atoms, 0.0);
        for (int i = 0; i < spec.atoms; ++i) {
          double z = row[layout.reward()] -
                     spec.gamma * bootstrap * alpha() * next.log_probability +
                     spec.gamma * bootstrap * atom(i);
          z = std::max<double>(spec.v_min, std::min<double>(spec.v_max, z));
          const double position = (z - spec.v_min) / (atom(1) - atom(0));
          const int lower = std::min(static_cast<int>(std::floor(position)), spec.atoms - 1);
          const int upper = std::min(lower + 1, spec.atoms - 1);
          target[lower] += p[i] * (1 - (position - lower));
          target[upper] += p[i] * (position - lower);
        }
        all[r][c] = target;
      }
    }
    return all;
  }

  double critic_loss(const std::vector<std::vector<Vector>>& targets) const {
    double loss = 0;
    for (int r = 0; r < spec.batch; ++r) {
      const Vector input = join(critic_observation(r, layout.critic()),
                                read(r, layout.action(), layout.action_dim, mirror.action));
      for (int c = 0; c < 2; ++c) {
        const Vector output = network("critic/" + std::to_string(c), input);
        if (is_scalar()) {
          loss += std::pow(output[0] - targets[r][c][0], 2) / spec.batch;
          continue;
        }
        const Vector p = probabilities(output);
        for (int i = 0; i < spec.atoms; ++i) {
          loss -= targets[r][c][i] * std::max(-30.0, std::log(p[i])) / spec.batch;
        }
      }
    }
    return loss;
  }

  double actor_loss() const {
    double loss = 0;
    for (int r = 0; r < spec.batch; ++r) {
      const Sample sample = act(r, observation(r, layout.observation()), layout.action_dim);
      const Vector input = join(critic_observation(r, layout.critic()), sample.action);
      double value = is_scalar() ? least_value("critic", input) : 0;
      for (int c = 0; c < 2 && !is_scalar(); ++c) {
        const Vector p = probabilities(network("critic/" + std::to_string(c), input));
        for (int i = 0; i < spec.atoms; ++i) value += p[i] * atom(i) / 2;
      }
      loss += (alpha() * sample.log_probability - value) / spec.batch;
    }
    return loss;
  }

  double temperature_loss() const {
    double mean = 0;
    for (int r = 0; r < spec.batch; ++r) {
      mean += act(r, observation(r, layout.next_observation()), 0).log_probability / spec.batch;
    }
    return -alpha() * (mean - spec.target_entropy_ratio * layout.action_dim);
  }
};

}  // namespace millrace
