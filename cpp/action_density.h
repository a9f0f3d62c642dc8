// How two heads of a network, mean and raw log deviation, become a tanh-squashed Gaussian:
//   log s = low + half_range (tanh(raw) + 1), a = tanh(clamp(mean, +-mean_limit) + s e)
// Freestanding.
#pragma once

#include "portable.h"

namespace millrace {

struct ActionDensity {
  float low, half_range;
  float mean_limit;
  // log(1 - a^2) = 2 (log 2 - x - softplus(-2 x)) of the x that a is the tanh of, exact wherever x
  // is; otherwise log(1 - a^2 + 1e-6).
  bool is_exact;
};

MR_CONSTEXPR ActionDensity kFastSacDensity = {-5.0f, 2.5f, 10.0f, false};
MR_CONSTEXPR ActionDensity kFlashSacDensity = {-10.0f, 6.0f, 3.402823466e38f, true};

}  // namespace millrace
