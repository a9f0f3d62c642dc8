// Tests for tests/shim/fibres.cpp: that it is as strict as a GPU, or more so.
#include "fibres.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace device_shim {
namespace {

using Body = void (*)(void*, uint32_t);

TEST(Fibres, SeeWhatAllWroteBeforeABarrier) {
  for (const Turns turns : {Turns::kForward, Turns::kBackward}) {
    std::array<uint32_t, 96> values{};
    std::array<uint32_t, 96> sums{};
    std::pair<uint32_t*, uint32_t*> memory{values.data(), sums.data()};
    const Body body = [](void* context, uint32_t thread) {
      auto& [from, to] = *static_cast<std::pair<uint32_t*, uint32_t*>*>(context);
      from[thread] = thread;
      wait_for_threadgroup();
      for (uint32_t i = 0; i < 96; ++i) to[thread] += from[i];
    };
    run_threadgroup(96, turns, body, &memory);
    for (const uint32_t sum : sums) EXPECT_EQ(sum, 95u * 96u / 2u);
  }
}

TEST(Fibres, ExchangeWithinTheirSimdgroupAsOftenAsTheyLike) {
  std::array<uint32_t, 64> results{};
  const Body body = [](void* context, uint32_t thread) {
    uint32_t value = thread;
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
      const auto* all = static_cast<const uint32_t*>(exchange(&value, sizeof(value), "sum"));
      value += all[lane() ^ distance];
    }
    static_cast<uint32_t*>(context)[thread] = value;
  };
  run_threadgroup(64, Turns::kBackward, body, results.data());
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(results[i], i < 32 ? 496u : 496u + 32u * 32u);
}

TEST(Fibres, WithoutABarrierTheOrderOfTurnsShows) {
  std::array<std::array<uint32_t, 32>, 2> seen{};
  const Body body = [](void* context, uint32_t thread) {
    auto* const values = static_cast<uint32_t*>(context);
    values[thread] = thread == 0 ? 7 : values[0];
  };
  run_threadgroup(32, Turns::kForward, body, seen[0].data());
  run_threadgroup(32, Turns::kBackward, body, seen[1].data());
  EXPECT_NE(seen[0], seen[1]);
}

// A room that all share is read by the first simdgroup and then written by the others, which first
// exchange something among themselves.
TEST(Fibres, ASimdgroupDoesNotWaitForAnotherInItsOwnOperations) {
  std::array<std::array<uint32_t, 2>, 2> rooms{};
  const Body body = [](void* context, uint32_t thread) {
    auto& [room, found] = *static_cast<std::array<uint32_t, 2>*>(context);
    wait_for_threadgroup();
    if (thread == 0) found = room;
    exchange(&thread, sizeof(thread), "sum");
    if (thread == 32) room = 1;
  };
  run_threadgroup(64, Turns::kForward, body, &rooms[0]);
  run_threadgroup(64, Turns::kBackward, body, &rooms[1]);
  EXPECT_EQ(rooms[0][1], 0u);
  EXPECT_EQ(rooms[1][1], 1u);
}

TEST(Fibres, RefuseABarrierThatSomeNeverReach) {
  const Body returns = [](void*, uint32_t thread) {
    if (thread >= 40) return;
    wait_for_threadgroup();
  };
  EXPECT_THROW(run_threadgroup(64, Turns::kForward, returns, nullptr), std::logic_error);
  const Body exchanges = [](void*, uint32_t thread) {
    if (thread == 3) exchange(&thread, sizeof(thread), "simd_min");
    wait_for_threadgroup();
  };
  EXPECT_THROW(run_threadgroup(32, Turns::kForward, exchanges, nullptr), std::logic_error);
}

TEST(Fibres, RefuseDifferentOperationsOfOneSimdgroup) {
  const Body body = [](void*, uint32_t thread) {
    exchange(&thread, sizeof(thread), thread % 2 ? "simd_min" : "simd_max");
  };
  EXPECT_THROW(run_threadgroup(32, Turns::kForward, body, nullptr), std::logic_error);
  EXPECT_THROW(run_threadgroup(33, Turns::kForward, body, nullptr), std::logic_error);
}

}  // namespace
}  // namespace device_shim
