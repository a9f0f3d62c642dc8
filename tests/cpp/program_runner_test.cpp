// Tests for cpp/program_runner.cpp: every way of running a program computes the bits of the CPU's
// loop over its ops, whatever the host brings to each run.
#include "program_runner.h"

#include <gtest/gtest.h>

#include "graph_backends.h"
#include "random_program.h"

namespace millrace {
namespace {

constexpr uint64_t kRuns = 7;

std::vector<std::string> every_backend() {
  std::vector<std::string> names = graph_backends();
  names.push_back("cpu");
  return names;
}

// A random program on a backend, with inputs in the backend's memory.
struct Bench {
  Bench(const std::string& name, RandomProgram& random)
      : random(random),
        backend(graph_backend_api(name)),
        stream(backend),
        transfer(backend),
        host_memory(random.input_memory()),
        memory(backend, Memory::Kind::kDevice, host_memory.size() * sizeof(float)),
        device(backend, stream, random.workspace, {&random.program}, Precision::kFp32),
        passed(backend),
        start(random.values()) {
    transfer.write(memory.floats(), host_memory);
  }

  void run(ProgramRunner& runner, uint64_t runs) {
    random.set(start);
    device.upload();
    for (uint64_t run = 0; run < runs; ++run) {
      runner.run(RandomProgram::arguments_of(run), random.inputs_of(run, memory.floats()));
    }
    wait();
    runner.completed();
    device.download();
  }
  void wait() {
    stream.record(passed);
    passed.wait();
  }
  std::vector<std::vector<float>> expected(uint64_t runs) {
    random.set(start);
    for (uint64_t run = 0; run < runs; ++run) {
      const HostInputs inputs = random.inputs_of(run, host_memory.data());
      const LaunchInputs by_value = {inputs.scalars.data(), inputs.inputs.data(),
                                     inputs.buffers.data(), nullptr, nullptr};
      run_on_cpu(random.program,
                 CpuFrame(random.workspace, RandomProgram::arguments_of(run), by_value));
    }
    return random.values();
  }

  RandomProgram& random;
  Backend backend;
  Stream stream;
  Transfer transfer;
  const std::vector<float> host_memory;
  Memory memory;
  DeviceWorkspace device;
  Event passed;
  const std::vector<std::vector<float>> start;
};

class ProgramRunnerTest : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>()); }
};

INSTANTIATE_TEST_SUITE_P(On, ProgramRunnerTest, testing::ValuesIn(every_backend()),
                         backend_of_test);

TEST_P(ProgramRunnerTest, EveryWayOfRandomProgramsGivesTheBitsOfTheLoopOverItsOps) {
  for (u32 number = 0; number < 24; ++number) {
    RandomProgram random(number, 30);
    Bench bench(GetParam(), random);
    const std::vector<std::vector<float>> expected = bench.expected(kRuns);
    for (const Way way : kAllWays) {
      SCOPED_TRACE(std::string(to_string(way)) + " of program " + std::to_string(number));
      ProgramRunner runner(bench.backend, bench.stream, bench.device, random.program, way);
      bench.run(runner, kRuns);
      EXPECT_EQ(random.values(), expected);
    }
  }
}

// A program of one host scalar, one input, one host buffer and an op placed on the host.
struct Obstructed : RandomProgram {
  Obstructed() : RandomProgram(1, 0) {
    PointwiseOp op{};
    op.function = Pointwise::kScale;
    op.count = kFloats;
    op.a = op.y = carriers[0];
    op.scalar = {ScalarSource::From::kHost, 0, 0, {}};
    program.record(op);
    op.scalar = {ScalarSource::From::kConstant, 0.5f, 0, {}};
    op.function = Pointwise::kAdd;
    op.b = Operand::of_input(0);
    program.record(op);
    program.record(CopyInOp{0, kFloats, carriers[1]});
    op.b = carriers[1];
    program.record_on_host(op);
  }
};

TEST_P(ProgramRunnerTest, SaysWhatIsCapturedAndHowMuchIsCopied) {
  if (GetParam() == "cpu") return;  // which has no graphs to say anything of
  Obstructed obstructed;
  Bench bench(GetParam(), obstructed);
  const uint64_t bytes = RandomProgram::kFloats * sizeof(float);
  ProgramRunner eager(bench.backend, bench.stream, bench.device, obstructed.program, Way::kEager);
  ProgramRunner blind(bench.backend, bench.stream, bench.device, obstructed.program, Way::kGraph);
  ProgramRunner copied(bench.backend, bench.stream, bench.device, obstructed.program,
                       Way::kTransformed);
  ProgramRunner indirect(bench.backend, bench.stream, bench.device, obstructed.program,
                         Way::kTransformedIndirect);
  for (ProgramRunner* runner : {&eager, &blind, &copied, &indirect}) bench.run(*runner, kRuns);
  EXPECT_EQ(eager.coverage(), 0.0);
  EXPECT_EQ(eager.obstacle(), "");
  EXPECT_NE(blind.obstacle().find("BY_VALUE_VARYING"), std::string::npos) << blind.obstacle();
  EXPECT_EQ(blind.coverage(), 0.0);
  EXPECT_FALSE(blind.has_graphs());
  for (const ProgramRunner* runner : {&copied, &indirect}) {
    EXPECT_EQ(runner->obstacle(), "");
    EXPECT_TRUE(runner->has_graphs());
    EXPECT_EQ(runner->coverage(), 1.0);
  }
  const uint64_t block = bench.device.block_bytes();
  EXPECT_LT(block, 200u);
  EXPECT_EQ(indirect.copied_bytes_per_run(), block + bytes);
  EXPECT_EQ(copied.copied_bytes_per_run(), block + 2 * bytes);
  EXPECT_EQ(copied.input_bytes(), bytes);
  EXPECT_EQ(indirect.input_bytes(), 0u);
  // The host op's carriers go down and up.
  EXPECT_EQ(eager.copied_bytes_per_run(), block + bytes + 3 * bytes);
}

TEST_P(ProgramRunnerTest, ARunThatBringsTooLittleIsRefused) {
  Obstructed obstructed;
  Bench bench(GetParam(), obstructed);
  ProgramRunner runner(bench.backend, bench.stream, bench.device, obstructed.program, Way::kEager);
  EXPECT_THROW(runner.run(RandomProgram::arguments_of(0), HostInputs{}), Failure);
  HostInputs shifted = obstructed.inputs_of(0, bench.memory.floats());
  shifted.inputs[0] += 1;  // kernels load four floats at once
  EXPECT_THROW(runner.run(RandomProgram::arguments_of(0), shifted), Failure);
}

}  // namespace
}  // namespace millrace
