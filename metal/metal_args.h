// What the kernels of this folder take: one struct each, bound at index 0. One source for the Metal
// compiler, which sees typed pointers of the device, and for the host, which fills them with the
// addresses that it got from the table (backend.h): 8 bytes either way. Freestanding C++14; names
// are those of the kernels, with Args.
//
// Sizes and strides count elements of what the pointer leads to, unless they say bytes.
#pragma once

#include "action_density.h"
#include "adamw_body.h"
#include "arguments.h"
#include "gather.h"
#include "philox.h"
#include "pointwise_body.h"
#include "portable.h"
#include "program_parts.h"
#include "support.h"
#include "update_launch.h"

namespace millrace {

// Threads of a simdgroup; every kernel relies on it.
MR_CONSTEXPR u32 kSimdWidth = 32;

// ---- gather.metal ----

MR_CONSTEXPR u32 kGatherThreads = 128;  // of a threadgroup; one simdgroup moves one row

struct GatherArgs {
  Gather gather;
};

// ---- copy.metal ----

MR_CONSTEXPR u32 kCopyThreads = 256;  // of a threadgroup; each moves one piece

// `rows` rows of row_pieces pieces, a piece being 16, 4 or 1 bytes as the kernel's name says.
struct CopyRowsArgs {
  MR_DEVICE void* to;
  MR_DEVICE const void* from;
  u64 to_pitch, from_pitch;  // pieces from row to row
  u64 row_pieces, rows;
};

// ---- update.metal ----

MR_CONSTEXPR u32 kUpdateThreads = 128;  // of a threadgroup; one simdgroup per environment

struct UpdateArgs {
  UpdateLaunch launch;
};

// ---- programs ----

// Threads of a threadgroup, and the rows that its simdgroups compute at a time.
MR_CONSTEXPR u32 kRowThreads = 256;
MR_CONSTEXPR u32 kRowsOfAGroup = kRowThreads / kSimdWidth;

MR_CONSTEXPR u32 kElementThreads = 256;  // a thread for each element

// Scalars over all rows: this many threadgroups leave their part in scratch, then one with a thread
// for each adds the parts up.
MR_CONSTEXPR u32 kParts = 256;
MR_CONSTEXPR u32 kPartThreads = 128;

// Sums over rows, of each column: a threadgroup takes 32 columns of a chunk of rows, a lane one of
// the columns, and leaves its part in scratch: partial[chunk][sum][column].
MR_CONSTEXPR u32 kMaxSums = 3;

struct ColumnChunks {
  int rows, rows_of_a_chunk;
  u64 width;
  u32 sums;  // that the chunks have
  MR_DEVICE float* partial;
};

// sums[which][column] = the chunks added up in order.
struct AddChunksArgs {
  MR_DEVICE const float* partial;
  MR_DEVICE float* sums[kMaxSums];
  u64 width;
  u32 chunks, count;  // count: of the sums
};

// An operand that may be an input (program.h): Metal knows no pointers to pointers.
struct InputAddress {
  MR_DEVICE const float* at;
};

struct InputSource {
  MR_DEVICE const float* known;            // counts where `in_block` is null
  MR_DEVICE const InputAddress* in_block;  // where the address stands
  u64 offset;

