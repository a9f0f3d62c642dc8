// A dense layer's part that is not a matrix product: a simdgroup computes one row of one group. The
// gradients of the parameters are sums over rows, of each column.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

MR_CONSTEXPR float kLayerEpsilon = 1e-5f;

// What one value of a layer is on its way back.
struct LayerValue {
  float normalised;
  float before_silu;  // dL/d(gain normalised + shift)
};

inline LayerValue layer_value(float linear, float gradient, float bias, float mean,
                              float inverse_deviation, float gain, float shift) {
  LayerValue value;
  value.normalised = (linear + bias - mean) * inverse_deviation;
  const float y = value.normalised * gain + shift;
  const float sigmoid = 1.0f / (1.0f + mr_exp(-y));
  value.before_silu = gradient * sigmoid * (1.0f + y * (1.0f - sigmoid));
  return value;
}

// The row of a simdgroup, among those of all groups; false beyond the last.
inline bool layer_row(constant const LayerArgs& args, uint group, uint thread_index,
                      thread u32& row) {
  row = group * kRowsOfAGroup + thread_index / kSimdWidth;
  return row < (u32)args.rows * (u32)args.groups;
}

}  // namespace millrace

kernel void layer_forward(constant const LayerArgs& args [[buffer(0)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  u32 row;
  if (!layer_row(args, group.x, thread_index, row)) return;  // whole simdgroups
  const u64 parameters = (u64)(row % (u32)args.groups) * (u64)args.width;
  device const float* x = args.linear + (u64)row * (u64)args.width;
  device const float* bias = args.bias + parameters;
  device const float* gain = args.gain + parameters;
  device const float* shift = args.shift + parameters;
  device float* out = args.out + (u64)row * (u64)args.width;
  const float share = 1.0f / (float)args.width;
  float sum = 0.0f, squares = 0.0f;
  for (int i = team.lane(); i < args.width; i += team.size()) sum += x[i] + bias[i];
  const float mean = team.sum(sum) * share;
  for (int i = team.lane(); i < args.width; i += team.size()) {
    const float distance = x[i] + bias[i] - mean;
    squares += distance * distance;
  }
  const float inverse_deviation = 1.0f / mr_sqrt(team.sum(squares) * share + kLayerEpsilon);
  for (int i = team.lane(); i < args.width; i += team.size()) {
    const float y = (x[i] + bias[i] - mean) * inverse_deviation * gain[i] + shift[i];
    out[i] = y / (1.0f + mr_exp(-y));
  }
  if (!team.leads()) return;
  args.mean[row] = mean;
  args.inverse_deviation[row] = inverse_deviation;
}

// Sums 0 and 1, of the gain's and the shift's gradient: before layer_backward, which writes where
// the gradient stands.
kernel void layer_parameter_sums(constant const LayerSumsArgs& args [[buffer(0)]],
                                 uint3 group [[threadgroup_position_in_grid]],
                                 uint thread_index [[thread_index_in_threadgroup]],
                                 threadgroup float* room [[threadgroup(0)]]) {
  const LayerArgs layer = args.layer;
  const ColumnPlace place = column_place(args.columns, group, thread_index);
  const u64 own_group = place.column / layer.width;
  const u64 parameter = place.is_inside ? place.column : 0;
  const float bias = layer.bias[parameter], gain = layer.gain[parameter];
  const float shift = layer.shift[parameter];
  float gain_sum = 0.0f, shift_sum = 0.0f;
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    const u64 at = (u64)r * args.columns.width + place.column;
    const u64 row = (u64)r * layer.groups + own_group;
    const LayerValue value = layer_value(layer.linear[at], layer.out[at], bias, layer.mean[row],
                                         layer.inverse_deviation[row], gain, shift);
    gain_sum += value.before_silu * value.normalised;
    shift_sum += value.before_silu;
  }
  leave_column_sum(args.columns, place, group, 0, gain_sum, room, thread_index);
  leave_column_sum(args.columns, place, group, 1, shift_sum, room, thread_index);
}

kernel void layer_backward(constant const LayerArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  u32 row;
  if (!layer_row(args, group.x, thread_index, row)) return;  // whole simdgroups
  const u64 parameters = (u64)(row % (u32)args.groups) * (u64)args.width;
  device const float* x = args.linear + (u64)row * (u64)args.width;
  device const float* bias = args.bias + parameters;
  device const float* gain = args.gain + parameters;
  device const float* shift = args.shift + parameters;
  device float* gradient = args.out + (u64)row * (u64)args.width;
  const float mean = args.mean[row], inverse_deviation = args.inverse_deviation[row];
  const float share = 1.0f / (float)args.width;
  float total = 0.0f, slope = 0.0f;
  for (int i = team.lane(); i < args.width; i += team.size()) {
    const LayerValue value =
        layer_value(x[i], gradient[i], bias[i], mean, inverse_deviation, gain[i], shift[i]);
    const float scaled = value.before_silu * gain[i];  // dL/dnormalised
    total += scaled;
    slope += scaled * value.normalised;
    gradient[i] = scaled;
  }
  total = team.sum(total) * share;
  slope = team.sum(slope) * share;
  for (int i = team.lane(); i < args.width; i += team.size()) {
    const float normalised = (x[i] + bias[i] - mean) * inverse_deviation;
    gradient[i] = inverse_deviation * (gradient[i] - total - normalised * slope);
  }
}
