// Batch normalisation (program.h, BatchNorm): every column over all rows. A threadgroup takes 32
// columns of a chunk of rows; sums over rows are those of the chunks, added up.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

MR_CONSTEXPR float kBatchNormEpsilon = 1e-5f;

// What one thread needs to know of its column.
struct NormColumn {
  device const float* input;  // of row 0
  float mean, inverse_deviation, gain, shift;
  bool has_relu;

  float normalised(float x) const { return (x - mean) * inverse_deviation; }
  float before_relu(float normalised_x) const { return normalised_x * gain + shift; }
  // dL/d(before_relu) from dL/dy.
  float gradient(float normalised_x, float dy) const {
    return has_relu && before_relu(normalised_x) <= 0.0f ? 0.0f : dy;
  }
};

// Of the columns of all groups together.
inline device const float* column_input(constant const BatchNormArgs& norm, u64 column) {
  const u64 group = column / norm.width;
  return norm.input + group * norm.input_distance + column % norm.width;
}

inline NormColumn norm_column(constant const BatchNormArgs& norm, u64 column) {
  const u64 group = column / norm.width;
  device const float* gain = norm.affine + group * norm.width + column;
  NormColumn own;
  own.input = column_input(norm, column);
  own.mean = norm.mean[column];
  own.inverse_deviation = 1.0f / mr_sqrt(norm.variance[column] + kBatchNormEpsilon);
  own.gain = gain[0];
  own.shift = gain[norm.width];
  own.has_relu = norm.has_relu != 0;
  return own;
}

inline u64 inside_column(thread const ColumnPlace& place) {
  return place.is_inside ? place.column : 0;
}

}  // namespace millrace

// Sums of distances from the first row, and of their squares: no difference of large numbers.
kernel void batch_norm_sums(constant const BatchNormArgs& args [[buffer(0)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]],
                            threadgroup float* room [[threadgroup(0)]]) {
  const ColumnPlace place = column_place(args.columns, group, thread_index);
  device const float* input = column_input(args, inside_column(place));
  const float pivot = input[0];
  float sum = 0.0f, squares = 0.0f;
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    const float distance = input[(u64)r * args.input_stride] - pivot;
    sum += distance;
    squares += distance * distance;
  }
  leave_column_sum(args.columns, place, group, 0, sum, room, thread_index);
  leave_column_sum(args.columns, place, group, 1, squares, room, thread_index);
}

// Of the sums, which stand in scratch where the first chunk's did not. A thread takes a column.
kernel void batch_norm_statistics(constant const BatchNormStatisticsArgs& args [[buffer(0)]],
                                  uint3 group [[threadgroup_position_in_grid]],
                                  uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 column = (u64)group.x * kElementThreads + thread_index;
  const u64 width = args.norm.columns.width;
  if (column >= width) return;
  const float share = 1.0f / (float)args.norm.columns.rows;
  const float distance = args.sums[column] * share;
  const float variance = args.sums[width + column] * share - distance * distance;
  args.norm.mean[column] = column_input(args.norm, column)[0] + distance;
  args.norm.variance[column] = variance < 0.0f ? 0.0f : variance;  // keeps what is not a number
}

kernel void batch_norm_forward(constant const BatchNormOutputArgs& args [[buffer(0)]],
                               uint3 group [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]]) {
  const ColumnPlace place = column_place(args.norm.columns, group, thread_index);
  const NormColumn column = norm_column(args.norm, inside_column(place));
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    const u64 at = (u64)r * args.norm.columns.width + place.column;
    const float z =
        column.before_relu(column.normalised(column.input[(u64)r * args.norm.input_stride]));
    const float y = column.has_relu && z <= 0.0f ? 0.0f : z;
    args.output[at] = args.residual == nullptr ? y : y + args.residual[at];
  }
}

// Sums of dL/dz, and of that times the normalised value.
kernel void batch_norm_gradient_sums(constant const BatchNormGradientArgs& args [[buffer(0)]],
                                     uint3 group [[threadgroup_position_in_grid]],
                                     uint thread_index [[thread_index_in_threadgroup]],
                                     threadgroup float* room [[threadgroup(0)]]) {
  const ColumnPlace place = column_place(args.norm.columns, group, thread_index);
  const NormColumn column = norm_column(args.norm, inside_column(place));
  float sum = 0.0f, slope = 0.0f;
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    const u64 at = (u64)r * args.norm.columns.width + place.column;
    const float x = column.normalised(column.input[(u64)r * args.norm.input_stride]);
    const float gradient = column.gradient(x, args.gradient[at]);
    sum += gradient;
    slope += gradient * x;
  }
  leave_column_sum(args.norm.columns, place, group, 0, sum, room, thread_index);
  leave_column_sum(args.norm.columns, place, group, 1, slope, room, thread_index);
}

kernel void batch_norm_affine(constant const AffineGradientArgs& args [[buffer(0)]],
                              uint3 group [[threadgroup_position_in_grid]],
                              uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 column = (u64)group.x * kElementThreads + thread_index;
  const u64 all = (u64)args.groups * args.width;
  if (column >= all) return;
  device float* affine = args.affine_gradient + column / args.width * args.width + column;
  affine[0] = args.sums[all + column];
  affine[args.width] = args.sums[column];
}

kernel void batch_norm_backward(constant const BatchNormGradientArgs& args [[buffer(0)]],
                                uint3 group [[threadgroup_position_in_grid]],
                                uint thread_index [[thread_index_in_threadgroup]]) {
  const ColumnPlace place = column_place(args.norm.columns, group, thread_index);
  const u64 inside = inside_column(place), width = args.norm.columns.width;
  const NormColumn column = norm_column(args.norm, inside);
  // Given statistics pass no gradient.
  const float share = args.norm.is_training ? 1.0f / (float)args.norm.columns.rows : 0.0f;
  const float mean_gradient = args.norm.is_training ? args.sums[inside] * share : 0.0f;
  const float mean_slope = args.norm.is_training ? args.sums[width + inside] * share : 0.0f;
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    const u64 at = (u64)r * width + place.column;
    const float x = column.normalised(column.input[(u64)r * args.norm.input_stride]);
    const float gradient = column.gradient(x, args.gradient[at]);
    args.input_gradient[at] =
        column.gain * column.inverse_deviation * (gradient - mean_gradient - x * mean_slope);
  }
}

// Of given statistics, where all groups read the same input: their sum. A thread takes one value.
kernel void batch_norm_shared_backward(constant const BatchNormGradientArgs& args [[buffer(0)]],
                                       uint3 group [[threadgroup_position_in_grid]],
                                       uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  const u64 width = (u64)args.norm.width;
  if (i >= (u64)args.norm.columns.rows * width) return;
  const u64 row = i / width, at = i % width;
  float sum = 0.0f;
  for (int g = 0; g < args.norm.groups; ++g) {
    const NormColumn column = norm_column(args.norm, g * width + at);
    const float x = column.normalised(column.input[row * args.norm.input_stride]);
    const float gradient =
        column.gradient(x, args.gradient[(row * args.norm.groups + g) * width + at]);
    sum += column.gain * column.inverse_deviation * gradient;
  }
  args.input_gradient[i] = sum;
}

kernel void move_statistics(constant const RunningStatisticsArgs& args [[buffer(0)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  if (i >= 2 * args.count || *args.finite != 1.0f) return;
  const float value = i < args.count ? args.batch[i] : args.batch[i] * args.correction;
  args.running[i] += args.share * (value - args.running[i]);
}
