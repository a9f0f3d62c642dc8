// Profile: measures ways of running a program against each other, interleaved (A B C A B C …), so
// that whatever else changes on the machine meets all of them. A sample is the time of some runs
// back to back, from the first submission until the last is complete, divided by their number: as
// many as make it long beside the wait. Clock and wait come from the caller, so that all of it is
// tested without a device.
//
// What the runs change is the caller's to restore.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "selection.h"

namespace millrace {

using ClockNs = std::function<uint64_t()>;  // monotone
uint64_t steady_clock_ns();

struct ProfiledWay {
  std::string name;
  std::function<void()> run;   // enqueues one run, its argument block included
  std::function<void()> wait;  // until all runs are complete
};

struct ProfileLimits {
  size_t most_rounds = 30;
  double budget_ms = 2000;  // warm-up included; no round begins that would probably exceed it
  int warm_runs = 4;        // of each way: two eager ones, a capture, a replay
};

struct Profile {
  std::vector<RunTimes> times;  // of every way, in order
  int runs_of_a_sample = 1;
  double took_ms = 0;
};

Profile profile(const std::vector<ProfiledWay>& ways, const ProfileLimits& limits,
                const ClockNs& now);

}  // namespace millrace
