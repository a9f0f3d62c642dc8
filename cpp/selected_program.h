// SelectedProgram: a program of a run that is launched in the way that was measured to be faster,
// eagerly or as a graph. With `graph: auto` it asks the cache; without an answer it waits until the
// graph is captured, measures both ways on this run's arguments, and restores what they changed, so
// that training goes on as if nothing had been measured. With `on` and `off` it is what
// CapturedProgram makes of them. Now and then a run is timed; when that has drifted for long
// (drift_watch.h), both ways are measured again.
//
// Threads: run(), completed() and release() on the submit thread; the rest on any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "captured_program.h"
#include "drift_watch.h"
#include "profile.h"
#include "selection_cache.h"

namespace millrace {

// Device, driver and sharing of a key.
SelectionKey selection_key_of(const Backend& backend);

struct SelectionSpec {
  SelectionCache* cache = nullptr;  // null: nothing is selected, `auto` takes the graph
  SelectionKey key;
  ProfileLimits limits = {};
  ClockNs clock = steady_clock_ns;
};

// What a program changes, as its owner keeps and restores it. Both enqueue.
struct ProfileState {
  std::function<void()> save, restore;
};

class SelectedProgram {
 public:
  SelectedProgram(Backend& backend, Stream& stream, const GraphSpec& graph,
                  const SelectionSpec& selection, std::function<void()> body, ProfileState state);

  // Enqueues one run: `set_arguments` and then the program.
  void run(const std::function<void()>& set_arguments);
  // The last run was observed complete.
  void completed();
  void release() { program_.release(); }

  const std::string& name() const { return program_.name(); }
  const CapturedProgram& program() const { return program_; }
  // {way, reason, source: "measured" | "cache" | "none", not_cached, profile_ms, profiles,
  // measured, key, drift: {windows, reason}, cache_file}; null where nothing is selected.
  nlohmann::json describe() const;

 private:
  enum class Phase { kNotAsked, kWaitingForGraph, kDecided };

  void decide(const std::function<void()>& set_arguments);
  void look_up();
  void measure(const std::function<void()>& set_arguments);
  void take(const Selection& selection, const char* source);
  void wait();
  bool is_selecting() const { return spec_.cache != nullptr && policy_ == GraphPolicy::kAuto; }

  Stream& stream_;
  const GraphPolicy policy_;
  const SelectionSpec spec_;
  const ProfileState state_;
  CapturedProgram program_;
  Event settled_;
  Event timed_begin_, timed_end_;
  bool is_timing_ = false;
  uint64_t runs_ = 0;
  Phase phase_ = Phase::kNotAsked;

  mutable std::mutex mutex_;  // guards what follows
  std::optional<Selection> selection_;
  std::string source_ = "none", not_cached_;
  uint64_t profiles_ = 0;
  DriftWatch drift_;
};

}  // namespace millrace
