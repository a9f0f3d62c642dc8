// Ring: the one device-resident replay store, capacity_rows rows of row_stride floats. Row r of the
// run lies at r mod capacity_rows; row counters are absolute, monotone and never wrap.
//
//   published >= submitted >= committed        size = min(committed, capacity_rows)
//
// submit() enqueues the copy of every published slot (two pieces at the wrap), drain() observes the
// copies in order of submission and only then moves `committed` and gives the slot back. A row is
// readable from when it is committed until a copy over it is submitted: [max(0, submitted -
// capacity), committed). All on the submit thread; counters may be read by any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "backend.h"
#include "ingress.h"
#include "layout.h"
#include "stream_trace.h"

namespace millrace {

class Ring {
 public:
  Ring(Backend& backend, Stream& stream, RowLayout layout, uint64_t capacity_rows,
       Ingress& ingress);
  void trace_with(StreamTrace* trace) { trace_ = trace; }

  // Submits published slots that end at or before row `limit`; returns how many.
  int submit(uint64_t limit);
  // Commits every copy that is complete; returns how many.
  int drain();
  // Waits for the oldest copy in flight, then drains.
  void wait_oldest();
  bool has_copies_in_flight() const { return !in_flight_.empty(); }

  uint64_t submitted_rows() const { return submitted_.get(); }
  uint64_t committed_rows() const { return committed_.get(); }
  uint64_t size() const;
  uint64_t wraps() const { return committed_rows() / capacity_rows_; }
  // The oldest row that no submitted copy has claimed.
  uint64_t oldest_row() const;
  uint64_t capacity_rows() const { return capacity_rows_; }
  uint64_t row_stride() const { return static_cast<uint64_t>(layout_.row_stride()); }
  float* storage() const { return memory_.floats(); }
  Memory& memory() { return memory_; }
  uint64_t bytes() const { return memory_.bytes(); }

  // After the storage was filled from a checkpoint: rows [.., committed) are there.
  void restart_at(uint64_t committed);

 private:
  struct Copy {
    PublishedSlot source;
    Event* event;
  };
  void copy_slot(const PublishedSlot& slot);

  Stream& stream_;
  const RowLayout layout_;
  const uint64_t capacity_rows_;
  Ingress& ingress_;
  Memory memory_;
  StreamTrace* trace_ = nullptr;
  std::vector<std::unique_ptr<Event>> events_;  // one for each slot
  std::deque<Copy> in_flight_;
  RowCounter submitted_;
  RowCounter committed_;
};

}  // namespace millrace
