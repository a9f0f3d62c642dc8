// Verdict: what the update step found wrong on its device: the first bad term by (tick,
// environment), whichever thread saw it first. Workers report during a tick; the result becomes
// visible only at a completion boundary, so that a reader never sees half a tick. The key and the
// merge are freestanding: a device does the same with one atomic minimum.
#pragma once

#include "portable.h"

namespace millrace {

enum VerdictKind {
  kVerdictGood = 0,
  kVerdictObservation = 1,  // not finite; term = index of the component
  kVerdictCritic = 2,
  kVerdictReward = 3,  // term = index of the reward term
  kVerdictAction = 4,
  kVerdictPhysics = 5  // physics_unstable
};

struct Verdict {
  u64 tick;
  u32 environment;
  u32 term;
  u32 kind;
};

MR_FN Verdict verdict_of(VerdictKind kind, u64 tick, u32 environment, u32 term) {
  Verdict verdict;
  verdict.tick = tick;
  verdict.environment = environment;
  verdict.term = term;
  verdict.kind = (u32)kind;
  return verdict;
}

// Orders the verdicts of one tick: by environment, then kind, then term. Term is below 2^24.
MR_FN u64 verdict_key(Verdict verdict) {
  return ((u64)verdict.environment << 32) | ((u64)verdict.kind << 24) |
         (u64)(verdict.term & 0xFFFFFFu);
}

MR_FN u64 verdict_key_none() { return ~(u64)0; }

MR_FN Verdict verdict_from_key(u64 key, u64 tick) {
  if (key == verdict_key_none()) return verdict_of(kVerdictGood, tick, 0u, 0u);
  return verdict_of((VerdictKind)((key >> 24) & 0xFFu), tick, (u32)(key >> 32),
                    (u32)(key & 0xFFFFFFu));
}

// The earlier of two; a good one is later than every other.
MR_FN Verdict verdict_merge(Verdict a, Verdict b) {
  if (b.kind == (u32)kVerdictGood) return a;
  if (a.kind == (u32)kVerdictGood) return b;
  if (a.tick != b.tick) return a.tick < b.tick ? a : b;
  return verdict_key(b) < verdict_key(a) ? b : a;
}

}  // namespace millrace
