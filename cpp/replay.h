// Replay: the way of the rows from the collector to the learner's batch: ingress -> ring -> sampler
// on one in-order stream of the device. With the ring in host memory (pipeline.h) its copies and
// gathers run on the host, and the device's stream only delivers batches.
//
// Threads: one collector (claim, publish), one learner (request.., ready, wait_ready, wait_settled,
// take, taken, next_committed, finish_read), one submit thread (progress, work); learner
// and submit thread may be the same. counters() and close() may be called by any thread. A thread
// that fails sets the FirstError and then calls close(); every other one then fails with that error
// as its cause.
//
// Synchronous tick t: request(t + 1); release action t; progress(false) between updates;
// progress(true) at the boundary; take(t + 1). The boundary needs no look at the collector: the
// range was computed before the action was released.
// Asynchronous: request_newest(t); progress(true); take(t).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "backend.h"
#include "batch_layout.h"
#include "device_memory.h"
#include "doorbell.h"
#include "ingress.h"
#include "layout.h"
#include "pipeline.h"
#include "ring.h"
#include "sampler.h"
#include "state_registry.h"
#include "status.h"
#include "stream_trace.h"
#include "trace.h"

namespace millrace {

struct ReplaySpec {
  RowLayout layout;
  uint64_t num_envs;       // rows of one slot
  uint64_t capacity_rows;  // at least (depth + 1) * num_envs
  int depth;               // ingress slots
  uint64_t sample_rows;    // rows of one batch: all updates of a tick
  uint64_t seed;
  uint64_t threshold_rows;  // no batch before so many rows
  Pipeline pipeline = Pipeline::kDeviceResident;
  Place batch_place = Place::kDevice;  // where the learner reads
  BatchLayout batch_layout = BatchLayout::kRow;
  bool has_reader = false;     // next_committed() is used: slots wait for it
  Place slots = Place::kHost;  // where rows are packed
};

struct ReplayCounters {
  uint64_t published, submitted, committed, size, wraps;  // rows; wraps: times round the ring
  uint64_t backpressure_waits, backpressure_wait_ns, in_flight_at_close;
};

class Replay {
 public:
  Replay(Backend& backend, const ReplaySpec& spec, FirstError& first_error, Trace* trace = nullptr);

  // num_envs rows of layout.width() floats, row = environment; null after close().
  float* claim();
  // False after close(): those rows are counted in in_flight_at_close.
  bool publish();

  // Fixes the rows of the batch of `tick`: high = published + num_envs (the rows that the action to
  // be released next will make), low = max(0, high - capacity). False if high is below the
  // threshold: no batch for that tick. True also if that very request is outstanding already.
  bool request(uint64_t tick);
  // The same with the range fixed when the gather is enqueued: high = committed, low = max(0,
  // submitted - capacity). False while fewer rows than the threshold are committed.
  bool request_newest(uint64_t tick);
  bool ready(uint64_t tick) const;
  // Blocks until the batch of `tick` is gathered by the submit thread; false after close().
  bool wait_ready(uint64_t tick) const;
  // sample_rows rows, batch_stride() floats apart; valid until the next take().
  const float* take(uint64_t tick);
  SampleRange taken() const { return sampler_.taken(); }
  int row_width() const { return spec_.layout.width(); }
  int batch_stride() const { return static_cast<int>(columns_.stride); }

  // num_envs committed rows of layout.width() floats in host memory, every row once and in order,
  // for statistics; null if all were read. finish_read() gives them back.
  const float* next_committed() const { return ingress_.next_committed(); }
  void finish_read() { ingress_.finish_read(); }

  // With a submit thread of its own: what progress(true) does, done by that thread. Blocks until
  // the outstanding request is gathered and complete and every row published when this was called
  // is committed; returns early after close().
  void wait_settled() const;

  // drain -> gather -> submit. With `wait`: until the outstanding request is gathered and complete
  // and every row published when it was called is committed; returns early after close().
  void progress(bool wait);
  // For a submit thread of its own: does what there is to do; false if there was nothing. The
  // doorbell rings whenever that may have changed.
  bool work();
  Doorbell& doorbell() { return doorbell_; }
  // Submit thread, at its end: writes the device's spans that are still out.
  void finish_trace();

  ReplayCounters counters() const;
  // Slots in host memory, and with a ring in host memory the ring.
  uint64_t host_bytes() const;
  // Pinned batches.
  uint64_t host_batch_bytes() const;
  uint64_t device_bytes() const;
  uint64_t threshold_rows() const { return spec_.threshold_rows; }

  // The ring and its counters, all of the replay part. Saved only while nothing is in flight and no
  // other thread works.
  void register_state(StateRegistry& registry);
  // After a checkpoint was written into the registered tensors; without the replay it starts empty.
  // The next progress() gathers the outstanding request again: the same rows as before.
  void restored(bool with_replay);
  void close();
  bool is_closed() const { return ingress_.is_closed(); }

 private:
  enum SavedWord { kCommitted, kHasRequest, kIsNewest, kTick, kLow, kHigh, kSavedWords };
  bool advance();  // one pass of drain -> gather -> submit; true if anything moved
  void wait_for_copy();
  void remember();

  bool is_ring_on_device() const { return host_ == nullptr; }
  Backend& ring_backend() { return host_ != nullptr ? *host_ : backend_; }
  Stream& ring_stream() { return host_ != nullptr ? *host_stream_ : stream_; }
  SamplerSpec sampler_spec() const;

  const ReplaySpec spec_;
  const BatchColumns columns_;
  Backend& backend_;
  FirstError& first_error_;
  Trace* const trace_;
  const std::unique_ptr<Backend> host_;  // of a ring in host memory
  Doorbell doorbell_;
  Stream stream_;
  const std::unique_ptr<Stream> host_stream_;  // of a ring in host memory
  std::unique_ptr<StreamTrace> stream_trace_;
  Ingress ingress_;
  Ring ring_;
  Sampler sampler_;
  std::unique_ptr<DeviceMemory> checkpoint_access_;
  std::mutex saved_mutex_;
  uint64_t saved_[kSavedWords] = {};
};

}  // namespace millrace
