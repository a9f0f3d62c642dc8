// Tests for cpp/sampler.cpp.
#include "sampler.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "batch_layout.h"
#include "delayed_backend.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr uint64_t kSamples = 32;

struct Rig {
  explicit Rig(const BackendApi& api = backend_cpu(), uint64_t seed = 7)
      : backend(api),
        stream(backend),
        ingress(backend, kPaddedLayout, 2, 4, doorbell),
        ring(backend, stream, kPaddedLayout, 16, ingress),
        sampler(backend, stream, stream,
                {kSamples,
                 seed,
                 batch_columns(kPaddedLayout, BatchLayout::kRow),
                 Memory::Kind::kDevice,
                 {}}) {}

  void publish(int slots) {
    for (int i = 0; i < slots; ++i) {
      write_tagged_rows(ingress.published_rows(), 4, kPaddedLayout, ingress.claim());
      ingress.publish();
      ring.submit(UINT64_MAX);
      if (ring.has_copies_in_flight()) ring.wait_oldest();
    }
  }
  std::vector<uint64_t> take(uint64_t tick) {
    const float* batch = sampler.take(tick);
    std::vector<uint64_t> rows;
    for (uint64_t i = 0; i < kSamples; ++i) {
      rows.push_back(read_tagged(batch + i * static_cast<uint64_t>(kPaddedLayout.row_stride()),
                                 kPaddedLayout));
    }
    return rows;
  }
  std::vector<uint64_t> batch_of(uint64_t tick, uint64_t low, uint64_t high) {
    sampler.request({tick, low, high});
    sampler.gather(ring);
    return take(tick);
  }

  Backend backend;
  Stream stream;
  Doorbell doorbell;
  Ingress ingress;
  Ring ring;
  Sampler sampler;
};

TEST(Sampler, BatchDependsOnSeedTickAndRangeOnly) {
  Rig one, other, seeded(backend_cpu(), 8);
  one.publish(3);
  seeded.publish(3);
  other.publish(4);  // more in the ring, the same range
  const std::vector<uint64_t> batch = one.batch_of(5, 0, 12);
  EXPECT_EQ(other.batch_of(4, 0, 12).size(), kSamples);  // another history of requests
  EXPECT_EQ(other.batch_of(5, 0, 12), batch);
  EXPECT_NE(one.batch_of(6, 0, 12), batch);
  EXPECT_NE(one.batch_of(5, 0, 11), batch);
  EXPECT_NE(seeded.batch_of(5, 0, 12), batch);
}

TEST(Sampler, RowsStayInsideTheRangeAcrossTheWrap) {
  Rig rig;
  rig.publish(6);  // rows 0..23, of which 8..23 are in the ring
  for (uint64_t row : rig.batch_of(1, 9, 22)) {
    EXPECT_GE(row, 9u);
    EXPECT_LT(row, 22u);
  }
}

TEST(Sampler, OneRequestIsOutstandingAtATime) {
  Rig rig;
  rig.publish(2);
  EXPECT_TRUE(rig.sampler.request({1, 0, 8}));
  EXPECT_FALSE(rig.sampler.request({1, 0, 8}));
  EXPECT_THROW(rig.sampler.request({2, 0, 8}), Failure);
  EXPECT_THROW(rig.sampler.request_newest(2), Failure);
  rig.sampler.gather(rig.ring);
  EXPECT_FALSE(rig.sampler.gather(rig.ring));
  EXPECT_THROW(rig.sampler.take(2), Failure);
  EXPECT_NO_THROW(rig.sampler.take(1));
  EXPECT_THROW(rig.sampler.take(1), Failure);
  EXPECT_TRUE(rig.sampler.request({2, 0, 8}));
}