  MR_FN MR_DEVICE const float* get() const {
    return (in_block != nullptr ? in_block->at : known) + offset;
  }
};

// ---- pointwise.metal ----

struct PointwiseArgs {
  Pointwise function;
  u64 count;
  InputSource a, b;  // of functions of one: the same
  FloatValue scalar;
  MR_DEVICE float* y;
};

struct RandomFillArgs {
  MR_CONSTANT const Arguments* arguments;
  RandomStream stream;
  u32 environment;
  u64 count;
  MR_DEVICE float* target;
};

// ---- relu.metal ----

struct ReluBackwardArgs {
  u64 count;
  MR_DEVICE float* gradient;
  MR_DEVICE const float* output;
};

// ---- column_sum.metal ----

struct ColumnSumArgs {
  ColumnChunks columns;
  u32 which;  // of the chunks' sums
  MR_DEVICE const float* values;
};

// ---- statistics.metal ----

MR_CONSTEXPR u32 kMaxScalars = 32;

struct StatisticsArgs {
  u32 count;
  Fold folds[kMaxScalars];
  MR_DEVICE const float* scalars;
  MR_DEVICE const float* finite;
  MR_DEVICE float* totals;
};

// ---- batch.metal ----

struct UnpackPartArgs {
  int column, width, target_stride;
  MR_DEVICE float* target;
  MR_DEVICE const int* mirror_source;  // these two only with mirrored rows
  MR_DEVICE const float* mirror_sign;
  MR_DEVICE const float* mean;  // these two null without a normaliser
  MR_DEVICE const float* scale;
};

struct UnpackArgs {
  MR_CONSTANT const Arguments* arguments;
  int rows, source_rows;
  int count;  // of the parts
  UnpackPartArgs parts[kMaxUnpackParts];
};

// ---- action.metal ----

struct SampleActionArgs {
  MR_CONSTANT const Arguments* arguments;
  int rows, actions, heads_stride, action_stride;
  ActionDensity density;
  int is_deterministic;
  RandomStream stream;
  u32 first_normal;
  MR_DEVICE const float* heads;
  MR_DEVICE const float* bias;
  MR_DEVICE const u64* drawn_at;  // or null
  MR_DEVICE float* action;
  MR_DEVICE float* noise;
  MR_DEVICE float* log_probability;  // or null
};

struct ActionGradientArgs {
  int rows, actions, heads_stride, action_gradient_stride;
  ActionDensity density;
  MR_DEVICE const float* heads;
  MR_DEVICE const float* bias;
  MR_DEVICE const float* noise;
  MR_DEVICE const float* action_gradient;
  MR_DEVICE const float* log_alpha;
  MR_DEVICE float* heads_gradient;
};

struct DeviationArgs {
  int rows, actions, heads_stride;
  ActionDensity density;
  MR_DEVICE const float* heads;
  MR_DEVICE const float* bias;
  MR_DEVICE float* parts;
};

struct MeanOfPartsArgs {
  MR_DEVICE const float* parts;
  float count;
  MR_DEVICE float* mean;
};

// ---- scalar.metal ----

// Of the one threadgroup that walks over all rows: as many as any pipeline takes.
MR_CONSTEXPR u32 kLossThreads = 256;

// Of scalar critics (program.h, ScalarHead).
struct ScalarHeadArgs {
  int rows, groups, width;
  MR_DEVICE const float* hidden;
  MR_DEVICE const float* weight;
  MR_DEVICE const float* bias;
  u64 weight_distance, bias_distance;
  MR_DEVICE float* hidden_gradient;  // or null
  int is_relu;
};

// What a target is made of beside the next values.
struct RewardSource {
  int source_rows, reward_column, done_column, truncated_column;
  float gamma;
  MR_DEVICE const float* log_probability;
  MR_DEVICE const float* log_alpha;
};

struct ScalarTargetArgs {
  MR_CONSTANT const Arguments* arguments;
  ScalarHeadArgs next;
  RewardSource reward;
  MR_DEVICE float* target;
};

struct ScalarCriticGradientArgs {
  ScalarHeadArgs head;
  MR_DEVICE const float* target;
  MR_DEVICE float* values;  // [row][group]
  MR_DEVICE float* values_gradient;
};

struct ScalarCriticLossArgs {
  int rows, groups;
  MR_DEVICE const float* values;
  MR_DEVICE const float* target;
  MR_DEVICE float* loss;
  MR_DEVICE float* value_mean;
  MR_DEVICE float* value_max;
  MR_DEVICE float* value_min;
};

struct ScalarActorGradientArgs {
  ScalarHeadArgs head;
  MR_DEVICE float* least_values;  // [row]
};

struct ScalarActorLossArgs {
  int rows;
  MR_DEVICE const float* least_values;
  MR_DEVICE const float* log_probability;
  MR_DEVICE const float* log_alpha;
  MR_DEVICE float* loss;
  MR_DEVICE float* entropy;
};

// ---- optimizer.metal ----

struct SumSquaresArgs {
  u64 count;
  MR_DEVICE const float* values;
  MR_DEVICE float* parts;
};

struct FinishNormArgs {
  MR_DEVICE const float* parts;
  float max_norm;
  int opens;
  MR_DEVICE const float* loss;
  MR_DEVICE float* norm;
  MR_DEVICE float* clip;
  MR_DEVICE float* finite;
};

// AdamWConstants with logarithms of the decays, which a device without double could not compute:
// they are as near 0 as the decays are to 1.
struct AdamWDecays {
  AdamWConstants constants;
  float log_beta1, log_beta2;
};

struct BeginStepArgs {
  MR_CONSTANT const Arguments* arguments;
  AdamWDecays decays;
  LearningRate rate;
  MR_DEVICE const float* clip;
  MR_DEVICE const float* finite;
  MR_DEVICE u64* count;
  MR_DEVICE AdamWStep* step;
};

struct AdamWArgs {
  MR_DEVICE const AdamWStep* step;
  MR_DEVICE const float* finite;
  u64 count;
  MR_DEVICE const float* gradient;
  MR_DEVICE float* parameters;
  MR_DEVICE float* first_moment;
  MR_DEVICE float* second_moment;
  MR_DEVICE float* target;  // or null
};

struct TemperatureArgs {
  MR_CONSTANT const Arguments* arguments;
  int rows;
  AdamWDecays decays;
  float target_entropy;
  MR_DEVICE const float* log_probability;
  MR_DEVICE float* log_alpha;
  MR_DEVICE float* first_moment;
  MR_DEVICE float* second_moment;
  MR_DEVICE u64* step;
  MR_DEVICE float* finite;
  MR_DEVICE float* loss;
  MR_DEVICE float* alpha;
  MR_DEVICE float* gradient;
};

// ---- row_norm.metal ----

MR_CONSTEXPR u32 kMaxRowBlocks = 32;

struct ScaleRowsArgs {
  MR_CONSTANT const Arguments* arguments;
  int count;                         // of the blocks
  int first_row[kMaxRowBlocks + 1];  // of a block, among all rows
  RowBlock blocks[kMaxRowBlocks];
  MR_DEVICE float* parameters;
  MR_DEVICE const float* finite;
  MR_DEVICE float* target;  // or null
};

// ---- rms_norm.metal ----

struct RmsNormArgs {
  int rows, groups, width;
  MR_DEVICE const float* gradient;  // of the backward kernels
  MR_DEVICE const float* input;
  MR_DEVICE const float* gain;
  MR_DEVICE float* inverse_rms;
  MR_DEVICE float* out;  // the output, or the input's gradient
};

struct RmsNormSumsArgs {
  ColumnChunks columns;
  RmsNormArgs norm;
};

// ---- layer.metal ----

struct LayerArgs {
  int rows, groups, width;
  MR_DEVICE const float* linear;
  MR_DEVICE const float* bias;
  MR_DEVICE const float* gain;
  MR_DEVICE const float* shift;
  MR_DEVICE float* mean;
  MR_DEVICE float* inverse_deviation;
  MR_DEVICE float* out;  // the output, or the gradient
};

struct LayerSumsArgs {
  ColumnChunks columns;
  LayerArgs layer;
};

// ---- batch_norm.metal ----

struct BatchNormArgs {
  ColumnChunks columns;  // their width: of all groups together
  int groups, width;
  u64 input_stride, input_distance;
  MR_DEVICE const float* input;
  MR_DEVICE const float* affine;
  MR_DEVICE float* mean;
  MR_DEVICE float* variance;
  int is_training, has_relu;
};

struct BatchNormStatisticsArgs {
  BatchNormArgs norm;
  MR_DEVICE const float* sums;
};

struct BatchNormOutputArgs {
  BatchNormArgs norm;
  MR_DEVICE const float* residual;  // or null
  MR_DEVICE float* output;
};

struct BatchNormGradientArgs {
  BatchNormArgs norm;
  MR_DEVICE const float* gradient;
  MR_DEVICE const float* sums;  // of the gradients, then of the slopes; of training
  MR_DEVICE float* input_gradient;
};

struct AffineGradientArgs {
  int groups, width;
  MR_DEVICE const float* sums;
  MR_DEVICE float* affine_gradient;
};

struct RunningStatisticsArgs {
  u64 count;
  MR_DEVICE const float* batch;
  MR_DEVICE float* running;
  MR_DEVICE const float* finite;
  float share, correction;
};

// ---- value.metal ----

// Logits of categorical critics, [row][group] stride apart; targets and gradients lie like them.
struct CategoricalValues {
  int rows, groups, stride;
  Support support;
  MR_DEVICE const float* logits;
  MR_DEVICE const float* bias;
};

struct ProjectTargetArgs {
  MR_CONSTANT const Arguments* arguments;
  CategoricalValues next;
  RewardSource reward;
  MR_DEVICE float* target;
  int takes_smallest;
  int rows_of_a_group;  // that the simdgroups of a threadgroup compute at a time
};

struct CriticLossArgs {
  CategoricalValues now;
  float share;
  MR_DEVICE const float* target;
  MR_DEVICE float* gradient;
  MR_DEVICE float* parts;  // kParts each of loss, value sum, value maximum, negated value minimum
};

struct FinishCriticLossArgs {
  MR_DEVICE const float* parts;
  float share, value_share;
  MR_DEVICE float* loss;
  MR_DEVICE float* value_mean;
  MR_DEVICE float* value_max;
  MR_DEVICE float* value_min;
};

struct ActorLossArgs {
  CategoricalValues now;
  int takes_smallest;
  MR_DEVICE const float* log_probability;
  MR_DEVICE float* gradient;
  MR_DEVICE float* parts;  // kParts each of value sum, sum of log pi
};

struct FinishActorLossArgs {
  MR_DEVICE const float* parts;
  float share, value_share;
  MR_DEVICE const float* log_alpha;
  MR_DEVICE float* loss;
  MR_DEVICE float* entropy;
};

// ---- gemm.metal ----

MR_CONSTEXPR u32 kTileM = 64, kTileN = 64, kTileK = 16;
MR_CONSTEXPR u32 kGemmThreads = 128;

struct ProductArgs {
  int m, n, k;
  int transpose_a, transpose_b, accumulates, has_relu;
  int pieces;
  InputSource a, b;
  MR_DEVICE float* c;
  int a_stride, b_stride, c_stride;
  int k_of_a_piece;  // a multiple of kTileK
  u64 a_distance, b_distance, c_distance;
  MR_DEVICE float* scratch;     // [product][piece][row][column], or null: one piece
  MR_DEVICE const float* bias;  // [product][column], or null
};

}  // namespace millrace
