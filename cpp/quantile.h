// Quantiles of measured values; both throw kBug for none.
#pragma once

#include <vector>

namespace millrace {

// Linear between the two nearest values; share 0..1.
double quantile(std::vector<double> values, double share);
double median(std::vector<double> values);
// Distance of the quartiles.
double interquartile_range(const std::vector<double>& values);

}  // namespace millrace
