// Tests for cpp/captured_program.cpp: every transition, and that whatever goes wrong in a capture
// or a replay there is never a wrong result, never a hang and always a reason.
#include "captured_program.h"

#include <gtest/gtest.h>

#include <thread>

#include "program_bench.h"

namespace millrace {
namespace {

using Bench = ProgramBench;
using CapturedProgramTest = ProgramTest;

// ---- the way without faults ----

TEST_F(CapturedProgramTest, GoesFromEligibleToReplaying) {
  Bench bench;
  EXPECT_EQ(bench.program().state(), GraphState::kEligible);
  const GraphState after[] = {GraphState::kWarm, GraphState::kWarm, GraphState::kReplaying,
                              GraphState::kReplaying};
  for (const GraphState state : after) {
    bench.run_to_the_end(1);
    EXPECT_EQ(bench.program().state(), state);
    EXPECT_EQ(bench.found(), bench.expected());
  }
  EXPECT_EQ(bench.states(), "ELIGIBLE WARM CAPTURED REPLAYING");
  EXPECT_EQ(bench.program().replays(), 2u);
  bench.program().release();
}

TEST_F(CapturedProgramTest, DescribesItself) {
  Bench bench;
  bench.run_to_the_end(10);
  nlohmann::json found = bench.program().describe();
  EXPECT_GT(found.at("capture_ms"), 0.0);
  found.erase("capture_ms");
  EXPECT_EQ(found.at("history").size(), 4u);
  EXPECT_EQ(found.at("history")[3],
            (nlohmann::json{{"state", "REPLAYING"}, {"run", 3}, {"reason", ""}}));
  found.erase("history");
  const nlohmann::json proof = {
      {"own_changes", 0}, {"graph_bytes", 0}, {"pool_bytes", 0}, {"device_bytes", 0}, {"runs", 8}};
  const nlohmann::json expected = {
      {"identity", "update@fake_cuda"},
      {"requested", "auto"},
      {"effective", "graph"},
      {"state", "REPLAYING"},
      {"reason", ""},
      {"nodes", {{"kernels", 0}, {"copies", 3}, {"allocations", 0}, {"others", 0}}},
      {"captures", 1},
      {"failed_captures", 0},
      {"replays", 8},
      {"eager_runs", 2},
      {"coverage", 1.0},
      {"alloc_proof", proof}};
  EXPECT_EQ(found, expected);
  bench.program().release();
}

TEST_F(CapturedProgramTest, CoverageIsTheShareOfReplaysSinceTheWarmRuns) {
  Bench bench;
  bench.run_to_the_end(2);
  EXPECT_EQ(bench.program().describe().at("coverage"), 0.0);
  bench.run_to_the_end(6);
  bench.program().invalidate("enough");
  bench.run_to_the_end(2);
  EXPECT_EQ(bench.program().describe().at("coverage"), 0.75);
  EXPECT_EQ(bench.program().describe().at("effective"), "graph");
  bench.program().release();
}

TEST_F(CapturedProgramTest, IsDisabledByPolicyBackendOrPreflightAndRunsEagerly) {
  struct Case {
    GraphPolicy policy;
    std::string obstacle, reason;
    const BackendApi& api;
  };
  for (const Case& each :
       {Case{GraphPolicy::kOff, "", "graph: off was requested", fake_cuda()},
        Case{GraphPolicy::kAuto, "OWNER_NOT_CERTIFIED: x", "OWNER_NOT_CERTIFIED: x", fake_cuda()},
        Case{GraphPolicy::kAuto, "", "BACKEND_HAS_NO_GRAPHS: the cpu backend has no graphs",
             backend_cpu()}}) {
    Bench bench(each.policy, 64, each.obstacle, each.api);
    bench.run_to_the_end(5);
    EXPECT_EQ(bench.found(), bench.expected());
    EXPECT_EQ(bench.program().state(), GraphState::kDisabled);
    EXPECT_EQ(bench.program().reason(), each.reason);
    const nlohmann::json found = bench.program().describe();
    EXPECT_EQ(found.at("effective"), "eager");
    EXPECT_EQ(found.at("requested"), to_string(each.policy));
    EXPECT_EQ(found.at("alloc_proof").at("own_changes"), 0);
    EXPECT_EQ(found.at("captures"), 0);
  }
}

TEST_F(CapturedProgramTest, PolicyWordsAreChecked) {
  for (const char* word : {"off", "auto", "on"}) EXPECT_STREQ(to_string(graph_policy(word)), word);
  EXPECT_EQ(failure_of([] { graph_policy("yes"); }), "graph: 'yes' is not one of off, auto, on");
}

TEST_F(CapturedProgramTest, TenThousandReplaysAreProvenAllocationFree) {
  Bench bench(GraphPolicy::kOn, 10002);
  bench.run_to_the_end(10002);
  EXPECT_EQ(bench.found(), bench.expected());
  const nlohmann::json found = bench.program().describe();
  EXPECT_EQ(found.at("replays"), 10000);
  EXPECT_EQ(found.at("coverage"), 1.0);
  for (const char* kind : {"own_changes", "graph_bytes", "pool_bytes", "device_bytes"}) {
    EXPECT_EQ(found.at("alloc_proof").at(kind), 0) << kind;
  }
  EXPECT_EQ(found.at("alloc_proof").at("runs"), 10 + 9);  // the first ten and every thousandth
  bench.program().release();
}

TEST_F(CapturedProgramTest, AnyOrderOfCompletionGivesTheSameBits) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Bench bench;
    bench.fake().order_by(seed);
    Stream other(bench.backend());  // whose work may come at any time
    Memory noise(bench.backend(), Memory::Kind::kDevice, 64);
    Memory staged(bench.backend(), Memory::Kind::kPinnedHost, 64);
    for (int i = 0; i < 30; ++i) {
      bench.run();
      other.copy(CopyDirection::kHostToDevice, noise.floats(), staged.floats(), 64);
      if (i % 7 == 6) bench.finish();
    }
    EXPECT_EQ(bench.found(), bench.expected()) << seed;
    EXPECT_EQ(bench.program().replays(), 28u) << seed;
    Event passed(bench.backend());
    other.record(passed);
    passed.wait();
    bench.program().release();
  }
}

