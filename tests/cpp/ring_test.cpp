// Tests for cpp/ring.cpp.
#include "ring.h"

#include <gtest/gtest.h>

#include <deque>

#include "delayed_backend.h"
#include "philox.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

// A ring, its ingress and a delayed device on one thread.
struct Rig {
  Rig(RowLayout row_layout, int depth, uint64_t slot_rows, uint64_t capacity)
      : layout(row_layout),
        stream(backend),
        ingress(backend, layout, depth, slot_rows, doorbell),
        ring(backend, stream, layout, capacity, ingress) {}

  void publish() {
    write_tagged_rows(ingress.published_rows(), ingress.slot_rows(), layout, ingress.claim());
    ingress.publish();
  }
  bool step() { return DelayedDevice::of(backend).step(); }
  void settle() {
    ring.submit(UINT64_MAX);
    while (step()) {
    }
    ring.drain();
  }
  const float* stored(uint64_t row) const {
    return ring.storage() + row % ring.capacity_rows() * ring.row_stride();
  }

  RowLayout layout;
  Backend backend{delayed_backend()};
  Stream stream;
  Doorbell doorbell;
  Ingress ingress;
  Ring ring;
};

TEST(Ring, RowsCommitOnlyAfterTheirCopyWasObserved) {
  Rig rig(kTaggedLayout, 2, 4, 12);
  rig.publish();
  EXPECT_EQ(rig.ring.submit(UINT64_MAX), 1);
  EXPECT_EQ(rig.ring.submitted_rows(), 4u);
  EXPECT_EQ(rig.ring.drain(), 0);
  rig.step();  // the copy
  EXPECT_EQ(rig.ring.drain(), 0);
  EXPECT_EQ(rig.ring.committed_rows(), 0u);
  rig.step();  // the event
  EXPECT_EQ(rig.ring.drain(), 1);
  EXPECT_EQ(rig.ring.committed_rows(), 4u);
}

TEST(Ring, ASlotIsNotReusedBeforeItsCopyWasObserved) {
  Rig rig(kTaggedLayout, 1, 4, 12);
  rig.publish();
  rig.ring.submit(UINT64_MAX);
  EXPECT_EQ(rig.ingress.slots_in_flight(), 1u);  // a claim would wait
  while (rig.step()) {
  }
  EXPECT_EQ(rig.ingress.slots_in_flight(), 1u);  // complete, but nobody looked
  rig.ring.drain();
  EXPECT_EQ(rig.ingress.slots_in_flight(), 0u);
  rig.publish();
  for (uint64_t row = 0; row < 4; ++row) {
    EXPECT_EQ(read_tagged(rig.stored(row), rig.layout), row);
  }
}

TEST(Ring, ACopySplitsAtTheWrap) {
  Rig rig(kTaggedLayout, 1, 4, 10);  // rows 8..11 lie at 8, 9, 0, 1
  for (int i = 0; i < 3; ++i) {
    rig.publish();
    rig.ring.submit(UINT64_MAX);
    // two pieces and the event in the third round, one piece and the event before
    EXPECT_EQ(DelayedDevice::of(rig.backend).queued(), i == 2 ? 3u : 2u);
    rig.settle();
  }
  for (uint64_t row = 2; row < 12; ++row) {
    EXPECT_EQ(read_tagged(rig.stored(row), rig.layout), row);
  }
  EXPECT_EQ(rig.ring.size(), 10u);
  EXPECT_EQ(rig.ring.wraps(), 1u);
  EXPECT_EQ(rig.ring.oldest_row(), 2u);
}

TEST(Ring, DeviceRowsArePaddedAndHostRowsAreNot) {
  Rig rig(kPaddedLayout, 1, 4, 10);
  EXPECT_EQ(rig.ring.bytes(), 10u * 64);
  EXPECT_EQ(rig.ingress.bytes(), 4u * 52);
  rig.publish();
  rig.settle();
  for (uint64_t row = 0; row < 4; ++row) EXPECT_EQ(read_tagged(rig.stored(row), rig.layout), row);
}

TEST(Ring, NothingPastTheLimitIsSubmitted) {
  Rig rig(kTaggedLayout, 2, 4, 12);
  rig.publish();
  rig.publish();
  EXPECT_EQ(rig.ring.submit(3), 0);
  EXPECT_EQ(rig.ring.submit(4), 1);
  EXPECT_EQ(rig.ring.submit(7), 0);
  EXPECT_EQ(rig.ring.submit(8), 1);
}

TEST(Ring, RefusesASlotThatDoesNotFit) { EXPECT_THROW(Rig(kTaggedLayout, 1, 5, 4), Failure); }

// Against a list model: any capacity 1..17 with any chunk that fits, copies completing at random.
TEST(Ring, EqualsAListForEveryCapacityAndChunk) {
  for (uint64_t capacity = 1; capacity <= 17; ++capacity) {
    for (uint64_t chunk = 1; chunk <= capacity; ++chunk) {
      const int depth = static_cast<int>(1 + (capacity + chunk) % 4);
      Rig rig(kTaggedLayout, depth, chunk, capacity);
      std::deque<uint64_t> model;
      const RandomSource random = random_source(capacity, kStreamEvent, static_cast<u32>(chunk), 0);
      for (u32 insert = 0; insert < 50; ++insert) {
        rig.publish();
        rig.ring.submit(UINT64_MAX);
        for (u32 step = random_index(random, insert, 4); step > 0; --step) rig.step();
        rig.ring.drain();
        while (rig.ingress.slots_in_flight() == static_cast<uint64_t>(depth))
          rig.ring.wait_oldest();
        const uint64_t committed = rig.ring.committed_rows();
        model.clear();
        for (uint64_t row = rig.ring.oldest_row(); row < committed; ++row) model.push_back(row);
        ASSERT_EQ(rig.ring.size(), std::min(committed, capacity));
        ASSERT_LE(rig.ring.submitted_rows(), rig.ingress.published_rows());
        for (uint64_t row : model) ASSERT_EQ(read_tagged(rig.stored(row), rig.layout), row);
        for (uint64_t row = rig.ring.submitted_rows(); row < capacity; ++row) {
          ASSERT_EQ(read_tagged(rig.stored(row), rig.layout), UINT64_MAX);  // never written
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace
