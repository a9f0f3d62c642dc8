// Selection: which way of running a program is the fastest, decided from measured times (the SCG of
// GraCE, with repetition, spread and hysteresis). Pure: profile.h measures, selection_cache.h
// remembers.
//
// The way that runs already is left only for one that gains more than 3 % of its median and more
// than twice the median absolute deviation of the noisier of the two.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace millrace {

// What was measured of one way, in microseconds of a run.
struct RunTimes {
  std::string way;  // "eager", "graph", "cgct", "cgct_pi"
  double median_us = 0, p99_us = 0;
  double deviation_us = 0;  // median absolute deviation
  size_t rounds = 0;
};
RunTimes run_times(std::string way, const std::vector<double>& samples_us);

struct Selection {
  std::string way;
  std::string reason;
  std::vector<RunTimes> measured;
  double profile_ms = 0;  // what measuring took
};

constexpr double kLeastGain = 0.03;
constexpr double kDeviationsOfAGain = 2.0;
constexpr size_t kLeastRounds = 10;

// `current`: the number of the way that runs otherwise. With fewer than kLeastRounds rounds it
// stays. Throws kBug for no ways.
Selection select(const std::vector<RunTimes>& ways, size_t current);

// What a selection holds for; another value of any of these is another selection.
struct SelectionKey {
  std::string shapes;       // "batch 8192, envs 4096"
  std::string program;      // of its ops: Program::digest()
  std::string layout;       // version of carriers and argument block
  std::string device;       // its name
  std::string driver;       // "13.0, runtime 13.0"
  std::string sharing;      // "exclusive" or "shared with other processes"
  std::string concurrency;  // what else runs on the device at the same time

  // The first field that differs, with both values; empty for equal keys.
  std::string difference(const SelectionKey& other) const;
};

// {way, reason, profile_ms, measured: [{way, median_us, p99_us, mad_us, rounds}]}
nlohmann::json to_json(const Selection& selection);
nlohmann::json to_json(const SelectionKey& key);
// Both throw nlohmann::json::exception for another shape.
Selection selection_from(const nlohmann::json& json);
SelectionKey selection_key_from(const nlohmann::json& json);

}  // namespace millrace
