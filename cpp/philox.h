// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
// counter-based generator. A draw is a pure function of (seed, stream, environment, tick, index),
// never of a thread or a launch geometry. Freestanding; used by every backend.
//
// counter = {draw / 4, environment, tick low 32 bits, stream << 24 | tick bits 32..55}, key = seed.
#pragma once

#include "elementary.h"
#include "portable.h"

namespace millrace {

// Which consumer a draw belongs to. Values are part of every checkpoint and manifest.
enum RandomStream {
  kStreamReset = 1,
  kStreamCommand = 2,
  kStreamEvent = 3,
  kStreamObservationNoise = 4,
  kStreamExploration = 5,
  kStreamSampler = 6,
  kStreamLearnerNoise = 7,
  kStreamInitialWeights = 8,
  kStreamGainRandomisation = 9,
  kStreamFrameSampler = 10
};

struct Philox4 {
  u32 word[4];
};

MR_FN Philox4 philox4x32_10(Philox4 counter, u64 key) {
  u32 key0 = (u32)key;
  u32 key1 = (u32)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 product0 = (u64)0xD2511F53u * counter.word[0];
    const u64 product1 = (u64)0xCD9E8D57u * counter.word[2];
    Philox4 next;
    next.word[0] = (u32)(product1 >> 32) ^ counter.word[1] ^ key0;
    next.word[1] = (u32)product1;
    next.word[2] = (u32)(product0 >> 32) ^ counter.word[3] ^ key1;
    next.word[3] = (u32)product0;
    counter = next;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// The generator of one (seed, stream, environment, tick); `draw` counts 32-bit words from 0.
struct RandomSource {
  u64 seed;
  u64 tick;
  u32 environment;
  u32 stream;
};

MR_FN RandomSource random_source(u64 seed, RandomStream stream, u32 environment, u64 tick) {
  RandomSource source;
  source.seed = seed;
  source.tick = tick;
  source.environment = environment;
  source.stream = (u32)stream;
  return source;
}

MR_FN Philox4 random_block(RandomSource source, u32 block) {
  Philox4 counter;
  counter.word[0] = block;
  counter.word[1] = source.environment;
  counter.word[2] = (u32)source.tick;
  counter.word[3] = (source.stream << 24) | (u32)((source.tick >> 32) & 0xFFFFFFu);
  return philox4x32_10(counter, source.seed);
}

MR_FN u32 random_u32(RandomSource source, u32 draw) {
  return random_block(source, draw >> 2).word[draw & 3u];
}

// Uniform in [0, 1), a multiple of 2^-24.
MR_FN float unit_float(u32 x) { return (float)(x >> 8) * 5.9604644775390625e-8f; }

// Uniform in [low, high).
MR_FN float random_uniform(RandomSource source, u32 draw, float low, float high) {
  return low + (high - low) * unit_float(random_u32(source, draw));
}

// Standard normal by Box-Muller from draws 2*index and 2*index + 1.
MR_FN float random_normal(RandomSource source, u32 index) {
  const Philox4 block = random_block(source, index >> 1);
  const u32 a = block.word[(index & 1u) * 2u];
  const u32 b = block.word[(index & 1u) * 2u + 1u];
  const float u = (float)((a >> 8) + 1u) * 5.9604644775390625e-8f;  // (0, 1]: log stays finite
  const float angle = 6.28318530717958648f * unit_float(b);
  return mr_sqrt(-2.0f * mr_log(u)) * mr_cos(angle);
}

// Uniform integer in [0, n) for n below 2^32 (multiply-shift).
MR_FN u32 random_index(RandomSource source, u32 draw, u32 n) {
  return (u32)(((u64)random_u32(source, draw) * n) >> 32);
}

}  // namespace millrace
