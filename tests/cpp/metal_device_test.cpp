// Tests for metal/metal_queue.mm, metal_memory.mm, metal_graph.mm and metal_backend.mm on the fake
// device: what only the Metal backend promises. What every backend must do is in
// backend_contract_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "each_backend.h"
#include "fake_metal.h"

namespace millrace {
namespace {

// Of metal_queue.h, which is Objective-C++.
constexpr uint64_t kMaxInFlight = 8;
constexpr int kPageFault = 3;  // MTLCommandBufferErrorPageFault

std::vector<float> counted(size_t count, float first = 1) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

class MetalDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_fake_metal()) GTEST_SKIP() << "the fake device was not built: tools/setup";
    backend_ = std::make_unique<Backend>(fake_metal());
    stream_ = std::make_unique<Stream>(*backend_);
  }
  void TearDown() override {
    if (has_fake_metal()) fake_metal_device().resume();
  }

  std::unique_ptr<Memory> device_floats(size_t count) {
    return std::make_unique<Memory>(*backend_, Memory::Kind::kDevice, count * sizeof(float));
  }
  std::unique_ptr<Memory> host_floats(size_t count) {
    return std::make_unique<Memory>(*backend_, Memory::Kind::kPinnedHost, count * sizeof(float));
  }
  void copy(CopyDirection direction, float* to, const float* from, size_t count) {
    stream_->copy(direction, to, from, count * sizeof(float));
  }
  void settle() {
    Event event(*backend_);
    stream_->record(event);
    event.wait();
  }
  std::vector<float> read(const Memory& memory, size_t count) {
    std::vector<float> values(count);
    copy(CopyDirection::kDeviceToHost, values.data(), memory.floats(), count);
    settle();
    return values;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
};

// ---- who submits ----

TEST_F(MetalDeviceTest, AnotherThreadIsRefusedWithBothNamedAndTheDeviceGoesOn) {
  const auto memory = device_floats(4);
  const std::vector<float> values = counted(4);
  copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
  std::string refusal;
  std::thread([&] {
    Stream other(*backend_);
    refusal = failure_of(
        [&] { other.copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 16); });
  }).join();
  EXPECT_NE(refusal.find("submitted to a Metal device whose submit thread is"), std::string::npos)
      << refusal;
  std::ostringstream owner;
  owner << std::this_thread::get_id();
  EXPECT_NE(refusal.find("submit thread is " + owner.str()), std::string::npos) << refusal;
  backend_->forget_error();
  EXPECT_EQ(read(*memory, 4), values);
}

TEST_F(MetalDeviceTest, AnotherThreadMayAskAndWait) {
  Event event(*backend_);
  stream_->record(event);
  std::thread([&] {
    event.wait();
    EXPECT_TRUE(event.is_complete());
  }).join();
}

// ---- when work runs ----

TEST_F(MetalDeviceTest, NothingRunsBeforeTheMarkAndAllThatWasSubmittedRunsBehindIt) {
  metal_shim::FakeMetal& device = fake_metal_device();
  const auto memory = device_floats(4);
  const auto source = host_floats(4);
  const uint64_t committed = device.committed();
  copy(CopyDirection::kHostToDevice, memory->floats(), source->floats(), 4);
  EXPECT_EQ(device.committed(), committed);
  source->floats()[0] = 5;  // memory of the table is read when the work runs
  Event event(*backend_);
  stream_->record(event);
  EXPECT_EQ(device.committed(), committed + 1);
  Event again(*backend_);  // nothing new: no command buffer for it
  stream_->record(again);
  again.wait();
  EXPECT_TRUE(event.is_complete());
  EXPECT_EQ(device.committed(), committed + 1);
  EXPECT_EQ(read(*memory, 1), std::vector<float>{5});
}

TEST_F(MetalDeviceTest, ForeignHostMemoryIsReadAtSubmissionAndWrittenBeforeTheMarkIsComplete) {
  metal_shim::FakeMetal& device = fake_metal_device();
  const auto memory = device_floats(4);
  std::vector<float> values = counted(4), back(4);
  device.hold();
  copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
  copy(CopyDirection::kDeviceToHost, back.data(), memory->floats(), 4);
  Event event(*backend_);
  stream_->record(event);
  values.assign(4, -1);
  EXPECT_FALSE(event.is_complete());
  EXPECT_EQ(back, std::vector<float>(4, 0));
  device.resume();
  event.wait();
  EXPECT_EQ(back, counted(4));
}

TEST_F(MetalDeviceTest, WorkWithoutAMarkBeginsOnceThereIsMuchOfIt) {
  metal_shim::FakeMetal& device = fake_metal_device();
  const auto memory = device_floats(1 << 14);
  const std::vector<float> values = counted(1 << 14);
  const uint64_t committed = device.committed();
  for (int i = 0; i < 64; ++i) {
    copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), values.size());
  }
  EXPECT_GT(device.committed(), committed);
  EXPECT_EQ(read(*memory, values.size()), values);
}

