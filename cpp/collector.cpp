#include "collector.h"

#include <algorithm>

namespace millrace {

namespace {

// Environments per work item of the update step: small enough to balance, large enough to amortise
// a claim.
constexpr int kUpdateGrain = 16;

}  // namespace

Collector::Collector(const CollectorParts& parts) : parts_(parts) {}

Collector::~Collector() { stop(); }

void Collector::start(uint64_t first_tick) {
  MR_CHECK(!thread_.joinable(), "the collector runs already");
  released_ = next_ = first_tick;
  stopping_ = false;
  thread_ = std::thread([this] { main(); });
}

void Collector::release(uint64_t tick) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    released_ = std::max(released_, tick);
  }
  released_changed_.notify_one();
}

void Collector::wait_finished(uint64_t tick) {
  std::unique_lock<std::mutex> lock(mutex_);
  finished_changed_.wait(lock, [&] { return next_ >= tick || parts_.error.failed(); });
  lock.unlock();
  parts_.error.check();
}

void Collector::recall() {
  std::lock_guard<std::mutex> lock(mutex_);
  released_ = running_tick_ ? next_ + 1 : next_;
}

uint64_t Collector::pause() {
  recall();
  std::unique_lock<std::mutex> lock(mutex_);
  finished_changed_.wait(lock, [&] { return !running_tick_ || parts_.error.failed(); });
  const uint64_t next = next_;
  lock.unlock();
  parts_.error.check();
  return next;
}

PhaseTimes Collector::take_times() {
  std::lock_guard<std::mutex> lock(mutex_);
  const PhaseTimes taken = times_;
  times_ = PhaseTimes();
  return taken;
}

void Collector::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  released_changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Collector::main() {
  if (parts_.trace != nullptr) parts_.trace->name_thread("collector");
  const bool have_ticks_ended_well = attempt("collector.tick", [this] { run_ticks(); });
  const bool has_policy_ended_well =
      attempt("collector.finish", [this] { parts_.policy.finish(); });
  if (have_ticks_ended_well && has_policy_ended_well) return;
  parts_.replay.close();  // wakes whoever waits for rows
  // A waiter checks the error under this lock, so it cannot miss the call.
  std::lock_guard<std::mutex> lock(mutex_);
  running_tick_ = false;
  finished_changed_.notify_all();
}

// False: it threw, and that is the run's error if it is the first.
bool Collector::attempt(const char* operation, const std::function<void()>& part) {
  try {
    part();
    return true;
  } catch (const Failure& failure) {
    parts_.error.set({operation, next_, "collector", failure.code(), failure.what()});
  } catch (const std::exception& error) {
    parts_.error.set({operation, next_, "collector", Code::kBug, error.what()});
  }
  return false;
}

void Collector::run_ticks() {
  for (uint64_t tick = next_;;) {
    PhaseTimes times;
    {
      TraceSpan trace(parts_.trace, span::kWaitForAction);
      PhaseTimer timer(times.idle_ns);
      if (!await_release()) return;
    }
    run_tick(tick, times);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      next_ = ++tick;
      running_tick_ = false;
      times_ += times;
    }
    finished_changed_.notify_all();
  }
}

bool Collector::await_release() {
  std::unique_lock<std::mutex> lock(mutex_);
  released_changed_.wait(lock, [&] { return stopping_ || next_ < released_; });
  running_tick_ = !stopping_;
  return running_tick_;
}

void Collector::run_tick(uint64_t tick, PhaseTimes& times) {
  UpdateStep& update = parts_.update;
  {
    TraceSpan trace(parts_.trace, span::kInference);
    PhaseTimer timer(times.act_ns);
    const uint64_t* drawn_at = nullptr;
    if (parts_.noise != nullptr) {
      parts_.noise->advance(tick);
      drawn_at = parts_.noise->drawn_at();
    }
    const float* on_device =
        parts_.device_update == nullptr ? nullptr : parts_.device_update->observations();
    parts_.policy.act({update.observations(), on_device}, {tick, drawn_at}, update.actions());
  }
  float* rows;
  {
    PhaseTimer timer(times.claim_ns);
    rows = parts_.replay.claim();
  }
  if (rows == nullptr) throw Failure(Code::kState, "the replay was closed during a tick");
  Receipt step;
  {
    TraceSpan trace(parts_.trace, span::kEnvStep);
    PhaseTimer timer(times.physics_ns);
    if (update.push_pending()) {
      parts_.physics.apply_velocity_change(update.push_mask(), update.push_velocity());
    }
    step = parts_.physics.step(update.actions(), tick);
  }
  {
    TraceSpan trace(parts_.trace, span::kCollectorUpdate);
    PhaseTimer timer(times.update_ns);
    this->update(tick, step, rows);
  }
  {
    TraceSpan trace(parts_.trace, span::kReplayAdd);
    PhaseTimer timer(times.publish_ns);
    if (!parts_.replay.publish()) {
      throw Failure(Code::kState, "the replay was closed during a tick");
    }
  }
  TraceSpan trace(parts_.trace, span::kCollectorReset);
  PhaseTimer timer(times.reset_ns);
  reset(tick);
}

void Collector::update(uint64_t tick, const Receipt& step, float* rows) {
  UpdateStep& update = parts_.update;
  if (parts_.device_update == nullptr) {
    expect_operation(step, Operation::kStep);
    parts_.pool.run(parts_.num_envs, kUpdateGrain,
                    [&](int, int begin, int end) { update.update(tick, begin, end, rows); });
    return;
  }
  const auto row_floats = static_cast<uint64_t>(parts_.replay.row_width());
  expect_operation(parts_.device_update->run(step, update.arguments(tick), rows, row_floats),
                   Operation::kUpdate);
}

void Collector::reset(uint64_t tick) {
  if (parts_.reward_scale != nullptr) parts_.reward_scale->absorb(parts_.update.state());
  const int done = parts_.update.reset(tick, parts_.physics);
  if (done > 0 && parts_.noise != nullptr) parts_.noise->restart(parts_.update.reset_mask());
  if (done > 0 && parts_.device_update != nullptr) parts_.device_update->carriers_changed();
}

}  // namespace millrace
