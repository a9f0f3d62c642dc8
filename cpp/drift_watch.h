// DriftWatch: whether runs take as long as they did when their way was selected. Times are compared
// window by window with the first window after a selection: a median more than 15 % off, up or
// down, or a 99th percentile more than 30 % above. So that it does not flap, two windows in a row
// must show it, and after each re-profile twice as many windows pass before the next. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

class DriftWatch {
 public:
  static constexpr size_t kWindow = 64;
  static constexpr double kMedianDrift = 0.15, kTailDrift = 0.30;

  // One run took so long. True: profile again, then call selected_again().
  bool observe(double us);
  void selected_again();

  // Of the last drift that asked for a profile; empty: none so far.
  const std::string& reason() const { return reason_; }
  uint64_t windows() const { return windows_; }

 private:
  std::vector<double> window_;
  double median_us_ = 0, tail_us_ = 0;  // of the first window; 0: there was none yet
  uint64_t windows_ = 0, rest_windows_ = 0, next_rest_ = 8;
  bool has_drifted_ = false;  // the last window did
  std::string reason_;
};

}  // namespace millrace
