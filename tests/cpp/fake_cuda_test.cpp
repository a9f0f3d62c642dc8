// Tests for tests/cpp/fake_cuda.cpp: the rules that other tests rely on.
#include "fake_cuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace millrace {
namespace {

constexpr uint64_t kBytes = 4 * sizeof(float);
using Violations = std::vector<std::string>;

class FakeCudaTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), Violations{}); }

  // The rest of a test's memory is freed by the test's end.
  struct Bench {
    Bench()
        : source(backend, Memory::Kind::kPinnedHost, kBytes),
          target(backend, Memory::Kind::kPinnedHost, kBytes),
          device(backend, Memory::Kind::kDevice, kBytes) {
      api.create_stream(backend.device(), &first);
      api.create_stream(backend.device(), &second);
      for (void** event : {&a, &b}) api.create_event(backend.device(), 0, event);
    }
    ~Bench() {
      for (void* event : {a, b}) api.destroy_event(backend.device(), event);
    }

    int upload(void* stream) {
      return api.copy_async(stream, CopyDirection::kHostToDevice, device.floats(), source.floats(),
                            kBytes);
    }
    int download(void* stream) {
      return api.copy_async(stream, CopyDirection::kDeviceToHost, target.floats(), device.floats(),
                            kBytes);
    }
    int finish(void* stream) { return api.record_event(stream, a) != 0 ? -1 : api.wait_event(a); }
    int end(void* stream) {
      const int code = api.end_capture(stream, &graph, &nodes);
      if (code == 0) api.destroy_graph(backend.device(), graph);
      return code;
    }
    bool is_valid() {
      int valid = 0;
      api.capture_status(first, &valid);
      return valid != 0;
    }

    Backend backend{fake_cuda()};
    const BackendApi& api = backend.api();
    FakeCuda& fake = FakeCuda::of(backend);
    Memory source, target, device;
    void *first = nullptr, *second = nullptr, *a = nullptr, *b = nullptr, *graph = nullptr;
    GraphNodes nodes = {};
  };
};

TEST_F(FakeCudaTest, WorkRunsLateAndReadsItsSourceThen) {
  Bench bench;
  bench.source.floats()[0] = 1;
  bench.upload(bench.first);
  bench.download(bench.first);
  bench.source.floats()[0] = 2;
  EXPECT_EQ(bench.target.floats()[0], 0);
  EXPECT_EQ(bench.finish(bench.first), 0);
  EXPECT_EQ(bench.target.floats()[0], 2);
}

TEST_F(FakeCudaTest, OrderBetweenStreamsFollowsTheSeedAndEvents) {
  const auto outcome = [](uint64_t seed, bool is_ordered) {
    Bench bench;
    bench.fake.order_by(seed);
    bench.source.floats()[0] = 3;
    bench.upload(bench.first);
    bench.api.record_event(bench.first, bench.b);
    if (is_ordered) bench.api.stream_wait_event(bench.second, bench.b);
    bench.download(bench.second);
    bench.finish(bench.second);
    const float found = bench.target.floats()[0];
    bench.finish(bench.first);
    return found;
  };
  int unordered = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(outcome(seed, true), 3) << seed;
    unordered += outcome(seed, false) == 3 ? 1 : 0;
  }
  EXPECT_GT(unordered, 0);
  EXPECT_LT(unordered, 50);
}

TEST_F(FakeCudaTest, TheHostCannotTouchDeviceMemory) {
  Bench bench;
  EXPECT_DEATH(bench.device.floats()[0] = 1, "");
}

TEST_F(FakeCudaTest, BrokenGuardsAndFreedMemoryAreReported) {
  {
    Bench bench;
    bench.source.floats()[4] = 1;
    auto gone = std::make_unique<Memory>(bench.backend, Memory::Kind::kDevice, kBytes);
    bench.api.copy_async(bench.first, CopyDirection::kHostToDevice, gone->floats(),
                         bench.source.floats(), kBytes);
    gone.reset();
    EXPECT_EQ(bench.finish(bench.first), 700);
    EXPECT_EQ(bench.upload(bench.first), 700);  // sticky
    bench.backend.forget_error();
    EXPECT_EQ(bench.upload(bench.first), 700);
    BackendError error{};
    bench.api.last_error(bench.backend.device(), &error);
    EXPECT_STREQ(error.meaning, "an illegal memory access was encountered");
  }
  const Violations found = FakeCuda::take_violations();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], "a copy used freed device memory");
  EXPECT_EQ(found[1], "bytes behind pinned host memory written");
}

