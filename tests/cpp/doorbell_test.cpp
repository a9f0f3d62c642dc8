// Tests for cpp/doorbell.h.
#include "doorbell.h"

#include <gtest/gtest.h>

#include <thread>

namespace millrace {
namespace {

TEST(Doorbell, ARingBetweenLookAndSleepIsNotLost) {
  Doorbell doorbell;
  const uint64_t seen = doorbell.count();
  doorbell.ring();
  doorbell.wait(seen);  // would hang
  EXPECT_EQ(doorbell.count(), seen + 1);
}

TEST(Doorbell, WakesEveryWaiter) {
  Doorbell doorbell;
  std::thread first([&] { doorbell.wait(0); });
  std::thread second([&] { doorbell.wait(0); });
  doorbell.ring();
  first.join();
  second.join();
}

}  // namespace
}  // namespace millrace
