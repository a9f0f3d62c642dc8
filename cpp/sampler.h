// Sampler: one-tick prefetch of batches. Two batches of sample_rows rows, their columns in the
// order of a BatchLayout: the learner reads the hot one while the gather fills the cold one; take()
// swaps them. A gather writes memory of the ring's side; where the learner is on the other side (a
// ring on the device and a learner on the host, or a ring in host memory and a learner on the
// device) a copy delivers it, behind the gather and one tick ahead like it.
//
// A request names a tick and fixes which rows may be drawn; draw i of a tick is a function of
// (seed, tick, low, high) only. At most one request is outstanding:
//   none -> requested -> gathered -> (take) -> none
// An exact request carries its range and is gathered once committed >= high, before any later copy
// (limit() tells the ring how far it may submit). A newest request takes its range when it is
// gathered: high = committed, low = oldest row that no submitted copy has claimed; later copies are
// ordered behind the gather by the stream.
// request, is_ready and take: the learner thread. gather and observe: the submit thread. They may
// be the same thread; if not, the learner makes no call to the device once observe() has said true.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "backend.h"
#include "gather.h"
#include "ring.h"
#include "stream_trace.h"

namespace millrace {

struct SampleRange {
  uint64_t tick;
  uint64_t low;   // absolute row
  uint64_t high;  // one past the last
};

struct SampleRequest {
  SampleRange range;
  bool is_newest;  // the range is fixed when it is gathered
  bool is_gathered;
  uint64_t gather;   // its number among all gathers, from 1; 0 before
  bool is_observed;  // complete, and the submit thread has seen it
};

struct SamplerSpec {
  uint64_t sample_rows;
  uint64_t seed;
  BatchColumns columns;
  Memory::Kind gathered = Memory::Kind::kDevice;  // what the gather writes
  std::optional<Memory::Kind> delivered;          // what the learner reads, if it is not that
};

class Sampler {
 public:
  // `ring_stream` runs the gather; `stream`, of `backend`, the delivery. Batches are memory of
  // `backend`. They are the same stream unless the ring is in host memory of its own.
  Sampler(Backend& backend, Stream& ring_stream, Stream& stream, const SamplerSpec& spec);
  void trace_with(StreamTrace* trace) { trace_ = trace; }

  // False if this tick's request is already outstanding; throws kState if another tick's is.
  bool request(const SampleRange& range);
  bool request_newest(uint64_t tick);
  // Enqueues the requested gather once its rows are committed; true if it did.
  bool gather(const Ring& ring);
  // Whether the enqueued gather is complete, once for each; with `wait` it waits for it. False if
  // there is none that is new.
  bool observe(bool wait);
  // No row at or past this may be submitted before the outstanding gather is.
  uint64_t limit() const;

  bool is_gathered(uint64_t tick) const;  // enqueued
  bool is_ready(uint64_t tick) const;     // complete
  // Waits for the batch of `tick` and swaps: its rows, valid until the take after the next
  // request. Throws kState if that tick was not gathered.
  const float* take(uint64_t tick);
  SampleRange taken() const { return taken_; }  // of the last take(); learner thread

  std::optional<SampleRequest> outstanding() const;
  void restart();  // forgets the outstanding request

  uint64_t bytes(Memory::Kind kind) const;

 private:
  struct Batch {
    std::unique_ptr<Memory> gathered, delivered;

    float* floats() const { return (delivered ? delivered : gathered)->floats(); }
  };
  bool add(const SampleRange& range, bool is_newest);
  void enqueue(const Ring& ring, const SampleRange& range, const Batch& batch);

  Stream& ring_stream_;
  Stream& stream_;
  const SamplerSpec spec_;
  Batch batches_[2];
  StreamTrace* trace_ = nullptr;
  Event event_;
  mutable std::mutex mutex_;  // guards request_ and hot_
  std::optional<SampleRequest> request_;
  int hot_ = 0;
  SampleRange taken_{0, 0, 0};
  uint64_t gathers_ = 0;  // submit thread
};

}  // namespace millrace
