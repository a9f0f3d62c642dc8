// Tests for metal/program_metal.h and what of the kernels is Metal's alone; that they compute what
// the CPU does is tested where each op is, on the backend metal_kernels.
#include "program_metal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernel_backend.h"
#include "program_trial.h"

namespace millrace {
namespace {

// How many records of a program of this one op have kernels.
size_t records_with_kernels(const Workspace& workspace, const Op& op) {
  Program program("metal", workspace);
  program.record(op);
  std::vector<void*> carriers(workspace.carriers().size());
  ProgramLaunch launch{};
  launch.program = &program;
  launch.carriers = carriers.data();
  MetalDispatches dispatches;
  return add_program(dispatches, launch);
}

TEST(ProgramMetal, SaysWhichRecordNoKernelTakes) {
  Workspace workspace;
  const Operand floats = workspace.add_floats("floats", 4096);
  const Operand step = workspace.add("step", DType::kU64, 1);
  for (const size_t count : {kMaxScalars, kMaxScalars + 1}) {
    StatisticsOp op;
    op.folds.resize(count);
    op.scalars = op.totals = op.finite = floats;
    EXPECT_EQ(records_with_kernels(workspace, op), count <= kMaxScalars ? 1u : 0u);
  }
  for (const size_t count : {kMaxRowBlocks, kMaxRowBlocks + 1}) {
    AdamWOp op{};
    op.count = count;
    for (u64 i = 0; i < count; ++i) op.rows.push_back({i, 1, 1, 1.0f});
    op.parameters = op.gradient = op.first_moment = op.second_moment = floats;
    op.loss = op.norm = op.clip = op.finite = floats;
    op.step = step;
    EXPECT_EQ(records_with_kernels(workspace, op), count <= kMaxRowBlocks ? 1u : 0u);
  }
  const auto negate = [](const float* from, uint64_t count, float* to, uint64_t) {
    for (uint64_t i = 0; i < count; ++i) to[i] = -from[i];
  };
  EXPECT_EQ(records_with_kernels(workspace, HostFunctionOp{"negate", negate, floats, floats, 4, 4}),
            0u);
}

// Room for the atoms of one row is what a threadgroup has memory for.
TEST(ProgramMetal, ProjectsAsManyRowsAtATimeAsTheirAtomsLeaveRoomFor) {
  for (const auto& [atoms, rows] : {std::pair{101, 4}, {4095, 2}, {8191, 1}, {8192, 0}}) {
    Workspace workspace;
    const uint64_t values = static_cast<uint64_t>(atoms) * 3;
    ProjectTargetOp op{};
    op.rows = op.source_rows = 3;
    op.groups = 1;
    op.support = {atoms, -1, 1};
    op.value_stride = atoms;
    op.logits = workspace.add_floats("logits", values);
    op.target = workspace.add_floats("target", values);
    op.bias = workspace.add_floats("bias", static_cast<uint64_t>(atoms));
    op.log_probability = workspace.add_floats("log_probability", 3);
    op.log_alpha = workspace.add_floats("log_alpha", 1);
    Program program("metal", workspace);
    program.record(op);
    std::vector<void*> carriers(workspace.carriers().size());
    ProgramLaunch launch{};
    launch.program = &program;
    launch.carriers = carriers.data();
    MetalDispatches dispatches;
    ASSERT_EQ(add_program(dispatches, launch), rows > 0 ? 1u : 0u) << atoms;
    if (rows == 0) continue;
    const MetalDispatch& one = dispatches.all().front();
    EXPECT_EQ(one.threads, static_cast<uint32_t>(rows) * kSimdWidth);
    EXPECT_EQ(one.threadgroups[0], static_cast<uint32_t>((3 + rows - 1) / rows));
    EXPECT_LE(one.threadgroup_bytes, 32u << 10);
  }
}

// A launch keeps to what any pipeline of Apple's takes, and to whole simdgroups.
TEST(ProgramMetal, ThreadgroupsAreOfAtMost256Threads) {
  for (const u32 threads : {kGatherThreads, kCopyThreads, kUpdateThreads, kRowThreads,
                            kElementThreads, kPartThreads, kParts, kLossThreads, kGemmThreads}) {
    EXPECT_LE(threads, 256u);
    EXPECT_EQ(threads % kSimdWidth, 0u);
  }
}

// The device has no double: the powers of the decays come from their logarithms.
TEST(ProgramMetal, AdamWIsTheHostsAtAnyStep) {
  for (const uint64_t step : {0, 1, 9, 600, 5000, 100000}) {
    SCOPED_TRACE(step);
    Trial trial;
    AdamWOp op{};
    op.count = 300;
    op.parameters = trial.add("parameters", op.count);
    op.gradient = trial.add("gradient", op.count);
    op.first_moment = trial.add("first_moment", op.count, 0.1f);
    op.second_moment = trial.add("second_moment", op.count, 0, 0.3f);
    op.step = trial.add_counter("step");
    op.loss = trial.add("loss", 1);
    op.norm = trial.add("norm", 1);
    op.clip = trial.add("clip", 1);
    op.finite = trial.add("finite", 1, 0, 1.0f);
    op.constants = {0.9f, 0.999f, 0.0f};
    op.rate = LearningRate::kCritic;
    trial.with.critic_learning_rate = 1.0f;  // so that the step is what counts
    trial.run(metal_kernels().name, op, 5e-7, Precision::kFp32,
              [&](Workspace& workspace) { *workspace.counters(op.step) = step; });
  }
}

}  // namespace
}  // namespace millrace
