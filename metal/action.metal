// Tanh-squashed Gaussian actions (tanh_gaussian_body.h): a simdgroup computes one row.
#include "simd_team.h"
//
#include "tanh_gaussian_body.h"

using namespace metal;
using namespace millrace;

kernel void sample_actions(constant const SampleActionArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  const int r = (int)(group.x * kRowsOfAGroup + thread_index / kSimdWidth);
  if (r >= args.rows) return;
  const u64 row = (u64)r;
  const ActionDensity density = args.density;
  device float* noise = args.noise + row * args.actions;
  if (!args.is_deterministic) {
    const u64 tick = args.drawn_at != nullptr ? args.drawn_at[row] : args.arguments->tick;
    const RandomSource source = random_source(args.arguments->seed, args.stream, (u32)r, tick);
    draw_noise_row(team, source, args.first_normal, noise, args.actions);
  }
  device const float* heads = args.heads + row * args.heads_stride;
  device float* action = args.action + row * args.action_stride;
  const float log_probability =
      density.is_exact
          ? sample_action_row<true>(team, density, heads, args.bias, noise, action, args.actions)
          : sample_action_row<false>(team, density, heads, args.bias, noise, action, args.actions);
  if (team.leads() && args.log_probability != nullptr) args.log_probability[row] = log_probability;
}

kernel void action_gradients(constant const ActionGradientArgs& args [[buffer(0)]],
                             uint3 group [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  const int r = (int)(group.x * kRowsOfAGroup + thread_index / kSimdWidth);
  if (r >= args.rows) return;  // whole simdgroups
  const ActionDensity density = args.density;
  const float alpha_share = mr_exp(*args.log_alpha) / (float)args.rows;
  const u64 row = (u64)r;
  device const float* heads = args.heads + row * args.heads_stride;
  device const float* noise = args.noise + row * args.actions;
  device const float* gradient = args.action_gradient + row * args.action_gradient_stride;
  device float* out = args.heads_gradient + row * args.heads_stride;
  if (density.is_exact) {
    action_gradient_row<true>(team, density, heads, args.bias, noise, gradient, alpha_share, out,
                              args.actions);
  } else {
    action_gradient_row<false>(team, density, heads, args.bias, noise, gradient, alpha_share, out,
                               args.actions);
  }
}

kernel void sum_deviations(constant const DeviationArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]],
                           threadgroup float* room [[threadgroup(0)]]) {
  const SimdTeam team = simd_team(thread_index);
  const ActionDensity density = args.density;
  float deviations = 0.0f;
  for (int r = first_row_of_part(group.x, thread_index); r < args.rows; r += kRowsBetweenParts) {
    deviations += deviations_of_row(team, density, args.heads + (u64)r * args.heads_stride,
                                    args.bias, args.actions);
  }
  const float sum =
      threadgroup_sum(team.leads() ? deviations : 0.0f, room, thread_index, kPartThreads);
  if (thread_index == 0) args.parts[group.x] = sum;
}

kernel void mean_of_parts(constant const MeanOfPartsArgs& args [[buffer(0)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]],
                          threadgroup float* room [[threadgroup(0)]]) {
  const float sum = sum_of_parts(args.parts + group.x * kParts, room, thread_index);
  if (thread_index == 0) *args.mean = sum / args.count;
}
