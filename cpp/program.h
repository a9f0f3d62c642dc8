// Program: a backend-neutral list of ops over the carriers of one workspace, with fixed shapes.
//
// Recorded once by its owner, then executed any number of times: as a loop on the CPU, launched op
// by op or as a replayed graph on a device. Nothing in an op changes between two runs; everything
// that does (batch address, learning rates, random counter) stands in the argument block. No op
// reads the host, allocates, or branches on data outside its own kernel: a finding such as "not
// finite" is a number in a carrier that later ops read.
//
// Blocks of users are not always like that. The general ops (pointwise, copy_in, host_function) may
// take numbers and memory of the host (host_inputs.h), and any op may be recorded as one that runs
// on the host. op_facts states what of it no graph can hold; program_transform rewrites it.
//
// Ops are few and coarse: a matrix product, a fused layer, a loss, an optimizer step. Matrices are
// row-major; strides and offsets count elements. A "group" is one of several networks of the same
// shape that are evaluated together (the twin critics): activations lie [row][group][column].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "action_density.h"
#include "adamw_body.h"
#include "arguments.h"
#include "host_inputs.h"
#include "philox.h"
#include "pointwise_body.h"
#include "program_parts.h"
#include "support.h"
#include "workspace.h"

namespace millrace {

// Columns of the batch's rows, brought to where a network reads them:
//   target[r][i] = (x - mean[i]) * scale[i], with x = rows[r][column + i] for the first source_rows
// rows and x = sign[i] * rows[r - source_rows][column + source[i]], their mirror image, after them.
struct UnpackPart {
  int column, width;
  Operand target;
  int target_stride;
  Operand mirror_source, mirror_sign;  // i32 and f32; unused without mirrored rows
  Operand mean, scale;                 // unused without a normaliser
};

// All parts that a program needs, in one op: each of them moves little, so that most of its time on
// a device would be its start.
struct UnpackOp {
  int rows, source_rows;
  // 1 to kMaxUnpackParts, each with columns of its own. Their targets are all activations or none
  // is, since a device stores those alike.
  std::vector<UnpackPart> parts;
};

// c = op(a) op(b), or c += where it accumulates; `count` times at the given distances. A layer's
// bias and ReLU are part of its product: devices have them for next to nothing there.
struct GemmOp {
  bool transpose_a, transpose_b;
  int m, n, k;
  Operand a, b, c;
  int a_stride, b_stride, c_stride;
  int count;
  uint64_t a_distance, b_distance, c_distance;
  bool accumulates;
  Operand bias;   // [product][n], added to every row of c; unused: none, as where it accumulates
  bool has_relu;  // c = max(0, c), after the bias; what is not a number stays one
};

// y = silu(gain * (linear + bias - mean) * inverse_deviation + shift), mean and deviation those of
// each row of each group. The output may take the place of the linear values.
struct LayerForwardOp {
  int rows, groups, width;
  Operand linear, bias, gain, shift;
  Operand mean, inverse_deviation;  // [row][group]
  Operand output;
};

// A layer and the product whose result its linear values are: one op, because a device that
// computes both at once need not read those values again. Where the output takes their place,
// nobody gets to see them.
struct DenseForwardOp {
  GemmOp product;  // its c: layer.linear
  LayerForwardOp layer;
};

// `gradient` holds dL/dy on entry and dL/dlinear on return.
struct LayerBackwardOp {
  int rows, groups, width;
  Operand gradient, linear, mean, inverse_deviation, bias, gain, shift;
  Operand bias_gradient, gain_gradient, shift_gradient;  // all unused: only the input's gradient
};

// `gradient` holds dL/doutput on entry and dL/dlinear on return.
struct ReluBackwardOp {
  int rows, width;
  Operand gradient, output;
};

// sums[i] = sum over rows of values[r][i].
struct ColumnSumOp {
  int rows, width;
  Operand values, sums;
};

// A batch normalisation as both its passes see it: every column over all rows.
//   x[r][g] = input + r * input_stride + g * input_distance; at distance 0 all groups read the same
//   y = max(0, z) or z, z = gain (x - mean) / sqrt(variance + 1e-5) + shift
struct BatchNorm {
  int rows, groups, width;
  Operand input;
  int input_stride;
  uint64_t input_distance;
  Operand affine;          // [group][gain, shift][column]
  Operand mean, variance;  // [group][column]
  bool is_training;        // they are those of the rows, left by the forward pass; else given
  bool has_relu;
};

// output[row][group][column] = y + residual.
struct BatchNormForwardOp {
  BatchNorm norm;
  Operand residual;  // as the output; unused: none
  Operand output;
};

// `gradient` is dL/dy, [row][group][column]. The input's gradient may take its place; where all
// groups read the same input, it is [row][column], their sum.
struct BatchNormBackwardOp {
  BatchNorm norm;
  Operand gradient;
  Operand input_gradient;   // unused: only the parameters'
  Operand affine_gradient;  // as the affine; unused: only the input's
};

// Where finite is 1: running statistics, `count` means and then as many variances, move by `share`
// towards those of a batch; `correction` makes a batch's variance that of what it is drawn from.
struct RunningStatisticsOp {
  uint64_t count;
  Operand batch, running, finite;
  float share, correction;
};

// output = gain * input / sqrt(mean of the row's squares + 1e-6).
struct RmsNormForwardOp {
  int rows, groups, width;
  Operand input, gain;
  Operand inverse_rms;  // [row][group]
  Operand output;
};

struct RmsNormBackwardOp {
  int rows, groups, width;
  Operand gradient, input, inverse_rms, gain;
  Operand input_gradient;
  Operand gain_gradient;  // unused: only the input's gradient
};

// Tanh-squashed Gaussian: heads[r] = mean (A) | raw log deviation (A), before `bias`; rows of heads
// lie heads_stride apart.
//   a = tanh(clamp(mean) + s e) as `density` says, e from `stream` with environment = row and
//   normals first_normal, first_normal + 1, ...
//   log pi = sum over dims of -e^2/2 - log s - log(2 pi)/2 - log(1 - a^2)
struct SampleActionOp {
  int rows, actions, heads_stride;
  Operand heads, bias;
  ActionDensity density = kFastSacDensity;
  bool deterministic;  // draws nothing: e is what `noise` holds, zero in a fresh carrier
  RandomStream stream;
  u32 first_normal;
  Operand drawn_at;  // u64 [row]: the tick whose draw a row takes; unused: the arguments'
  Operand action;
  int action_stride;
  Operand noise;            // [row][action]
  Operand log_probability;  // [row]; unused when only acting
};

// dL/dheads for L = mean(alpha log pi) + (what action_gradient is the gradient of).
struct ActionGradientOp {
  int rows, actions, heads_stride;
  ActionDensity density = kFastSacDensity;
  Operand heads, bias, noise, action_gradient, log_alpha;
  int action_gradient_stride;
  Operand heads_gradient;  // rows heads_stride apart, too
};

// Mean over rows and dims of s.
struct MeanDeviationOp {
  int rows, actions, heads_stride;
  ActionDensity density = kFastSacDensity;
  Operand heads, bias;
  Operand mean_deviation;  // scalar
};

// Of the three ops on distributions below: logits, targets and gradients lie [row][group][atom]
// with value_stride from group to group, as does the bias [group][atom].

// Each group's own next distribution, moved to r - gamma b alpha log pi' + gamma b z, clamped to
// the support and split between neighbours; with takes_smallest, every group's target is that of
// the one with the smallest expected value. r is scaled, b = clamp(1 - done + truncated, 0, 1). A
// reward that is not finite makes its row's target NaN, so that the loss shows it.
struct ProjectTargetOp {
  int rows, source_rows, groups;
  Support support;
  int value_stride;
  int reward_column, done_column, truncated_column;
  float gamma;
  Operand logits, bias;
  Operand log_probability, log_alpha;
  Operand target;
  bool takes_smallest;
};

// Cross entropy with log-probabilities clamped at -30, mean over rows, summed over groups or their
// mean.
struct CriticLossOp {
  int rows, groups;
  Support support;
  int value_stride;
  Operand logits, bias, target;
  Operand logits_gradient;
  Operand loss, value_mean, value_max, value_min;  // scalars
  bool is_mean_over_groups;
};

// L = mean(alpha log pi - V), V the mean over groups of the expected value or the smallest of them;
// the gradient is the values' part.
struct ActorLossOp {
  int rows, groups;
  Support support;
  int value_stride;
  Operand logits, bias;
  Operand log_probability, log_alpha;
  Operand logits_gradient;
  Operand loss, entropy;  // scalars; entropy = -mean(log pi)
  bool takes_smallest;
};

// The last layer of scalar critics, which have one value per group:
//   value[r][g] = hidden[r][g] . weight[g] + bias[g]
// It is part of the ops below that need the values first, as is the way back through it: a product
// of one column would take as long as one of many.
struct ScalarHead {
  int rows, groups, width;
  Operand hidden;  // [row][group][column]
  Operand weight, bias;
  uint64_t weight_distance, bias_distance;  // from group to group
};

// dL/dhidden[r][g] = dL/dvalue[r][g] weight[g], 0 where the hidden layer is a ReLU that gave none.
struct ScalarHeadGradient {
  Operand hidden;  // as the hidden layer
  bool is_relu;
};

// target = r + gamma b (smallest Q' - alpha log pi'), r and b as ProjectTargetOp has them.
struct ScalarTargetOp {
  ScalarHead head;
  int source_rows;
  int reward_column, done_column, truncated_column;
  float gamma;
  Operand log_probability, log_alpha;
  Operand target;  // [row]
};

// The way back from L = (Q - target)^2, mean over rows, summed over groups.
struct ScalarCriticGradientOp {
  ScalarHead head;
  Operand target;
  Operand values;           // Q, [row][group]
  Operand values_gradient;  // [row][group], bias_distance from group to group
  ScalarHeadGradient gradient;
};

// That loss itself, of the values that the way back has left.
struct ScalarCriticLossOp {
  int rows, groups;
  Operand values, target;
  Operand loss, value_mean, value_max, value_min;  // scalars
};

// The way back from L = mean(alpha log pi - smallest Q), the values' part.
struct ScalarActorGradientOp {
  ScalarHead head;
  Operand least_values;  // smallest Q, [row]
  ScalarHeadGradient gradient;
};

// That loss itself, of the values that the way back has left.
struct ScalarActorLossOp {
  int rows;
  Operand least_values, log_probability, log_alpha;
  Operand loss, entropy;  // scalars; entropy = -mean(log pi)
};

// norm = |gradient|; clip = min(1, max_norm / norm) (1 when max_norm is 0); finite stays 1 only if
// it was 1 and both loss and norm are finite. `opens` starts the update's chain with finite = 1.
// Then, where finite is 1, else nothing: one AdamW step with the clipped gradient; the rows of
// every block are scaled to their length; with a target, target += tau (new - target). `step` (u64)
// counts the steps taken, on the device, because only the device knows which ones were.
struct AdamWOp {
  uint64_t count;
  Operand parameters, gradient, first_moment, second_moment, step;
  Operand loss;
  float max_norm;
  bool opens;
  Operand norm, clip, finite;  // scalars
  AdamWConstants constants;
  LearningRate rate;
  std::vector<RowBlock> rows;  // all parameters, one block behind the other; or none
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

// Where finite is 1: totals[i] folds scalars[i] and totals[count] += 1; else totals[count + 1]
// += 1.
struct StatisticsOp {
  std::vector<Fold> folds;
  Operand scalars, totals, finite;
};

// A number that an op takes.
struct ScalarSource {
  enum class From {
    kConstant,
    kHost,    // number `number` of the run's host scalars, passed by value
    kBlock,   // the same, read from the argument block by the kernel
    kCarrier  // at `place`
  };
  From from = From::kConstant;
  float constant = 0;
  int number = 0;
  Operand place = {};
};

// y[i] = f(a[i], b[i], s) (pointwise_body.h). Where they are the same place, y may replace a or b.
struct PointwiseOp {
  Pointwise function;
  uint64_t count;
  Operand a, b, y;  // b: unused by functions of one
  ScalarSource scalar;
};

// target[i] = standard normal i of (seed, stream, environment, tick).
struct RandomFillOp {
  uint64_t count;
  RandomStream stream;
  u32 environment;
  Operand target;
};

// target = the run's host buffer of that number.
struct CopyInOp {
  int buffer;
  uint64_t count;
  Operand target;
};

// A function of the host, which no device has a version of. It writes all of its target and looks
// at nothing but its source. Programs are equal if the names of their functions are.
struct HostFunctionOp {
  using Function = void (*)(const float* source, uint64_t source_count, float* target,
                            uint64_t target_count);
  const char* name;
  Function function;
  Operand source, target;
  uint64_t source_count, target_count;
};

using Op =
    std::variant<UnpackOp, GemmOp, DenseForwardOp, LayerBackwardOp, ColumnSumOp, SampleActionOp,
                 ActionGradientOp, MeanDeviationOp, ProjectTargetOp, CriticLossOp, ActorLossOp,
                 AdamWOp, TemperatureOp, StatisticsOp, BatchNormForwardOp, BatchNormBackwardOp,
                 RunningStatisticsOp, RmsNormForwardOp, RmsNormBackwardOp, ReluBackwardOp,
                 ScalarTargetOp, ScalarCriticGradientOp, ScalarCriticLossOp, ScalarActorGradientOp,
                 ScalarActorLossOp, PointwiseOp, RandomFillOp, CopyInOp, HostFunctionOp>;

// The op's matrix product; null: it has none.
const GemmOp* product_of(const Op& op);

// Here, because a plug-in names ops, too.
inline const char* kind_of(const Op& op) {
  static constexpr const char* kNames[] = {"unpack",
                                           "gemm",
                                           "dense_forward",
                                           "layer_backward",
                                           "column_sum",
                                           "sample_action",
                                           "action_gradient",
                                           "mean_deviation",
                                           "project_target",
                                           "critic_loss",
                                           "actor_loss",
                                           "adamw",
                                           "temperature",
                                           "statistics",
                                           "batch_norm_forward",
                                           "batch_norm_backward",
                                           "running_statistics",
                                           "rms_norm_forward",
                                           "rms_norm_backward",
                                           "relu_backward",
                                           "scalar_target",
                                           "scalar_critic_gradient",
                                           "scalar_critic_loss",
                                           "scalar_actor_gradient",
                                           "scalar_actor_loss",
                                           "pointwise",
                                           "random_fill",
                                           "copy_in",
                                           "host_function"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == std::variant_size_v<Op>);
  return kNames[op.index()];
}

// Where an op was recorded; findings name it.
struct Site {
  const char* file;
  int line;
};

// What an op does to a range of a carrier; kAny: one or both.
enum class Access { kAny, kRead, kWrite };

struct Extent {
  Operand operand;
  uint64_t count;
  Access access = Access::kAny;
};

// Every range that the op touches, operands that it does not use left out.
std::vector<Extent> extents_of(const Op& op);

class Program {
 public:
  struct Record {
    Op op;
    Site site;
    bool is_on_host = false;
    // Numbers of earlier records, the fewest from which follows what this one must run after: those
    // that write what it uses or use what it writes. In any order that keeps this the program
    // computes the same bits.
    std::vector<int> after;
    // Of kLanes in-order queues, the one whose latest record is among `after`, else the one that
    // has been idle for longest.
    int lane = 0;
  };
  static constexpr int kLanes = 3;

