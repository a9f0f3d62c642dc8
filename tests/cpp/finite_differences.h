// Gradients by central differences, for tests of what computes them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fastsac_reference.h"

namespace millrace {

// Of loss() by every element of the reference's parameter `name`, in steps of `step` either way.
template <class Reference, class Loss>
Vector central_differences(Reference& reference, const std::string& name, double step, Loss loss) {
  Vector& values = reference.parameters.at(name);
  Vector gradient(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    values[i] = value + step;
    const double above = loss();
    values[i] = value - step;
    gradient[i] = (above - loss()) / (2 * step);
    values[i] = value;
  }
  return gradient;
}

// |a - b| / |b|.
inline double relative_distance(const std::vector<float>& a, const Vector& b) {
  double distance = 0, length = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    distance += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(distance / length);
}

}  // namespace millrace
