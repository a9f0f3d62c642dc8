// Trace: spans and counters of all threads, streamed to a Chrome/Perfetto JSON file. Recording
// takes one short lock and never waits for the file: a writer thread drains a bounded buffer, and
// what finds the buffer full, or would make the file larger than its cap, is dropped and counted.
// The file is complete JSON after close(). A trace that cannot be written is an error of the run.
//
// A null Trace* means off: a TraceSpan then costs one comparison. Names are string literals; the
// part before the slash is the category. Any thread may record; close() once nobody records any
// more.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "status.h"

namespace millrace {

// The names that analysis scripts know.
namespace span {
constexpr const char* kWaitForData = "learner/wait_for_data";
constexpr const char* kUpdateRewardStatistics = "learner/update_reward_stats";
constexpr const char* kWaitForReplayBatch = "learner/wait_for_replay_batch";
constexpr const char* kReplaySample = "learner/replay_sample";
// All updates of a tick. What lies inside costs the tick nothing.
constexpr const char* kUpdateWindow = "learner/update_window";
constexpr const char* kUpdateCritic = "learner/update_critic";
constexpr const char* kInference = "learner/inference";
constexpr const char* kTraining = "learner/training_e2e";
constexpr const char* kReplayAdd = "replay/add";
constexpr const char* kIngressBackpressure = "replay/ingress_backpressure";
constexpr const char* kIngressCommit = "replay_pipeline/ingress_commit";
constexpr const char* kPrepareRequest = "replay_pipeline/gpu_batch_prepare_request";
constexpr const char* kGatherSubmit = "replay_pipeline/gpu_batch_gather_submit";
constexpr const char* kWaitForBatch = "replay_pipeline/gpu_wait_for_batch";
constexpr const char* kHotColdSwap = "replay_pipeline/hot_cold_swap";
constexpr const char* kGpuStorageCopy = "gpu/replay_pipeline_storage_h2d";
constexpr const char* kGpuBatchGather = "gpu/replay_pipeline_batch_gather";
constexpr const char* kGpuBatchCopy = "gpu/replay_pipeline_batch_copy";
constexpr const char* kWaitForAction = "collector/wait_for_learner_action";
constexpr const char* kEnvStep = "collector/env_step";
constexpr const char* kUpdateSubmit = "submit/update_step";
constexpr const char* kGpuUpdateUpload = "gpu/update_step_h2d";
constexpr const char* kGpuUpdate = "gpu/update_step";
constexpr const char* kGpuUpdateDownload = "gpu/update_step_d2h";
// Observations up, where they are not there yet, the policy's program and actions down.
constexpr const char* kGpuPolicy = "gpu/policy";
// One update, of the critics alone or of critics and actor.
constexpr const char* kGpuLearner = "gpu/learner_update";
constexpr const char* kCollectorUpdate = "collector/update_step";
constexpr const char* kCollectorReset = "collector/reset";
}  // namespace span

namespace trace_counter {
constexpr const char* kPolicyVersion = "policy_version";
constexpr const char* kReplaySize = "replay_size";
}  // namespace trace_counter

class Trace {
 public:
  // Throws kResource when the file cannot be made.
  Trace(const std::string& path, uint64_t max_bytes, FirstError& first_error);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static uint64_t now_ns();
  // The name of the calling thread's track.
  void name_thread(const char* name);
  void complete(const char* name, uint64_t begin_ns, uint64_t end_ns);
  // The same for a track that is no thread: a device's stream.
  void name_track(uint32_t track, const char* name);
  void complete_on(uint32_t track, const char* name, uint64_t begin_ns, uint64_t end_ns);
  void counter(const char* name, double value);
  void close();

  uint64_t written() const { return written_.load(); }
  uint64_t dropped() const { return dropped_.load(); }

 private:
  enum class Kind { kThreadName, kSpan, kCounter };
  struct Record {
    Kind kind;
    uint32_t track;
    const char* name;
    uint64_t begin_ns;
    uint64_t end_ns;
    double value;
  };
  void add(const Record& record);
  void write_loop();
  void write(const std::vector<Record>& records);
  void write_text(const std::string& text);

  const uint64_t max_bytes_;
  const uint64_t start_ns_;
  FirstError& first_error_;
  std::FILE* file_;
  uint64_t bytes_ = 0;       // writer thread
  bool has_failed_ = false;  // writer thread
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> dropped_{0};
  std::mutex mutex_;  // guards the three below
  std::condition_variable changed_;
  std::vector<Record> pending_;
  bool is_closing_ = false;
  std::thread writer_;
};

// Records the time from here to the end of the scope.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, const char* name)
      : trace_(trace), name_(name), begin_ns_(trace != nullptr ? Trace::now_ns() : 0) {}
  ~TraceSpan() {
    if (trace_ != nullptr) trace_->complete(name_, begin_ns_, Trace::now_ns());
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace* const trace_;
  const char* const name_;
  const uint64_t begin_ns_;
};

}  // namespace millrace
