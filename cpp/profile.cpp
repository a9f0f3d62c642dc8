#include "profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace millrace {

namespace {

// Beside it the wait for the device, some 10 us, is little.
constexpr double kSampleUs = 400;
constexpr int kMostRunsOfASample = 16;

double sample_us(const ProfiledWay& way, int runs, const ClockNs& now) {
  const uint64_t begin = now();
  for (int i = 0; i < runs; ++i) way.run();
  way.wait();
  return static_cast<double>(now() - begin) * 1e-3 / runs;
}

}  // namespace

uint64_t steady_clock_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

Profile profile(const std::vector<ProfiledWay>& ways, const ProfileLimits& limits,
                const ClockNs& now) {
  Profile found;
  const uint64_t begin = now();
  const auto elapsed_ms = [&] { return static_cast<double>(now() - begin) * 1e-6; };
  const auto is_over = [&](double next_ms) { return elapsed_ms() + next_ms > limits.budget_ms; };
  double fastest_us = 0, round_us = 0;
  for (const ProfiledWay& way : ways) {
    double last_us = 0;
    for (int i = 0; i < limits.warm_runs && !is_over(last_us * 1e-3); ++i) {
      last_us = sample_us(way, 1, now);
    }
    fastest_us = &way == &ways.front() ? last_us : std::min(fastest_us, last_us);
    round_us += last_us;
  }
  if (fastest_us > 0) {
    const double wanted = std::ceil(kSampleUs / fastest_us);
    found.runs_of_a_sample =
        static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(kMostRunsOfASample)));
  }
  double round_ms = round_us * 1e-3 * found.runs_of_a_sample;
  std::vector<std::vector<double>> samples(ways.size());
  for (size_t round = 0; round < limits.most_rounds && !is_over(round_ms); ++round) {
    const double before_ms = elapsed_ms();
    for (size_t i = 0; i < ways.size(); ++i) {
      samples[i].push_back(sample_us(ways[i], found.runs_of_a_sample, now));
    }
    round_ms = elapsed_ms() - before_ms;
  }
  for (size_t i = 0; i < ways.size(); ++i) {
    found.times.push_back(run_times(ways[i].name, samples[i]));
  }
  found.took_ms = elapsed_ms();
  return found;
}

}  // namespace millrace
