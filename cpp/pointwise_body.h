// One element of a pointwise op (program.h), and where it finds what the run brings: known when the
// op is launched, or read from the argument block by the kernel. Freestanding.
#pragma once

#include "elementary.h"
#include "portable.h"

namespace millrace {

enum class Pointwise {
  kScale,      // s a
  kAdd,        // a + b
  kAddScaled,  // a + s b
  kMultiply,   // a b
  kTanh        // tanh(s a)
};

template <Pointwise kFunction>
MR_LOOP_FN float pointwise_element(float a, float b, float s) {
  return kFunction == Pointwise::kScale       ? s * a
         : kFunction == Pointwise::kAdd       ? a + b
         : kFunction == Pointwise::kAddScaled ? a + s * b
         : kFunction == Pointwise::kMultiply  ? a * b
                                              : mr_tanh(s * a);
}

#if !defined(__METAL_VERSION__)  // has its own, without a pointer to pointers: metal_args.h
// The first of many floats.
struct FloatSource {
  const float* known;            // counts where `in_block` is null
  const float* const* in_block;  // where the address stands
  u64 offset;

  MR_FN const float* get() const { return (in_block != nullptr ? *in_block : known) + offset; }
};
#endif

struct FloatValue {
  float known;  // counts where `at` is null
  MR_DEVICE const float* at;

  MR_FN float get() const { return at != nullptr ? *at : known; }
};

}  // namespace millrace
