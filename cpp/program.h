// Program: a backend-neutral list of ops over the carriers of one workspace, with fixed shapes.
//
// Recorded once by its owner, then executed any number of times: as a loop on the CPU, launched op
// by op or as a replayed graph on a device. Nothing in an op changes between two runs; everything
// that does (batch address, learning rates, random counter) stands in the argument block. No op
// reads the host, allocates, or branches on data outside its own kernel: a finding such as "not
// finite" is a number in a carrier that later ops read.
//
// Ops are few and coarse: a matrix product, a fused layer, a loss, an optimizer step. Matrices are
// row-major; strides and offsets count elements. A "group" is one of several networks of the same
// shape that are evaluated together (the twin critics): activations lie [row][group][column].
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "adamw_body.h"
#include "philox.h"
#include "support.h"
#include "workspace.h"

namespace millrace {

enum class LearningRate { kActor, kCritic, kAlpha };

// What varies between two runs of a program. Plain data: a device gets a copy per launch.
struct Arguments {
  const float* rows;  // the gathered batch, or the observations to act on
  u64 row_stride;     // floats
  u64 seed;
  u64 tick;  // random counter: the update index of a learner, the tick of a policy
  float actor_learning_rate;
  float critic_learning_rate;
  float alpha_learning_rate;
  float target_rate;  // tau

