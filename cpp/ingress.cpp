#include "ingress.h"

#include <chrono>
#include <string>

#include "status.h"

namespace millrace {
namespace {

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

const char* const kStateNames[] = {"FREE", "FILLING", "PUBLISHED", "COPYING", "COMMITTED"};

}  // namespace

Ingress::Ingress(Backend& backend, RowLayout layout, int depth, uint64_t slot_rows,
                 Doorbell& doorbell, bool has_reader, Memory::Kind slots)
    : layout_(layout),
      slot_rows_(slot_rows),
      has_reader_(has_reader),
      slots_(slots),
      doorbell_(doorbell),
      memory_(backend, slots, static_cast<uint64_t>(depth) * slot_rows * layout.row_bytes()),
      states_(static_cast<size_t>(depth)) {
  MR_CHECK(depth >= 1 && slot_rows >= 1, "ingress needs at least one slot of one row");
  for (auto& state : states_) state = SlotState::kFree;
}

int Ingress::slot_of(uint64_t row) const {
  return static_cast<int>(row / slot_rows_ % states_.size());
}

void Ingress::change(int slot, SlotState from, SlotState to) {
  SlotState actual = from;
  MR_CHECK(states_[slot].compare_exchange_strong(actual, to),
           "slot " + std::to_string(slot) + " is " + kStateNames[static_cast<int>(actual)] +
               ", not " + kStateNames[static_cast<int>(from)]);
}

float* Ingress::claim() {
  const int slot = slot_of(published_.get());
  const auto is_usable = [&] {
    const SlotState state = states_[slot].load();
    return state == SlotState::kFree || state == SlotState::kFilling;
  };
  uint64_t seen = doorbell_.count();
  if (!is_usable() && !is_closed()) {
    const uint64_t begin_ns = now_ns();
    backpressure_waits_.set(backpressure_waits_.get() + 1);
    while (!is_usable() && !is_closed()) {
      doorbell_.wait(seen);
      seen = doorbell_.count();
    }
    backpressure_wait_ns_.set(backpressure_wait_ns_.get() + now_ns() - begin_ns);
  }
  if (is_closed()) return nullptr;
  if (states_[slot].load() == SlotState::kFree) {
    change(slot, SlotState::kFree, SlotState::kFilling);
  }
  return const_cast<float*>(slot_data(slot));
}

bool Ingress::publish() {
  if (is_closed()) return false;
  const uint64_t start = published_.get();
  change(slot_of(start), SlotState::kFilling, SlotState::kPublished);
  published_.set(start + slot_rows_);
  doorbell_.ring();
  return true;
}

std::optional<PublishedSlot> Ingress::take() {
  const uint64_t start = taken_.get();
  if (start == published_.get()) return std::nullopt;
  const int slot = slot_of(start);
  change(slot, SlotState::kPublished, SlotState::kCopying);
  taken_.set(start + slot_rows_);
  return PublishedSlot{slot, start, slot_rows_};
}

const float* Ingress::slot_data(int slot) const {
  return memory_.floats() +
         static_cast<uint64_t>(slot) * slot_rows_ * static_cast<uint64_t>(layout_.width());
}

void Ingress::release(int slot) {
  change(slot, SlotState::kCopying, has_reader_ ? SlotState::kCommitted : SlotState::kFree);
  doorbell_.ring();
}

const float* Ingress::next_committed() const {
  const int slot = slot_of(read_.get());
  return states_[slot].load() == SlotState::kCommitted ? slot_data(slot) : nullptr;
}

void Ingress::finish_read() {
  const uint64_t start = read_.get();
  change(slot_of(start), SlotState::kCommitted, SlotState::kFree);
  read_.set(start + slot_rows_);
  doorbell_.ring();
}

void Ingress::restart_at(uint64_t row) {
  MR_CHECK(slots_in_flight() == 0, "rows cannot be renumbered while slots are in flight");
  MR_CHECK(row % slot_rows_ == 0, "row " + std::to_string(row) + " is inside a slot");
  published_.set(row);
  taken_.set(row);
  read_.set(row);
}

void Ingress::close() {
  if (is_closed_.exchange(true)) return;
  in_flight_at_close_ = slots_in_flight();
  doorbell_.ring();
}

uint64_t Ingress::slots_in_flight() const {
  uint64_t count = 0;
  for (const auto& state : states_) count += state.load() != SlotState::kFree;
  return count;
}

}  // namespace millrace
