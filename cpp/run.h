// Run: a training session. It owns every part, allocates all of it when it is opened, and drives
// the ticks from the learner thread. With the replay on the CPU, or on a device that has one submit
// thread for everything, that is also the submit thread; another device has one of its own, and the
// learner thread then only waits for it.
//
// Synchronous schedule of tick t, from boundary to boundary:
//   publish the policy snapshot, freeze the sample range of t + 1, release t;
//   while the collector acts, steps, updates, resets and publishes t:
//     updates_per_tick learner updates on batch t, progress() after each
//   wait until t is committed and batch t + 1 is gathered.
// Asynchronous: the collector may be max_lead_ticks ahead; a learner tick starts once its tick is
// committed, samples the newest committed rows, and publishes its snapshot when it ends.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "carrier.h"
#include "collector.h"
#include "learner.h"
#include "learner_place.h"
#include "noise_repetition.h"
#include "reward_scale.h"
#include "run_plan.h"
#include "selected_program.h"
#include "session.h"
#include "sim_parts.h"
#include "submit_thread.h"
#include "update_place.h"

namespace millrace {

class Run : public Session {
 public:
  explicit Run(const nlohmann::json& config);
  // On a backend that a test brings, in the place of the configured device.
  Run(const nlohmann::json& config, const BackendApi& backend);
  ~Run() override;

  nlohmann::json facts() const override;
  nlohmann::json advance(uint64_t ticks) override;
  void stop() override { stop_requested_.store(true, std::memory_order_relaxed); }
  const StateRegistry& registry() const override { return registry_; }
  void restored(bool with_replay) override;
  const FirstError& first_error() const override { return error_; }

 private:
  // Words of a checkpoint; learner thread only.
  enum Counter {
    kTick,           // ticks that the learner has finished
    kCollectorTick,  // ticks that the collector has finished; the same in a synchronous run
    kUpdates,        // critic updates
    kHasBatch,       // 1 if a batch for the next tick was asked for
    kCounterCount
  };

  void make_learner();
  void exchange_with_collector();
  void tick_synchronous();
  void tick_asynchronous();
  void wait_for_collector(uint64_t tick);
  const float* take_batch(uint64_t tick);
  void learn(const float* batch);
  bool wants_submit_thread() const {
    return !backend_.is_host_memory() && !backend_.has_one_submit_thread();
  }
  bool has_submit_thread() const { return submit_thread_ != nullptr; }
  void settle();
  void finish_tick();
  void normalise();
  void come_to_rest();
  void register_state();
  void fail(Code code, const std::string& message);
  nlohmann::json report(uint64_t ticks, uint64_t updates, uint64_t elapsed_ns);
  void refuse_divergence(const nlohmann::json& metrics, uint64_t updates);
  nlohmann::json replay_counters() const;
  nlohmann::json graph_facts() const;
  nlohmann::json learner_facts() const;
  SelectionSpec selection_spec() const;
  nlohmann::json selection_facts() const;

  FirstError error_;
  const RunPlan plan_;
  Backend backend_;
  const UpdatePlace update_place_;
  const LearnerPlace learner_place_;
  SimParts sim_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<SelectionCache> selections_;  // null: `graph: auto` takes the graph
  std::unique_ptr<Stream> learner_stream_;      // null: the learner runs on the host
  std::unique_ptr<ActingPolicy> policy_;        // outlives what the learner still copies there
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<NoiseRepetition> noise_repetition_;  // null: noise of its own for each tick
  std::unique_ptr<RewardScale> reward_scale_;          // null: rewards are taken as they are
  std::unique_ptr<Replay> replay_;
  std::unique_ptr<SubmittedUpdate> device_update_;  // null: the host runs the update step
  std::unique_ptr<SubmitThread> submit_thread_;     // null: the learner thread submits
  std::unique_ptr<Collector> collector_;
  CarrierTable carriers_;
  StateRegistry registry_;

  uint64_t counters_[kCounterCount] = {};
  PhaseTimes times_;
  bool is_started_ = false;
  std::atomic<bool> stop_requested_{false};
};

}  // namespace millrace
