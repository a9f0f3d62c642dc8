// Sampler: one-tick prefetch of batches. Two packed batches of sample_rows rows (row_stride floats
// each, as in the ring): the learner reads the hot one while the gather fills the cold one; take()
// swaps them.
//
// A request names a tick and fixes which rows may be drawn; draw i of a tick is a function of
// (seed, tick, low, high) only. At most one request is outstanding:
//   none -> requested -> gathered -> (take) -> none
// An exact request carries its range and is gathered once committed >= high, before any later copy
// (limit() tells the ring how far it may submit). A newest request takes its range when it is
// gathered: high = committed, low = oldest row that no submitted copy has claimed; later copies are
// ordered behind the gather by the stream.
// request, is_gathered, is_ready and take: the learner thread. gather: the submit thread. They may
// be the same thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "backend.h"
#include "layout.h"
#include "ring.h"

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
};

class Sampler {
 public:
  Sampler(Backend& backend, Stream& stream, RowLayout layout, uint64_t sample_rows, uint64_t seed);

  // False if this tick's request is already outstanding; throws kState if another tick's is.
  bool request(const SampleRange& range);
  bool request_newest(uint64_t tick);
  // Enqueues the requested gather once its rows are committed; true if it did.
  bool gather(const Ring& ring);
  // No row at or past this may be submitted before the outstanding gather is.
  uint64_t limit() const;

  bool is_gathered(uint64_t tick) const;  // enqueued
  bool is_ready(uint64_t tick) const;     // complete
  // Waits for the gather of `tick` and swaps: its rows, valid until the take after the next
  // request. Throws kState if that tick was not gathered.
  const float* take(uint64_t tick);
  void wait() const { event_.wait(); }          // for the gather that was enqueued last
  SampleRange taken() const { return taken_; }  // of the last take(); learner thread

  std::optional<SampleRequest> outstanding() const;
  void restart();  // forgets the outstanding request

  uint64_t device_bytes() const { return batches_[0].bytes() + batches_[1].bytes(); }

 private:
  bool add(const SampleRange& range, bool is_newest);

  Stream& stream_;
  const uint64_t sample_rows_;
  const uint64_t seed_;
  Memory batches_[2];
  Event event_;
  mutable std::mutex mutex_;  // guards request_ and hot_
  std::optional<SampleRequest> request_;
  int hot_ = 0;
  SampleRange taken_{0, 0, 0};
};

}  // namespace millrace
