// Tests for cpp/ingress.cpp.
#include "ingress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "status.h"

namespace millrace {
namespace {

constexpr RowLayout kLayout{3, 1, 1};  // width 12
constexpr auto kLongEnough = std::chrono::milliseconds(30);

class IngressTest : public testing::Test {
 protected:
  Ingress ingress_of(int depth, uint64_t slot_rows) {
    return Ingress(backend_, kLayout, depth, slot_rows, doorbell_);
  }

  Backend backend_{backend_cpu()};
  Doorbell doorbell_;
};

TEST_F(IngressTest, HostMemoryIsDepthTimesSlotRowsTimesRowBytes) {
  EXPECT_EQ(ingress_of(2, 512).bytes(), 2u * 512 * 48);
  EXPECT_EQ(ingress_of(7, 3).bytes(), 7u * 3 * 48);
}

TEST_F(IngressTest, SlotsComeInOrderWithContiguousRows) {
  Ingress ingress = ingress_of(2, 4);
  EXPECT_FALSE(ingress.take());
  for (uint64_t tick = 0; tick < 5; ++tick) {
    float* slot = ingress.claim();
    EXPECT_EQ(ingress.claim(), slot);  // until it is published
    EXPECT_TRUE(ingress.publish());
    EXPECT_EQ(ingress.published_rows(), (tick + 1) * 4);
    const auto taken = ingress.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->slot, static_cast<int>(tick % 2));
    EXPECT_EQ(taken->start_row, tick * 4);
    EXPECT_EQ(taken->rows, 4u);
    EXPECT_EQ(ingress.slot_data(taken->slot), slot);
    ingress.release(taken->slot);
  }
  EXPECT_EQ(ingress.backpressure_waits(), 0u);
}

TEST_F(IngressTest, AFullIngressHoldsTheCollectorUntilARelease) {
  Ingress ingress = ingress_of(1, 4);
  ingress.claim();
  ingress.publish();
  const auto taken = ingress.take();
  auto claim = std::async(std::launch::async, [&] { return ingress.claim(); });
  EXPECT_EQ(claim.wait_for(kLongEnough), std::future_status::timeout);
  ingress.release(taken->slot);
  EXPECT_EQ(claim.get(), ingress.slot_data(0));
  EXPECT_EQ(ingress.backpressure_waits(), 1u);
  EXPECT_GT(ingress.backpressure_wait_ns(), 1000000u);
}

TEST_F(IngressTest, CloseWakesTheCollectorAndCountsWhatIsInFlight) {
  Ingress ingress = ingress_of(2, 4);
  ingress.claim();
  ingress.publish();
  ingress.take();
  ingress.claim();
  ingress.publish();
  auto claim = std::async(std::launch::async, [&] { return ingress.claim(); });
  EXPECT_EQ(claim.wait_for(kLongEnough), std::future_status::timeout);
  ingress.close();
  EXPECT_EQ(claim.get(), nullptr);
  EXPECT_EQ(ingress.in_flight_at_close(), 2u);
  ingress.close();
  EXPECT_EQ(ingress.in_flight_at_close(), 2u);
}

TEST_F(IngressTest, ASlotBeingFilledAtCloseIsCountedAndNotTakenOver) {
  Ingress ingress = ingress_of(2, 4);
  ingress.claim();
  ingress.close();
  EXPECT_EQ(ingress.in_flight_at_close(), 1u);
  EXPECT_FALSE(ingress.publish());
  EXPECT_EQ(ingress.published_rows(), 0u);
}

TEST_F(IngressTest, EveryStepOutOfOrderIsABug) {
  Ingress ingress = ingress_of(2, 4);
  EXPECT_THROW(ingress.publish(), Failure);  // nothing was claimed
  EXPECT_THROW(ingress.release(0), Failure);
  ingress.claim();
  ingress.publish();
  EXPECT_THROW(ingress.release(0), Failure);  // not taken
  EXPECT_THROW(ingress.restart_at(8), Failure);
}

TEST_F(IngressTest, RestartContinuesTheRowNumbers) {
  Ingress ingress = ingress_of(2, 4);
  ingress.restart_at(12);
  ingress.claim();
  ingress.publish();
  const auto taken = ingress.take();
  EXPECT_EQ(taken->start_row, 12u);
  EXPECT_EQ(taken->slot, 1);  // row 12 = slot 3 mod 2
}

// Statistics see every row once and in order, in the slot itself, and the slot waits for them.
TEST_F(IngressTest, WithAReaderASlotIsFreeOnlyOnceItWasRead) {
  Ingress ingress(backend_, kLayout, 2, 4, doorbell_, true);
  EXPECT_EQ(ingress.next_committed(), nullptr);
  for (uint64_t tick = 0; tick < 5; ++tick) {
    const float* slot = ingress.claim();
    ingress.publish();
    EXPECT_EQ(ingress.next_committed(), nullptr);  // written, not committed
    const auto taken = ingress.take();
    EXPECT_EQ(ingress.next_committed(), nullptr);
    ingress.release(taken->slot);
    EXPECT_EQ(ingress.next_committed(), slot);
    EXPECT_EQ(ingress.slots_in_flight(), 1u);
    ingress.finish_read();
    EXPECT_EQ(ingress.slots_in_flight(), 0u);
  }
  EXPECT_THROW(ingress.finish_read(), Failure);
}

TEST_F(IngressTest, AnUnreadSlotHoldsTheCollectorBack) {
  Ingress ingress(backend_, kLayout, 1, 4, doorbell_, true);
  ingress.claim();
  ingress.publish();
  ingress.release(ingress.take()->slot);
  auto claim = std::async(std::launch::async, [&] { return ingress.claim(); });
  EXPECT_EQ(claim.wait_for(kLongEnough), std::future_status::timeout);
  ingress.finish_read();
  EXPECT_EQ(claim.get(), ingress.slot_data(0));
}

}  // namespace
}  // namespace millrace
