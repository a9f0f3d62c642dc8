#include "ring.h"

#include <algorithm>
#include <string>

#include "status.h"

namespace millrace {

Ring::Ring(Backend& backend, Stream& stream, RowLayout layout, uint64_t capacity_rows,
           Ingress& ingress)
    : stream_(stream),
      layout_(layout),
      capacity_rows_(capacity_rows),
      ingress_(ingress),
      memory_(backend, Memory::Kind::kDevice, capacity_rows * layout.row_stride_bytes()) {
  MR_CHECK(capacity_rows >= ingress.slot_rows(),
           "a slot of " + std::to_string(ingress.slot_rows()) + " rows does not fit a ring of " +
               std::to_string(capacity_rows));
  MR_CHECK(capacity_rows < (uint64_t{1} << 32), "samples index fewer than 2^32 rows");
  for (int slot = 0; slot < ingress.depth(); ++slot) {
    events_.push_back(std::make_unique<Event>(backend));
  }
}

uint64_t Ring::size() const { return std::min(committed_rows(), capacity_rows_); }

uint64_t Ring::oldest_row() const {
  const uint64_t submitted = submitted_rows();
  return submitted > capacity_rows_ ? submitted - capacity_rows_ : 0;
}

void Ring::copy_slot(const PublishedSlot& slot) {
  const uint64_t width = static_cast<uint64_t>(layout_.width());
  const float* source = ingress_.slot_data(slot.slot);
  const CopyDirection direction =
      ingress_.is_on_device() ? CopyDirection::kDeviceToDevice : CopyDirection::kHostToDevice;
  for (uint64_t done = 0; done < slot.rows;) {
    const uint64_t at = (slot.start_row + done) % capacity_rows_;
    const uint64_t rows = std::min(slot.rows - done, capacity_rows_ - at);
    stream_.copy_rows(direction, storage() + at * row_stride(), layout_.row_stride_bytes(),
                      source + done * width, layout_.row_bytes(), layout_.row_bytes(), rows);
    done += rows;
  }
}

int Ring::submit(uint64_t limit) {
  int count = 0;
  while (ingress_.taken_rows() + ingress_.slot_rows() <= limit) {
    const std::optional<PublishedSlot> slot = ingress_.take();
    if (!slot) break;
    MR_CHECK(slot->start_row == submitted_rows(), "slots are not contiguous");
    {
      StreamSpan span(trace_, span::kGpuStorageCopy);
      copy_slot(*slot);
    }
    Event* event = events_[static_cast<size_t>(slot->slot)].get();
    stream_.record(*event);
    in_flight_.push_back({*slot, event});
    submitted_.set(slot->start_row + slot->rows);
    ++count;
  }
  return count;
}

int Ring::drain() {
  int count = 0;
  while (!in_flight_.empty() && in_flight_.front().event->is_complete()) {
    const PublishedSlot slot = in_flight_.front().source;
    in_flight_.pop_front();
    MR_CHECK(slot.start_row == committed_rows(), "copies do not commit contiguously");
    committed_.set(slot.start_row + slot.rows);
    ingress_.release(slot.slot);
    ++count;
  }
  return count;
}

void Ring::wait_oldest() {
  MR_CHECK(!in_flight_.empty(), "no copy is in flight");
  in_flight_.front().event->wait();
  drain();
}

void Ring::restart_at(uint64_t committed) {
  MR_CHECK(in_flight_.empty(), "rows cannot be renumbered while copies are in flight");
  submitted_.set(committed);
  committed_.set(committed);
}

}  // namespace millrace
