// Counts the random words that the update step and a start take, by stream. It is a second
// compilation of update_body.h and reset.cpp, in a namespace of its own, whose random functions
// count: what is counted is what production does. Arguments are those of the functions counted, as
// the other namespace's types; the types are the same source.
#pragma once

#include <array>
#include <cstdint>

namespace draw_counter {

// Index = RandomStream.
using Words = std::array<int, 16>;

// update_environment of one environment; `params`: UpdateParams, `arguments`: UpdateArguments,
// `state`: StateView.
Words count_tick(const void* params, const void* arguments, const void* state, int env, float* row);
// begin_episode, not the first, and observe_reset.
Words count_reset(const void* params, const void* arguments, const void* state, int env);
// draw_motion_start; `spec`: ResetSpec, `noise`: MotionResetSpec, `motion`: MotionView.
Words count_motion_start(const void* spec, const void* noise, const void* motion, double* qpos,
                         double* qvel);
// draw_start.
Words count_start(const void* spec, double* qpos, double* qvel);

}  // namespace draw_counter