TEST_F(MetalDeviceTest, StagingLargerThanAnArenaIsAsGood) {
  constexpr size_t kCount = 1 << 20;  // 4 MiB
  const auto memory = device_floats(kCount);
  const std::vector<float> values = counted(kCount);
  const uint64_t free_bytes = backend_->memory_free_bytes();
  copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), kCount);
  EXPECT_EQ(read(*memory, kCount), values);
  EXPECT_EQ(backend_->memory_free_bytes(), free_bytes);  // what was needed for it is gone
}

TEST_F(MetalDeviceTest, TheOwnerWaitsForTheOldestWhereTooManyWouldBeInFlight) {
  metal_shim::FakeMetal& device = fake_metal_device();
  const auto memory = device_floats(4);
  const std::vector<float> values = counted(4);
  settle();
  const uint64_t committed = device.committed(), completed = device.completed();
  device.hold();
  std::atomic<uint64_t> most{0};
  std::thread gate([&] {
    // One is let through at a time, once no more can come before it.
    for (uint64_t i = 0; i < 4; ++i) {
      while (device.committed() - device.completed() < kMaxInFlight) std::this_thread::yield();
      most = std::max<uint64_t>(most, device.committed() - device.completed());
      device.run(1);
      while (device.completed() - completed == i) std::this_thread::yield();
    }
    device.resume();
  });
  for (uint64_t i = 0; i < kMaxInFlight + 4; ++i) {
    Event event(*backend_);
    copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
    stream_->record(event);
  }
  gate.join();
  EXPECT_EQ(device.committed(), committed + kMaxInFlight + 4);
  EXPECT_EQ(most, kMaxInFlight);
  EXPECT_EQ(read(*memory, 4), values);
}

TEST_F(MetalDeviceTest, MemoryMayBeFreedWhileWorkUsesIt) {
  metal_shim::FakeMetal& device = fake_metal_device();
  device.hold();
  const std::vector<float> values = counted(64);
  {
    const auto first = device_floats(64), second = device_floats(64);
    const auto host = host_floats(64);
    copy(CopyDirection::kHostToDevice, first->floats(), values.data(), 64);
    copy(CopyDirection::kDeviceToDevice, second->floats(), first->floats(), 64);
    Event event(*backend_);
    stream_->record(event);
    copy(CopyDirection::kDeviceToHost, host->floats(), second->floats(), 64);  // not committed yet
  }
  device.resume();
  settle();
}

TEST_F(MetalDeviceTest, WorkThatWasNeverMarkedIsDroppedWithTheDevice) {
  const auto memory = device_floats(4);
  const std::vector<float> values = counted(4);
  copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
}

// ---- what goes wrong ----

TEST_F(MetalDeviceTest, TheFirstErrorEndsEveryWaitAndEverySubmissionForEver) {
  metal_shim::FakeMetal& device = fake_metal_device();
  const auto memory = device_floats(4);
  const std::vector<float> values = counted(4);
  device.hold();
  device.fail_command_buffer(1, kPageFault);
  Event events[3] = {Event(*backend_), Event(*backend_), Event(*backend_)};
  for (Event& event : events) {
    copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
    stream_->record(event);
  }
  std::atomic<int> released{0};
  std::vector<std::thread> waiters;
  for (Event& event : events) {
    waiters.emplace_back([&] {
      const std::string text = failure_of([&] { event.wait(); });
      released += text == "no failure" ||
                  text.find(": 3 this command buffer was told to fail") != std::string::npos;
    });
  }
  device.run(2);  // the third is never run while they wait
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(released, 3);
  const auto submit = [&] {
    copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
  };
  EXPECT_NE(failure_of(submit).find("command buffer at"), std::string::npos) << failure_of(submit);
  backend_->forget_error();
  EXPECT_NE(failure_of(submit).find(": 3 this"), std::string::npos) << failure_of(submit);
  EXPECT_NE(failure_of([&] { (void)events[2].is_complete(); }), "no failure");
}

TEST_F(MetalDeviceTest, AnOwnerThatWaitsForRoomIsReleasedByAnError) {
  metal_shim::FakeMetal& device = fake_metal_device();
  const auto memory = device_floats(4);
  const std::vector<float> values = counted(4);
  device.hold();
  device.fail_command_buffer(0, kPageFault);
  const uint64_t committed = device.committed();
  std::thread gate([&] {
    while (device.committed() - committed < kMaxInFlight) std::this_thread::yield();
    device.run(1);
  });
  const std::string text = failure_of([&] {
    for (uint64_t i = 0; i < kMaxInFlight + 2; ++i) {
      Event event(*backend_);
      copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
      stream_->record(event);
    }
  });
  gate.join();
  EXPECT_NE(text.find(": 3 this command buffer was told to fail"), std::string::npos) << text;
}