TEST_F(FakeCudaTest, ACaptureRecordsAndALaunchRuns) {
  Bench bench;
  ASSERT_EQ(bench.api.begin_capture(bench.first), 0);
  bench.upload(bench.first);
  bench.download(bench.first);
  ASSERT_EQ(bench.api.end_capture(bench.first, &bench.graph, &bench.nodes), 0);
  EXPECT_EQ(bench.nodes.copies, 2u);
  EXPECT_EQ(bench.fake.pending(), 0u);
  for (float value : {5.0f, 6.0f}) {
    bench.source.floats()[3] = value;
    bench.api.launch_graph(bench.first, bench.graph);
    EXPECT_EQ(bench.finish(bench.first), 0);
    EXPECT_EQ(bench.target.floats()[3], value);
  }
  bench.api.destroy_graph(bench.backend.device(), bench.graph);
}

TEST_F(FakeCudaTest, AGraphDestroyedBeforeItHasRunIsReported) {
  Bench bench;
  bench.api.begin_capture(bench.first);
  bench.upload(bench.first);
  bench.api.end_capture(bench.first, &bench.graph, &bench.nodes);
  bench.api.launch_graph(bench.first, bench.graph);
  bench.api.destroy_graph(bench.backend.device(), bench.graph);
  EXPECT_EQ(bench.finish(bench.first), 0);
  EXPECT_EQ(FakeCuda::take_violations(),
            Violations{"a graph was destroyed while 1 launches of it are pending"});
}

// Ways to break a capture: what the breaking call returns, and then end_capture.
TEST_F(FakeCudaTest, CapturesAreBrokenByWhatCudaForbids) {
  using B = Bench&;
  struct Case {
    const char* name;
    int code, end_code;
    std::function<int(B)> act;
  };
  const std::vector<Case> cases = {
      {"waiting on the capturing thread", 900, 901, [](B b) { return b.api.wait_event(b.a); }},
      {"querying on the capturing thread", 900, 901,
       [](B b) {
         int done = 0;
         return b.api.query_event(b.a, &done);
       }},
      {"allocating on the capturing thread", 900, 901,
       [](B b) {
         void* memory = nullptr;
         return b.api.allocate_device(b.backend.device(), 4, &memory);
       }},
      {"another thread asks for an event of the capture", 907, 901,
       [](B b) {
         b.api.record_event(b.first, b.b);
         int code = 0;
         std::thread([&] { code = b.api.wait_event(b.b); }).join();
         return code;
       }},
      {"an event from outside", 905, 901,
       [](B b) {
         b.api.record_event(b.second, b.b);
         return b.api.stream_wait_event(b.first, b.b);
       }},
      {"a fork that does not come back", 0, 904,
       [](B b) {
         b.api.record_event(b.first, b.b);
         b.api.stream_wait_event(b.second, b.b);
         return b.upload(b.second);
       }},
      {"a fork that comes back", 0, 0,
       [](B b) {
         b.api.record_event(b.first, b.b);
         b.api.stream_wait_event(b.second, b.b);
         b.upload(b.second);
         b.api.record_event(b.second, b.b);
         return b.api.stream_wait_event(b.first, b.b);
       }},
      {"ending in the fork", 903, 901,
       [](B b) {
         b.api.record_event(b.first, b.b);
         b.api.stream_wait_event(b.second, b.b);
         return b.end(b.second);
       }},
      {"ending on another thread", 908, 901,
       [](B b) {
         int code = 0;
         std::thread([&] { code = b.end(b.first); }).join();
         return code;
       }},
      {"an injected fault", 906, 901,
       [](B b) {
         b.fake.fail("copy_async", 0, 906);
         return b.upload(b.first);
       }},
      {"merging two captures", 902, 901,
       [](B b) {
         b.api.begin_capture(b.second);
         b.api.record_event(b.second, b.b);
         const int code = b.api.stream_wait_event(b.first, b.b);
         EXPECT_EQ(b.end(b.second), 901);
         return code;
       }},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Bench bench;
    EXPECT_EQ(bench.finish(bench.first), 0);
    ASSERT_EQ(bench.api.begin_capture(bench.first), 0);
    EXPECT_EQ(bench.upload(bench.first), 0);
    EXPECT_EQ(each.act(bench), each.code);
    if (each.end_code == 901) {
      EXPECT_FALSE(bench.is_valid());
      EXPECT_EQ(bench.upload(bench.first), 901);
    }
    BackendError error{};
    bench.api.last_error(bench.backend.device(), &error);
    EXPECT_EQ(error.code, each.code);
    EXPECT_EQ(bench.end(bench.first), each.end_code);
    bench.backend.forget_error();
    ASSERT_EQ(bench.api.begin_capture(bench.first), 0);  // nothing stays behind
    EXPECT_EQ(bench.upload(bench.first), 0);
    EXPECT_EQ(bench.end(bench.first), 0);
  }
}

}  // namespace
}  // namespace millrace
