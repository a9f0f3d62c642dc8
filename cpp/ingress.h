// Ingress: `depth` fixed slots of `slot_rows` packed rows between the collector and the ring.
//
// Slot states: FREE -> FILLING -> PUBLISHED -> COPYING -> FREE, each step asserted. The collector
// thread owns the first two steps (claim, publish), the submit thread the others (take, release). A
// slot is released only after its copy was observed complete, so a full ingress holds the collector
// back: that is counted and timed. With a reader (statistics that need every row once, in order) a
// slot stays COMMITTED until the learner thread has read it: no second copy of a row is kept for
// it. Slots are used in order; row r of the run lies in slot (r / slot_rows) mod depth. Memory:
// depth * slot_rows * row_bytes, and nothing that grows with capacity.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend.h"
#include "doorbell.h"
#include "layout.h"

namespace millrace {

// One writer each; two cache-line pairs apart, so that writers do not slow each other.
struct alignas(128) RowCounter {
  std::atomic<uint64_t> value{0};

  uint64_t get() const { return value.load(std::memory_order_acquire); }
  void set(uint64_t rows) { value.store(rows, std::memory_order_release); }
};

struct PublishedSlot {
  int slot;
  uint64_t start_row;  // absolute
  uint64_t rows;
};

class Ingress {
 public:
  // Slots are pinned host memory, or device memory for an update step that runs there.
  Ingress(Backend& backend, RowLayout layout, int depth, uint64_t slot_rows, Doorbell& doorbell,
          bool has_reader = false, Memory::Kind slots = Memory::Kind::kPinnedHost);

  // Collector thread.
  // Memory for slot_rows rows of layout.width() floats; waits while every slot is in flight. Null
  // after close(). Claiming again before publish() gives the same slot.
  float* claim();
  // The claimed slot's rows are complete. False after close(): the rows are not taken over.
  bool publish();

  // Submit thread.
  std::optional<PublishedSlot> take();
  const float* slot_data(int slot) const;
  void release(int slot);

  // Learner thread, with a reader: the rows of the oldest committed slot that was not read, null if
  // there is none; finish_read() gives that slot back.
  const float* next_committed() const;
  void finish_read();

  // Rows count from here on; only while no slot is in use.
  void restart_at(uint64_t row);

  // Any thread.
  void close();
  bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }
  uint64_t published_rows() const { return published_.get(); }
  uint64_t taken_rows() const { return taken_.get(); }
  uint64_t slots_in_flight() const;  // filling, published or copying
  uint64_t in_flight_at_close() const { return in_flight_at_close_.load(); }
  uint64_t backpressure_waits() const { return backpressure_waits_.get(); }
  uint64_t backpressure_wait_ns() const { return backpressure_wait_ns_.get(); }
  uint64_t bytes() const { return memory_.bytes(); }
  bool is_on_device() const { return slots_ == Memory::Kind::kDevice; }
  uint64_t slot_rows() const { return slot_rows_; }
  int depth() const { return static_cast<int>(states_.size()); }

 private:
  enum class SlotState : uint32_t { kFree, kFilling, kPublished, kCopying, kCommitted };
  void change(int slot, SlotState from, SlotState to);
  int slot_of(uint64_t row) const;

  const RowLayout layout_;
  const uint64_t slot_rows_;
  const bool has_reader_;
  const Memory::Kind slots_;
  Doorbell& doorbell_;
  Memory memory_;
  std::vector<std::atomic<SlotState>> states_;
  RowCounter published_;             // written by the collector
  RowCounter backpressure_waits_;    // written by the collector
  RowCounter backpressure_wait_ns_;  // written by the collector
  RowCounter taken_;                 // written by the submit thread
  RowCounter read_;                  // written by the learner thread
  std::atomic<bool> is_closed_{false};
  std::atomic<uint64_t> in_flight_at_close_{0};
};

}  // namespace millrace