// ---- who may do what, and when ----

TEST_F(CapturedProgramTest, AnotherThreadThanTheSubmitThreadIsRefused) {
  for (const uint64_t runs : {1, 2, 5}) {
    Bench bench;
    bench.run_to_the_end(runs);
    std::string refused;
    std::thread([&] { refused = failure_of([&] { bench.program().run(); }); }).join();
    EXPECT_TRUE(holds(refused, "submitted to a stream whose submit thread is")) << refused;
    EXPECT_EQ(bench.found(), bench.expected());  // it did nothing
    bench.run_to_the_end(3);
    EXPECT_EQ(bench.found(), bench.expected());
    bench.program().release();
  }
}

TEST_F(CapturedProgramTest, CapturesOfTwoThreadsNeverOverlap) {
  std::atomic<int> inside{0}, most{0};
  const auto work = [&] {
    for (int round = 0; round < 20; ++round) {
      Bench bench;
      bench.in_body([&](uint64_t body, uint64_t op) {
        if (body != 2) return;  // the captured one
        if (op == 0) most = std::max(most.load(), ++inside);
        std::this_thread::yield();
        if (op == Bench::kOps) --inside;
      });
      bench.run_to_the_end(4);
      EXPECT_EQ(bench.found(), bench.expected());
      EXPECT_EQ(bench.program().replays(), 2u);
      bench.program().release();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(most, 1);
}

TEST_F(CapturedProgramTest, InvalidationMayComeFromAnyThreadAtAnyTime) {
  for (int run = 0; run < 6; ++run) {
    Bench bench;
    bench.run_to_the_end(static_cast<uint64_t>(run));
    std::thread([&] { bench.program().invalidate("the motion was loaded again"); }).join();
    bench.program().invalidate("a later reason");
    bench.run_to_the_end(5);
    EXPECT_EQ(bench.found(), bench.expected());
    EXPECT_EQ(bench.program().state(), GraphState::kInvalid);
    EXPECT_EQ(bench.program().reason(), "the motion was loaded again");
    EXPECT_EQ(bench.program().replays(), run < 2 ? 0u : static_cast<uint64_t>(run - 2));
    bench.program().release();
  }
}

TEST_F(CapturedProgramTest, ABodyMayInvalidateItsOwnProgram) {
  Bench bench;
  bench.in_body([&](uint64_t, uint64_t op) {
    if (op == 1) bench.program().invalidate("a field has moved");
  });
  bench.run_to_the_end(6);
  EXPECT_EQ(bench.found(), bench.expected());
  EXPECT_EQ(bench.program().reason(), "a field has moved");
  EXPECT_EQ(bench.program().replays(), 0u);
  bench.program().release();
}

TEST_F(CapturedProgramTest, AnErrorOfTheBodyThatIsNoFailurePassesAndLeavesNoCapture) {
  Bench bench;
  bench.run_to_the_end(2);
  bench.in_body([](uint64_t body, uint64_t op) {
    if (body == 2 && op == 1) throw std::logic_error("of the body");
  });
  EXPECT_THROW(bench.program().run(), std::logic_error);
  bench.run_to_the_end(3);
  EXPECT_EQ(bench.found(), bench.expected());
  EXPECT_EQ(bench.program().replays(), 3u);
  bench.program().release();
}

// ---- the end ----

TEST_F(CapturedProgramTest, ReleaseWaitsForTheReplaysInFlight) {
  Bench bench;
  bench.run_to_the_end(3);
  for (int i = 0; i < 5; ++i) bench.run();
  EXPECT_GT(bench.fake().pending(), 0u);
  bench.program().release();
  EXPECT_EQ(bench.fake().pending(), 0u);
  EXPECT_EQ(bench.found(), bench.expected());
}

TEST_F(CapturedProgramTest, AGraphDestroyedWithoutReleaseIsSeenByTheDriver) {
  {
    Bench bench;
    bench.run_to_the_end(3);
    bench.run();
  }
  EXPECT_EQ(FakeCuda::take_violations(),
            std::vector<std::string>{"a graph was destroyed while 1 launches of it are pending"});
}

TEST_F(CapturedProgramTest, ADeviceThatFailsInAReplayEndsTheRunWithItsReason) {
  for (uint64_t op : {0, 1, 2}) {
    Bench bench;
    bench.run_to_the_end(4);
    bench.fake().fail("run", 1 + op, 719);  // behind the upload of the input
    bench.run();
    const std::string failure = failure_of([&] { bench.finish(); });
    EXPECT_TRUE(holds(failure, "719 unspecified launch failure")) << failure;
    EXPECT_TRUE(holds(failure_of([&] { bench.run(); }), "719")) << "it stays so";
    EXPECT_TRUE(holds(failure_of([&] { bench.program().release(); }), "719"));
    EXPECT_NE(failure_of([&] { bench.program().run(); }), "no failure");
  }
}

// What is passed by value is frozen at the capture: this is why nothing that varies may be.
TEST_F(CapturedProgramTest, AParameterByValueIsFrozenAndTheDifferenceSeen) {
  for (const bool is_graph : {false, true}) {
    Backend backend(fake_cuda());
    Stream stream(backend);
    Memory ring(backend, Memory::Kind::kDevice, 1000 * sizeof(float));
    Memory batch(backend, Memory::Kind::kDevice, sizeof(float));
    Memory found(backend, Memory::Kind::kPinnedHost, sizeof(float));
    Memory numbers(backend, Memory::Kind::kPinnedHost, ring.bytes());
    for (int i = 0; i < 1000; ++i) numbers.floats()[i] = static_cast<float>(i);
    stream.copy(CopyDirection::kHostToDevice, ring.floats(), numbers.floats(), ring.bytes());
    Event passed(backend);
    uint64_t tick = 0;
    const GraphPolicy policy = is_graph ? GraphPolicy::kOn : GraphPolicy::kOff;
    CapturedProgram program(backend, stream, {"sample", policy, ""}, [&] {
      stream.gather({batch.floats(), ring.floats(), 1000, 1, 1, 5, tick, 0, 1000, {1, 0, {}}});
      stream.copy(CopyDirection::kDeviceToHost, found.floats(), batch.floats(), sizeof(float));
    });
    std::set<float> sampled;
    for (; tick < 10; ++tick) {
      program.run();
      stream.record(passed);
      passed.wait();
      sampled.insert(*found.floats());
    }
    EXPECT_EQ(sampled.size(), is_graph ? 3u : 10u);
    program.release();
  }
}

}  // namespace
}  // namespace millrace
