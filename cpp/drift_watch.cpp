#include "drift_watch.h"

#include <cmath>
#include <cstdio>

#include "quantile.h"

namespace millrace {

namespace {

constexpr uint64_t kLongestRest = 4096;  // windows

std::string drift_text(const char* what, double then_us, double now_us) {
  char text[128];
  std::snprintf(text, sizeof text, "%s went from %.1f to %.1f us (%+.0f %%)", what, then_us, now_us,
                100.0 * (now_us / then_us - 1.0));
  return text;
}

}  // namespace

bool DriftWatch::observe(double us) {
  window_.push_back(us);
  if (window_.size() < kWindow) return false;
  const double median_us = median(window_), tail_us = quantile(window_, 0.99);
  window_.clear();
  ++windows_;
  if (median_us_ == 0) {
    median_us_ = median_us;
    tail_us_ = tail_us;
    return false;
  }
  if (rest_windows_ > 0) {
    --rest_windows_;
    return false;
  }
  const bool is_median = std::abs(median_us / median_us_ - 1.0) > kMedianDrift;
  const bool is_tail = tail_us / tail_us_ - 1.0 > kTailDrift;
  const bool is_second = has_drifted_;
  has_drifted_ = is_median || is_tail;
  if (!has_drifted_ || !is_second) return false;
  reason_ = is_median ? drift_text("the median", median_us_, median_us)
                      : drift_text("the 99th percentile", tail_us_, tail_us);
  return true;
}

void DriftWatch::selected_again() {
  window_.clear();
  median_us_ = tail_us_ = 0;
  has_drifted_ = false;
  rest_windows_ = next_rest_;
  if (next_rest_ < kLongestRest) next_rest_ *= 2;
}

}  // namespace millrace