TEST_F(MetalDeviceTest, BytesThatAreNotWithinABlockAreRefused) {
  const auto memory = device_floats(1024);
  const std::vector<float> values = counted(2048);
  const std::string text = failure_of(
      [&] { copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 2048); });
  EXPECT_NE(text.find("not within one block of device memory"), std::string::npos) << text;
  backend_->forget_error();
  EXPECT_NE(failure_of([&] {
              float* const host = const_cast<float*>(values.data());
              copy(CopyDirection::kDeviceToDevice, host, memory->floats(), 4);
            }),
            "no failure");
}

// ---- replay objects ----

TEST_F(MetalDeviceTest, AReplayReadsWhatStandsInMemoryWhenItRuns) {
  const auto from = host_floats(4), middle = device_floats(4), to = device_floats(4);
  {
    const Graph graph(*backend_, *stream_, [&] {
      copy(CopyDirection::kHostToDevice, middle->floats(), from->floats(), 4);
      copy(CopyDirection::kDeviceToDevice, to->floats(), middle->floats(), 4);
    });
    EXPECT_EQ(graph.nodes().copies, 2u);
    EXPECT_EQ(graph.nodes().kernels, 0u);
    EXPECT_EQ(read(*to, 4), std::vector<float>(4, 0));  // recorded, not run
    for (float first : {1.0f, 11.0f}) {
      const std::vector<float> values = counted(4, first);
      std::copy(values.begin(), values.end(), from->floats());
      stream_->launch(graph);
      EXPECT_EQ(read(*to, 4), values);
    }
    fake_metal_device().hold();
    for (int i = 0; i < 3; ++i) {  // in flight more than once, and destroyed while it is
      stream_->launch(graph);
      Event event(*backend_);
      stream_->record(event);
    }
  }
  fake_metal_device().resume();
  settle();
}

TEST_F(MetalDeviceTest, AnEmptyReplayIsNothingToDo) {
  const Graph graph(*backend_, *stream_, [] {});
  stream_->launch(graph);
  settle();
}

TEST_F(MetalDeviceTest, WhatAReplayCannotHoldBreaksItsCapture) {
  const auto memory = device_floats(4);
  const std::vector<float> values = counted(4);
  Event event(*backend_);
  const auto capture = [&](const std::function<void()>& body) {
    return failure_of([&] { Graph(*backend_, *stream_, body); });
  };
  EXPECT_NE(capture([&] {
              copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);
            }).find("memory that the table did not allocate"),
            std::string::npos);
  EXPECT_NE(capture([&] { stream_->record(event); }).find("cannot hold an event"),
            std::string::npos);
  stream_->record(event);
  EXPECT_NE(capture([&] { stream_->wait(event); }).find("cannot wait for an event"),
            std::string::npos);
  copy(CopyDirection::kHostToDevice, memory->floats(), values.data(), 4);  // the stream goes on
  EXPECT_EQ(read(*memory, 4), values);
}

// ---- what the fake device itself catches ----

struct Mistake {
  const char* name;
  const char* caught;  // part of the violation; empty for none
};

class MetalMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(MetalMistakeTest, IsCaught) {
  if (!has_fake_metal()) GTEST_SKIP() << "the fake device was not built: tools/setup";
  metal_shim::FakeMetal& device = fake_metal_device();
  device.make(GetParam().name);
  const std::vector<std::string> violations = device.take_violations();
  if (*GetParam().caught == '\0') {
    EXPECT_EQ(violations, std::vector<std::string>());
    return;
  }
  ASSERT_FALSE(violations.empty());
  for (const std::string& text : violations) {
    EXPECT_NE(text.find(GetParam().caught), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Seeded, MetalMistakeTest,
    testing::Values(Mistake{"none", ""},
                    Mistake{"submit from another thread", "from a second thread"},
                    Mistake{"edit in flight", "was edited in flight"},
                    Mistake{"commit twice", "committed twice"},
                    Mistake{"two open encoders", "two encoders are open"},
                    Mistake{"missing residency", "a buffer in its arguments is not resident"},
                    Mistake{"handler after commit", "addCompletedHandler after commit"},
                    Mistake{"buffer freed in flight", "a buffer was freed while a command buffer"},
                    Mistake{"unbounded queue", "more than 3 command buffers are not complete"},
                    Mistake{"wrong binding index", "buffer index 0, are not bound"},
                    Mistake{"lost error", "an error of a command buffer was lost"}),
    [](const testing::TestParamInfo<Mistake>& info) {
      std::string name;
      for (const char* c = info.param.name; *c != '\0'; ++c) name += *c == ' ' ? '_' : *c;
      return name;
    });

TEST(MetalMistake, EveryOneOfTheDeviceIsTested) {
  if (!has_fake_metal()) GTEST_SKIP() << "the fake device was not built: tools/setup";
  EXPECT_EQ(fake_metal_device().mistakes().size(), 11u);  // ten and none
}

}  // namespace
}  // namespace millrace
