// Where the time of a stretch of ticks went, per phase, on the threads that spent it.
#pragma once

#include <chrono>
#include <cstdint>

namespace millrace {

struct PhaseTimes {
  // collector thread
  uint64_t act_ns = 0;
  uint64_t claim_ns = 0;  // waiting for a free ingress slot: back-pressure
  uint64_t physics_ns = 0;
  uint64_t update_ns = 0;  // update step and row packing
  uint64_t publish_ns = 0;
  uint64_t reset_ns = 0;
  uint64_t idle_ns = 0;  // waiting for the learner to release a tick
  // learner thread
  uint64_t learn_ns = 0;
  uint64_t replay_ns = 0;    // progress(): copy, commit, gather
  uint64_t boundary_ns = 0;  // waiting for the collector to finish the tick

  PhaseTimes& operator+=(const PhaseTimes& other) {
    act_ns += other.act_ns;
    claim_ns += other.claim_ns;
    physics_ns += other.physics_ns;
    update_ns += other.update_ns;
    publish_ns += other.publish_ns;
    reset_ns += other.reset_ns;
    idle_ns += other.idle_ns;
    learn_ns += other.learn_ns;
    replay_ns += other.replay_ns;
    boundary_ns += other.boundary_ns;
    return *this;
  }
};

inline uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// Adds the time from construction to destruction to a phase.
class PhaseTimer {
 public:
  explicit PhaseTimer(uint64_t& phase_ns) : phase_ns_(phase_ns), start_ns_(now_ns()) {}
  ~PhaseTimer() { phase_ns_ += now_ns() - start_ns_; }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  uint64_t& phase_ns_;
  uint64_t start_ns_;
};

}  // namespace millrace