  Program(std::string name, const Workspace& workspace)
      : name_(std::move(name)), workspace_(&workspace) {
    latest_.fill(kNone);
  }

  // Records run in order, or side by side as far as `after` permits. Throws kBug, naming the site,
  // when an operand does not fit into its carrier, or is an input that the op cannot read.
  void record(Op op, Site site = {__builtin_FILE(), __builtin_LINE()});
  // The same for an op that is to run on the host, over the host's copies of the carriers.
  void record_on_host(Op op, Site site = {__builtin_FILE(), __builtin_LINE()});
  void append(const Record& record);

  const std::string& name() const { return name_; }
  const Workspace& workspace() const { return *workspace_; }
  const std::vector<Record>& records() const { return records_; }
  // What a run has to bring.
  const InputCounts& takes() const { return takes_; }
  bool has_host_ops() const;
  // Of the ops, their order and shapes: what the time of a run depends on.
  uint64_t digest() const;
  // Multiply-adds of all matrix products, times two.
  double gemm_flops() const;

 private:
  static constexpr int kNone = -1;

  static bool conflict(const std::vector<Extent>& one, const std::vector<Extent>& other);
  void add_order(Record& record, std::vector<Extent> extents);
  int lane_for(const Record& record) const;

  std::string name_;
  const Workspace* workspace_;
  std::vector<Record> records_;
  InputCounts takes_;
  std::array<int, kLanes> latest_;             // record of each lane, or kNone
  std::vector<std::vector<Extent>> extents_;   // of each record
  std::vector<std::vector<bool>> runs_after_;  // [record][earlier record], however indirectly
};

}  // namespace millrace
