// Root-mean-square normalisation: a simdgroup computes one row of one group. The gain's gradient
// is a sum over rows, of each column.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

MR_CONSTEXPR float kRmsEpsilon = 1e-6f;

// The row of a simdgroup, among those of all groups; false beyond the last.
inline bool rms_row(constant const RmsNormArgs& args, uint group, uint thread_index,
                    thread u32& row) {
  row = group * kRowsOfAGroup + thread_index / kSimdWidth;
  return row < (u32)args.rows * (u32)args.groups;
}

}  // namespace millrace

kernel void rms_forward(constant const RmsNormArgs& args [[buffer(0)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  u32 row;
  if (!rms_row(args, group.x, thread_index, row)) return;  // whole simdgroups
  device const float* x = args.input + (u64)row * (u64)args.width;
  device const float* gain = args.gain + (u64)(row % (u32)args.groups) * (u64)args.width;
  float squares = 0.0f;
  for (int i = team.lane(); i < args.width; i += team.size()) squares += x[i] * x[i];
  const float inverse = 1.0f / mr_sqrt(team.sum(squares) / (float)args.width + kRmsEpsilon);
  device float* out = args.out + (u64)row * (u64)args.width;
  for (int i = team.lane(); i < args.width; i += team.size()) out[i] = x[i] * inverse * gain[i];
  if (team.leads()) args.inverse_rms[row] = inverse;
}

kernel void rms_backward(constant const RmsNormArgs& args [[buffer(0)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  u32 row;
  if (!rms_row(args, group.x, thread_index, row)) return;  // whole simdgroups
  device const float* x = args.input + (u64)row * (u64)args.width;
  device const float* gradient = args.gradient + (u64)row * (u64)args.width;
  device const float* gain = args.gain + (u64)(row % (u32)args.groups) * (u64)args.width;
  const float inverse = args.inverse_rms[row];
  float slope = 0.0f;
  for (int i = team.lane(); i < args.width; i += team.size()) {
    slope += gradient[i] * gain[i] * (x[i] * inverse);
  }
  slope = team.sum(slope) / (float)args.width;
  device float* out = args.out + (u64)row * (u64)args.width;
  for (int i = team.lane(); i < args.width; i += team.size()) {
    out[i] = inverse * (gradient[i] * gain[i] - x[i] * inverse * slope);
  }
}

// Before rms_backward, which may write where the gradient stands.
kernel void rms_gain_sums(constant const RmsNormSumsArgs& args [[buffer(0)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]],
                          threadgroup float* room [[threadgroup(0)]]) {
  const ColumnPlace place = column_place(args.columns, group, thread_index);
  const u64 own_group = place.column / args.norm.width;
  float sum = 0.0f;
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    const u64 at = (u64)r * args.columns.width + place.column;
    const float inverse = args.norm.inverse_rms[(u64)r * args.norm.groups + own_group];
    sum += args.norm.gradient[at] * (args.norm.input[at] * inverse);
  }
  leave_column_sum(args.columns, place, group, 0, sum, room, thread_index);
}