TEST(Sampler, TakingBeforeTheGatherIsRefused) {
  Rig rig;
  rig.publish(1);
  rig.sampler.request({1, 0, 8});
  EXPECT_FALSE(rig.sampler.gather(rig.ring));  // 4 of 8 rows
  EXPECT_FALSE(rig.sampler.is_ready(1));
  EXPECT_THROW(rig.sampler.take(1), Failure);
  EXPECT_EQ(rig.sampler.limit(), 8u);
  rig.publish(1);
  EXPECT_TRUE(rig.sampler.gather(rig.ring));
  EXPECT_EQ(rig.sampler.limit(), UINT64_MAX);
  EXPECT_TRUE(rig.sampler.is_ready(1));
}

TEST(Sampler, TheHotBatchStaysWhileTheNextOneIsGathered) {
  Rig rig;
  rig.publish(2);
  rig.sampler.request({1, 0, 8});
  rig.sampler.gather(rig.ring);
  const float* hot = rig.sampler.take(1);
  const std::vector<float> copy(hot, hot + kSamples * 16);
  rig.sampler.request({2, 0, 8});
  rig.sampler.gather(rig.ring);
  EXPECT_EQ(std::vector<float>(hot, hot + kSamples * 16), copy);
  EXPECT_NE(rig.sampler.take(2), hot);
}

TEST(Sampler, NewestFixesItsRangeWhenItIsGathered) {
  Rig rig;
  rig.publish(1);
  rig.sampler.request_newest(1);
  rig.publish(5);  // rows 0..23
  EXPECT_TRUE(rig.sampler.gather(rig.ring));
  rig.take(1);
  EXPECT_EQ(rig.sampler.taken().low, 8u);
  EXPECT_EQ(rig.sampler.taken().high, 24u);
}

TEST(Sampler, NewestLeavesOutRowsThatACopyInFlightOverwrites) {
  Rig rig(delayed_backend());
  rig.publish(4);  // the ring is full: rows 0..15
  write_tagged_rows(16, 4, kPaddedLayout, rig.ingress.claim());
  rig.ingress.publish();
  rig.ring.submit(UINT64_MAX);  // rows 16..19 will lie over 0..3
  rig.sampler.request_newest(1);
  rig.sampler.gather(rig.ring);
  for (uint64_t row : rig.take(1)) {
    EXPECT_GE(row, 4u);
    EXPECT_LT(row, 16u);
  }
}

TEST(Sampler, ARangeThatALaterCopyClaimedIsABug) {
  Rig rig;
  rig.publish(5);  // rows 4..19 are left
  rig.sampler.request({1, 3, 20});
  EXPECT_THROW(rig.sampler.gather(rig.ring), Failure);
}

TEST(Sampler, AnEmptyRangeIsABug) {
  Rig rig;
  EXPECT_THROW(rig.sampler.request({1, 4, 4}), Failure);
}

// While the submit thread looks at a gather, the learner takes that batch and asks for the next.
TEST(Sampler, WhatWasSeenOfABatchIsNotSaidOfTheNext) {
  static std::function<void()> in_the_middle;
  static const BackendApi api = [] {
    BackendApi table = backend_cpu();
    table.wait_event = [](void* event) {
      if (in_the_middle) in_the_middle();
      return backend_cpu().wait_event(event);
    };
    return table;
  }();
  Rig rig(api);
  rig.publish(2);
  rig.sampler.request({1, 0, 8});
  rig.sampler.gather(rig.ring);
  in_the_middle = [&] {
    in_the_middle = nullptr;
    rig.take(1);
    rig.sampler.request({2, 0, 8});
  };
  rig.sampler.observe(true);
  ASSERT_EQ(rig.sampler.outstanding()->range.tick, 2u);
  EXPECT_FALSE(rig.sampler.outstanding()->is_observed);
  rig.sampler.gather(rig.ring);
  EXPECT_FALSE(rig.sampler.outstanding()->is_observed);
  EXPECT_TRUE(rig.sampler.observe(false));
  EXPECT_TRUE(rig.sampler.outstanding()->is_observed);
  EXPECT_FALSE(rig.sampler.observe(true));  // once for each
}

}  // namespace
}  // namespace millrace