  MR_FN float learning_rate(LearningRate rate) const {
    return rate == LearningRate::kActor    ? actor_learning_rate
           : rate == LearningRate::kCritic ? critic_learning_rate
                                           : alpha_learning_rate;
  }
};

// target[r][i] = (x - mean[i]) * scale[i], with x = rows[r][column + i] for the first source_rows
// rows and x = sign[i] * rows[r - source_rows][column + source[i]], their mirror image, after them.
struct UnpackOp {
  int rows, source_rows, column, width;
  Operand target;
  int target_stride;
  Operand mirror_source, mirror_sign;  // i32 and f32; unused without mirrored rows
  Operand mean, scale;                 // unused without a normaliser
};

// c = op(a) op(b), `count` times at the given distances.
struct GemmOp {
  bool transpose_a, transpose_b;
  int m, n, k;
  Operand a, b, c;
  int a_stride, b_stride, c_stride;
  int count;
  uint64_t a_distance, b_distance, c_distance;
};

// y = silu(gain * normalise(linear + bias) + shift). `linear` is replaced by the normalised values.
struct LayerForwardOp {
  int rows, groups, width;
  Operand linear, bias, gain, shift;
  Operand inverse_deviation;  // [row][group]
  Operand output;
};

// `gradient` holds dL/dy on entry and dL/dlinear on return.
struct LayerBackwardOp {
  int rows, groups, width;
  Operand gradient, normalised, inverse_deviation, gain, shift;
  Operand bias_gradient, gain_gradient, shift_gradient;  // all unused: only the input's gradient
};

// values = max(0, values + bias); `width` of all groups together.
struct ReluForwardOp {
  int rows, width;
  Operand values, bias;
};

// `gradient` holds dL/doutput on entry and dL/dlinear on return.
struct ReluBackwardOp {
  int rows, width;
  Operand gradient, output;
  Operand bias_gradient;  // unused: only the input's gradient
};

// sums[i] = sum over rows of values[r][i].
struct ColumnSumOp {
  int rows, width;
  Operand values, sums;
};

// Tanh-squashed Gaussian: heads[r] = mean (A) | raw log deviation (A), before `bias`.
//   log s = -5 + 2.5 (tanh(raw) + 1), a = tanh(clamp(mean, +-10) + s e), e from `stream` with
//   environment = row and normals first_normal, first_normal + 1, ...
//   log pi = sum over dims of -e^2/2 - log s - log(2 pi)/2 - log(1 - a^2 + 1e-6)
struct SampleActionOp {
  int rows, actions;
  Operand heads, bias;
  bool deterministic;  // draws nothing: e is what `noise` holds, zero in a fresh carrier
  RandomStream stream;
  u32 first_normal;
  Operand action;
  int action_stride;
  Operand noise;            // [row][action]
  Operand log_probability;  // [row]; unused when only acting
};

// dL/dheads for L = mean(alpha log pi) + (what action_gradient is the gradient of).
struct ActionGradientOp {
  int rows, actions;
  Operand heads, bias, noise, action_gradient, log_alpha;
  Operand heads_gradient;
  Operand mean_deviation;  // scalar: mean over rows and dims of s
};

// Each group's own next distribution, moved to r - gamma b alpha log pi' + gamma b z, clamped to
// the support and split between neighbours. b = clamp(1 - done + truncated, 0, 1). A reward that is
// not finite makes its row's target NaN, so that the loss shows it.
struct ProjectTargetOp {
  int rows, source_rows, groups;
  Support support;
  int reward_column, done_column, truncated_column;
  float gamma;
  Operand logits, bias;
  Operand log_probability, log_alpha;
  Operand target;  // [row][group][atom]
};

// Cross entropy with log-probabilities clamped at -30, mean over rows, summed over groups.
struct CriticLossOp {
  int rows, groups;
  Support support;
  Operand logits, bias, target;
  Operand logits_gradient;
  Operand loss, value_mean, value_max, value_min;  // scalars
};

// L = mean(alpha log pi - mean over groups of the expected value); the gradient is the values'
// part.
struct ActorLossOp {
  int rows, groups;
  Support support;
  Operand logits, bias;
  Operand log_probability, log_alpha;
  Operand logits_gradient;
  Operand loss, entropy;  // scalars; entropy = -mean(log pi)
};

// Scalar critics, one value per group: target = r + gamma b (smallest Q' - alpha log pi').
struct ScalarTargetOp {
  int rows, source_rows, groups;
  int reward_column, done_column, truncated_column;
  float gamma;
  Operand values, bias;  // [row][group], [group]
  Operand log_probability, log_alpha;
  Operand target;  // [row]
};

// (Q - target)^2, mean over rows, summed over groups.
struct ScalarCriticLossOp {
  int rows, groups;
  Operand values, bias, target;
  Operand values_gradient;
  Operand loss, value_mean, value_max, value_min;  // scalars
};

// L = mean(alpha log pi - smallest Q); the gradient is the values' part.
struct ScalarActorLossOp {
  int rows, groups;
  Operand values, bias;
  Operand log_probability, log_alpha;
  Operand values_gradient;
  Operand loss, entropy;  // scalars; entropy = -mean(log pi)
};

// norm = |gradient|; clip = min(1, max_norm / norm) (1 when max_norm is 0); finite stays 1 only if
// it was 1 and both loss and norm are finite. `opens` starts the update's chain with finite = 1.
struct GradientNormOp {
  uint64_t count;
  Operand gradient, loss;
  float max_norm;
  bool opens;
  Operand norm, clip, finite;  // scalars
};

// One AdamW step where finite is 1, else nothing. `step` (u64) counts the steps taken, on the
// device, because only the device knows which ones were. With a target: target += tau (new -
// target).
struct AdamWOp {
  uint64_t count;
  Operand parameters, gradient, first_moment, second_moment, step;
  Operand clip, finite;
  AdamWConstants constants;
  LearningRate rate;
  Operand target;
};

// One step on log alpha for L = -alpha mean(log pi + target_entropy), where finite is 1.
struct TemperatureOp {
  int rows;
  Operand log_probability, log_alpha, first_moment, second_moment, step, finite;
  AdamWConstants constants;
  float target_entropy;
  Operand loss, alpha, gradient;  // scalars
};

// How a scalar of one update joins the totals of an interval.
enum class Fold { kSum, kMax, kMin };

// Where finite is 1: totals[i] folds scalars[i] and totals[count] += 1; else totals[count + 1]
// += 1.
struct StatisticsOp {
  std::vector<Fold> folds;
  Operand scalars, totals, finite;
};

using Op =
    std::variant<UnpackOp, GemmOp, LayerForwardOp, LayerBackwardOp, ColumnSumOp, SampleActionOp,
                 ActionGradientOp, ProjectTargetOp, CriticLossOp, ActorLossOp, GradientNormOp,
                 AdamWOp, TemperatureOp, StatisticsOp, ReluForwardOp, ReluBackwardOp,
                 ScalarTargetOp, ScalarCriticLossOp, ScalarActorLossOp>;

// Here, because a plug-in names ops, too.
inline const char* kind_of(const Op& op) {
  static constexpr const char* kNames[] = {
      "unpack",           "gemm",           "layer_forward",
      "layer_backward",   "column_sum",     "sample_action",
      "action_gradient",  "project_target", "critic_loss",
      "actor_loss",       "gradient_norm",  "adamw",
      "temperature",      "statistics",     "relu_forward",
      "relu_backward",    "scalar_target",  "scalar_critic_loss",
      "scalar_actor_loss"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == std::variant_size_v<Op>);
  return kNames[op.index()];
}

// Where an op was recorded; findings name it.
struct Site {
  const char* file;
  int line;
};

class Program {
 public:
  struct Record {
    Op op;
    Site site;
  };

  Program(std::string name, const Workspace& workspace)
      : name_(std::move(name)), workspace_(&workspace) {}

  // Throws kBug, naming the site, when an operand does not fit into its carrier.
  void record(Op op, Site site = {__builtin_FILE(), __builtin_LINE()});

  const std::string& name() const { return name_; }
  const std::vector<Record>& records() const { return records_; }
  // Multiply-adds of all matrix products, times two.
  double gemm_flops() const;

 private:
  std::string name_;
  const Workspace* workspace_;
  std::vector<Record> records_;
};

}  // namespace millrace
