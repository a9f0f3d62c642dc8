#include "draw_counter.h"

#define millrace millrace_counted

#include "philox.h"

namespace millrace {

namespace {

draw_counter::Words words;
u32 stream_of_block;  // whose words are used one by one; 0 = none

u32 counting_u32(RandomSource source, u32 draw) {
  words[source.stream] += 1;
  stream_of_block = 0;
  return random_u32(source, draw);
}

float counting_uniform(RandomSource source, u32 draw, float low, float high) {
  words[source.stream] += 1;
  return random_uniform(source, draw, low, high);
}

u32 counting_index(RandomSource source, u32 draw, u32 n) {
  words[source.stream] += 1;
  return random_index(source, draw, n);
}

Philox4 counting_block(RandomSource source, u32 block) {
  stream_of_block = source.stream;
  return random_block(source, block);
}

float counting_unit_float(u32 x) {
  if (stream_of_block != 0) words[stream_of_block] += 1;
  return unit_float(x);
}

}  // namespace

}  // namespace millrace

#define random_u32 counting_u32
#define random_uniform counting_uniform
#define random_index counting_index
#define random_block counting_block
#define unit_float counting_unit_float
#define random_normal not_counted

#include "reset.cpp"
#include "update_body.h"

namespace draw_counter {

using namespace millrace;

namespace {

template <class T>
const T& as(const void* object) {
  return *static_cast<const T*>(object);
}

void start_counting() {
  words.fill(0);
  stream_of_block = 0;
}

}  // namespace

Words count_tick(const void* params, const void* arguments, const void* state, int env,
                 float* row) {
  start_counting();
  update_environment(SoloTeam(), as<UpdateParams>(params), as<UpdateArguments>(arguments),
                     as<StateView>(state), env, row);
  return words;
}

Words count_reset(const void* params, const void* arguments, const void* state, int env) {
  start_counting();
  begin_episode(as<UpdateParams>(params), as<UpdateArguments>(arguments), as<StateView>(state), env,
                false);
  observe_reset(as<UpdateParams>(params), as<UpdateArguments>(arguments), as<StateView>(state),
                env);
  return words;
}

Words count_motion_start(const void* spec, const void* noise, const void* motion, double* qpos,
                         double* qvel) {
  start_counting();
  double gains[2];
  draw_motion_start(as<ResetSpec>(spec), as<MotionResetSpec>(noise), as<MotionView>(motion), 0, 1,
                    2, 0, qpos, qvel, gains);
  return words;
}

Words count_start(const void* spec, double* qpos, double* qvel) {
  start_counting();
  double gains[2];
  draw_start(as<ResetSpec>(spec), 1, 2, 0, qpos, qvel, gains);
  return words;
}

}  // namespace draw_counter
