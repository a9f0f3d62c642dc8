// Tests for cpp/captured_program.cpp: a table of what can go wrong in a capture, a replay or
// between them. Never a wrong result, never a hang, always a reason, and nothing left behind.
#include <gtest/gtest.h>

#include <thread>

#include "program_bench.h"

namespace millrace {
namespace {

using Bench = ProgramBench;

// Two warm runs: body 2 is the first that is captured.
constexpr uint64_t kCaptured = 2;
constexpr int kRuns = 12;

// Does something once, in the body that is captured first, before op `op`.
void in_first_capture(Bench& bench, uint64_t op, std::function<void()> act) {
  bench.in_body([op, act = std::move(act)](uint64_t body, uint64_t at) {
    if (body == kCaptured && at == op) act();
  });
}

// What goes wrong and what must have become of it after twelve runs.
struct Fault {
  std::string name;
  GraphState state;
  std::string reason;  // stands in the history
  int failed_captures;
  std::function<void(Bench&)> arrange;          // before the first run
  std::function<void(Bench&, int run)> before;  // every run
};

void PrintTo(const Fault& fault, std::ostream* stream) { *stream << fault.name; }

constexpr GraphState kReplaying = GraphState::kReplaying;
constexpr GraphState kInvalid = GraphState::kInvalid;

Fault in_capture(const std::string& name, uint64_t op, const std::string& reason,
                 std::function<void(Bench&)> act) {
  return {name,
          kReplaying,
          reason,
          1,
          [op, act](Bench& bench) { in_first_capture(bench, op, [&bench, act] { act(bench); }); },
          nullptr};
}

// A call of the table fails in the first capture, before op `op`.
Fault call_fails(const std::string& function, uint64_t op, int code, const std::string& reason) {
  return in_capture(function + " fails at op " + std::to_string(op), op, reason,
                    [function, code](Bench& bench) { bench.fake().fail(function, 0, code); });
}

Fault before_run(const std::string& name, int run, GraphState state, const std::string& reason,
                 std::function<void(Bench&)> act) {
  return {name, state, reason, 0, nullptr, [run, act](Bench& bench, int at) {
            if (at == run) act(bench);
          }};
}

std::vector<Fault> failing_calls() {
  std::vector<Fault> faults;
  faults.push_back({"begin_capture fails", kReplaying, "beginning a capture failed on fake_cuda", 1,
                    [](Bench& bench) { bench.fake().fail("begin_capture", 0, 900); }, nullptr});
  for (uint64_t op = 0; op < Bench::kOps; ++op) {
    faults.push_back(call_fails("copy_async", op, 906,
                                "copying failed on fake_cuda: copy_async at fake_cuda.cpp: 906 "
                                "operation would make the legacy stream depend"));
    faults.push_back(call_fails("capture_status", op, 999, "asking for a capture's state failed"));
  }
  faults.push_back(call_fails("end_capture", 3, 901, "ending a capture failed on fake_cuda"));
  faults.push_back(
      call_fails("instantiate", 3, 2, "instantiate at fake_cuda.cpp: 2 out of memory"));
  faults.push_back({"three captures fail", kInvalid,
                    "the capture failed 3 times, the last time: ", 3,
                    [](Bench& bench) {
                      for (uint64_t i = 0; i < 3; ++i) bench.fake().fail("end_capture", i, 901);
                    },
                    nullptr});
  for (uint64_t replay : {0, 1, 5}) {
    faults.push_back({"launch " + std::to_string(replay) + " fails", kInvalid,
                      "launching a graph failed on fake_cuda: launch_graph at fake_cuda.cpp: 719 "
                      "unspecified launch failure",
                      0, [replay](Bench& bench) { bench.fake().fail("launch_graph", replay, 719); },
                      nullptr});
  }
  faults.push_back(before_run("the driver does not tell its memory before a replay", 4, kInvalid,
                              "asking for memory in use failed on fake_cuda",
                              [](Bench& bench) { bench.fake().fail("memory_census", 0, 999); }));
  return faults;
}

std::vector<Fault> broken_captures() {
  return {
      in_capture("waiting inside", 1, "900 operation not permitted when stream is capturing",
                 [](Bench& bench) { Event(bench.backend()).wait(); }),
      in_capture("querying inside", 2, "querying an event failed",
                 [](Bench& bench) { Event(bench.backend()).is_complete(); }),
      in_capture("another thread waits for an event of the capture", 1,
                 "907 operation not permitted on an event last recorded in a capturing stream",
                 [](Bench& bench) {
                   Event event(bench.backend());
                   bench.stream().record(event);
                   std::thread([&] { EXPECT_THROW(event.wait(), Failure); }).join();
                 }),
      in_capture("waiting for work outside", 1, "905 dependency created on uncaptured work",
                 [](Bench& bench) {
                   Stream other(bench.backend());
                   Event event(bench.backend());
                   other.record(event);
                   bench.stream().wait(event);
                 }),
      in_capture("a fork that is not joined", 3, "904 capturing stream has unjoined work",
                 [](Bench& bench) {
                   Stream other(bench.backend());
                   Event event(bench.backend());
                   bench.stream().record(event);
                   other.wait(event);
                   other.copy(CopyDirection::kDeviceToDevice, nullptr, nullptr, 0);
                 }),
      in_capture("the body refuses", 1, "the body refuses",
                 [](Bench&) { throw Failure(Code::kState, "the body refuses"); }),
  };
}

const std::string kSite = "fault_table_test.cpp:";
const std::string kOwn = "of device or pinned memory were allocated or freed, the last at " + kSite;

Fault while_running(const std::string& name, const std::string& reason,
                    std::function<void(MemoryCensus&)> grow) {
  return before_run(name, 5, kInvalid, reason, [grow](Bench& bench) {
    bench.fake().when("run", 1, [&bench, grow] { grow(bench.fake().driver_memory()); });
  });
}

std::vector<Fault> allocations() {
  const auto allocate = [](Memory::Kind kind) {
    return [kind](Bench& bench) { Memory(bench.backend(), kind, 64); };
  };
  const auto device = allocate(Memory::Kind::kDevice);
  Fault inside = in_capture("memory allocated in a capture", 1, kOwn, device);
  inside.state = kInvalid;
  Fault pinned = in_capture("pinned memory allocated in a capture", 1, kOwn,
                            allocate(Memory::Kind::kPinnedHost));
  pinned.state = kInvalid;
  Fault node = in_capture("a node that allocates", 1, "1 nodes of the graph allocate or free",
                          [](Bench& bench) { bench.fake().capture_allocation(); });
  node.state = kInvalid;
  node.failed_captures = 0;
  Fault held = {"a block that was there is freed",
                kInvalid,
                "1 blocks " + kOwn,
                0,
                nullptr,
                [held = std::make_shared<std::unique_ptr<Memory>>()](Bench& bench, int run) {
                  if (run == 0) {
                    held->reset(new Memory(bench.backend(), Memory::Kind::kDevice, 64));
                  }
                  if (run == 6) held->reset();
                }};
  return {
      inside,
      pinned,
      node,
      held,
      before_run("memory allocated while warm", 1, kInvalid, "2 blocks " + kOwn, device),
      before_run("memory allocated before the capture", 2, kInvalid, "2 blocks " + kOwn, device),
      before_run("memory allocated between replays", 7, kInvalid, "2 blocks " + kOwn, device),
      while_running("a graph's node allocates in a replay",
                    "memory of graph nodes changed by 64 bytes during a run",
                    [](MemoryCensus& driver) { driver.graph_reserved_bytes += 64; }),
      while_running("the pool grows in a replay",
                    "the stream-ordered pool changed by 4096 bytes during a run",
                    [](MemoryCensus& driver) { driver.pool_used_bytes += 4096; }),
      while_running("the device fills in a replay",
                    "memory in use on the device changed by 512 bytes during a run",
                    [](MemoryCensus& driver) { driver.device_used_bytes += 512; }),
      while_running("the device empties in a replay",
                    "memory in use on the device changed by -512 bytes during a run",
                    [](MemoryCensus& driver) { driver.device_used_bytes -= 512; }),
      before_run("the device fills between replays: another process", 5, kReplaying, "",
                 [](Bench& bench) { bench.fake().driver_memory().device_used_bytes += 512; }),
      before_run("the pool grew between replays", 5, kInvalid, "the stream-ordered pool changed",
                 [](Bench& bench) { bench.fake().driver_memory().pool_reserved_bytes += 512; }),
  };
}

std::vector<Fault> all_faults() {
  std::vector<Fault> all;
  for (const auto& part : {failing_calls(), broken_captures(), allocations()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class FaultTable : public ProgramTest, public testing::WithParamInterface<Fault> {};

std::string name_of(const testing::TestParamInfo<Fault>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(CapturedProgram, FaultTable, testing::ValuesIn(all_faults()), name_of);

void run_all(Bench& bench, const Fault& fault) {
  bench.fake().driver_memory().device_used_bytes = 1 << 20;
  if (fault.arrange) fault.arrange(bench);
  for (int run = 0; run < kRuns; ++run) {
    if (fault.before) fault.before(bench, run);
    bench.run_to_the_end(1);
  }
}

// graph: auto goes on, with the right bits.
TEST_P(FaultTable, LeavesTheBitsRightAndSaysWhy) {
  const Fault& fault = GetParam();
  for (uint64_t seed : {0, 1, 2}) {
    SCOPED_TRACE(seed);
    Bench bench;
    bench.fake().order_by(seed);
    run_all(bench, fault);
    EXPECT_TRUE(bench.fake().all_struck());
    EXPECT_EQ(bench.found(), bench.expected());
    EXPECT_EQ(bench.error_code(), 0);
    EXPECT_EQ(bench.program().state(), fault.state) << bench.states();
    EXPECT_TRUE(holds(bench.reasons(), fault.reason)) << bench.reasons();
    EXPECT_TRUE(fault.state != kInvalid || holds(bench.program().reason(), fault.reason));
    const nlohmann::json found = bench.program().describe();
    EXPECT_EQ(found.at("failed_captures"), fault.failed_captures);
    EXPECT_EQ(found.at("replays").get<int>() + found.at("eager_runs").get<int>(), kRuns);
    EXPECT_LE(found.at("captures"), 1);
    bench.program().release();
  }
}

// graph: on asked for a graph: without one the run ends, naming the program and the reason.
TEST_P(FaultTable, EndsARunThatAskedForAGraph) {
  const Fault& fault = GetParam();
  Bench bench(GraphPolicy::kOn);
  const std::string failure = failure_of([&] { run_all(bench, fault); });
  if (fault.state == kInvalid) {
    EXPECT_EQ(failure.find("graph: on, but the graph of 'update' cannot be replayed any more: "),
              0u)
        << failure;
    EXPECT_TRUE(holds(failure, fault.reason)) << failure;
  } else {
    EXPECT_EQ(failure, "no failure");
    EXPECT_EQ(bench.found(), bench.expected());
  }
  EXPECT_EQ(bench.program().state(), fault.state) << bench.states();
  bench.program().release();
}

}  // namespace
}  // namespace millrace
