// Running mean and variance of the columns of committed rows, in double precision, merged batch by
// batch with Chan's formula. Rows must come in the order they were committed, each once: then the
// statistics do not depend on how the order was cut into batches beyond rounding, and a resumed run
// that cuts the same way continues bit for bit. Owner: the learner's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "state_registry.h"

namespace millrace {

class Normalizer {
 public:
  explicit Normalizer(int columns);

  // rows[r * stride + i] is column i of row r.
  void absorb(const float* rows, uint64_t count, int stride);
  // What the networks use: (x - mean) * scale with scale = 1 / (deviation + 0.01). Before the first
  // row: mean 0, deviation 1.
  void write(float* mean, float* scale) const;

  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& variance() const { return variance_; }
  uint64_t count() const { return count_; }
  size_t bytes() const { return 4 * mean_.size() * sizeof(double); }

  // {name}/{mean, var, count}
  void register_state(StateRegistry& registry, const std::string& name);

 private:
  std::vector<double> mean_, variance_;
  uint64_t count_ = 0;
  std::vector<double> batch_mean_, batch_squares_;
};

}  // namespace millrace
