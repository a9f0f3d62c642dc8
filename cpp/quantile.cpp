#include "quantile.h"

#include <algorithm>
#include <utility>

#include "status.h"

namespace millrace {

double quantile(std::vector<double> values, double share) {
  MR_CHECK(!values.empty(), "no values");
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double interquartile_range(const std::vector<double>& values) {
  return quantile(values, 0.75) - quantile(values, 0.25);
}

}  // namespace millrace
