// The support of the categorical critics: atoms evenly spaced on [v_min, v_max]. Freestanding.
#pragma once

#include "portable.h"

namespace millrace {

struct Support {
  int atoms;
  float v_min, v_max;
  MR_FN float spacing() const { return (v_max - v_min) / (float)(atoms - 1); }
};

}  // namespace millrace
