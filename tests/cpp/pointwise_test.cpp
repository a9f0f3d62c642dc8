// Tests for cpp/pointwise.cpp, and that every backend gives its bits.
#include "pointwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device_workspace.h"
#include "each_backend.h"
#include "random_program.h"

namespace millrace {
namespace {

class PointwiseTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_COMPUTING_BACKEND(PointwiseTest);

TEST(Pointwise, ComputesWhatItsNameSays) {
  EXPECT_EQ(pointwise_element<Pointwise::kScale>(3, 5, 2), 6);
  EXPECT_EQ(pointwise_element<Pointwise::kAdd>(3, 5, 2), 8);
  EXPECT_EQ(pointwise_element<Pointwise::kAddScaled>(3, 5, 2), 13);
  EXPECT_EQ(pointwise_element<Pointwise::kMultiply>(3, 5, 2), 15);
  EXPECT_NEAR(pointwise_element<Pointwise::kTanh>(0.3f, 5, 2), std::tanh(0.6), 1e-6);
}

// One op on the CPU and on a backend, over memory that begins at a multiple of 16 bytes or not.
TEST_P(PointwiseTest, EveryBackendGivesTheBitsOfTheCpu) {
  for (const auto access :
       {DeviceWorkspace::InputAccess::kByValue, DeviceWorkspace::InputAccess::kThroughBlock}) {
    for (const uint64_t count : {1, 64, 1001}) {
      for (const uint64_t offset : {0, 1, 4}) {
        for (int function = 0; function < 5; ++function) {
          for (const auto from : {ScalarSource::From::kConstant, ScalarSource::From::kHost,
                                  ScalarSource::From::kBlock, ScalarSource::From::kCarrier}) {
            Workspace workspace;
            const Operand a = workspace.add_floats("a", count + 8);
            const Operand y = workspace.add_floats("y", count + 8);
            PointwiseOp op{};
            op.function = static_cast<Pointwise>(function);
            op.count = count;
            op.a = a + offset;
            op.b = Operand::of_input(1) + offset;
            op.y = y + offset;
            op.scalar = {from, 0.75f, 1, a + 2};
            Program program("one", workspace);
            program.record(op);
            program.record(RandomFillOp{4, kStreamEvent, 9, a});
            workspace.allocate();
            std::vector<float> input(count + 8);
            for (uint64_t i = 0; i < count + 8; ++i) {
              const RandomSource source = random_source(2, kStreamEvent, static_cast<u32>(i), 0);
              *workspace.floats(a + i) = random_normal(source, 0);
              input[i] = random_normal(source, 1);
            }
            Backend backend(test_backend_api(GetParam()));
            Stream stream(backend);
            Transfer transfer(backend);
            Memory memory(backend, Memory::Kind::kDevice, input.size() * sizeof(float));
            transfer.write(memory.floats(), input);
            DeviceWorkspace device(backend, stream, workspace, {&program}, Precision::kFp32);
            device.upload();
            HostInputs inputs = {{0.1f, 0.2f}, {nullptr, memory.floats()}, {}};
            const Arguments arguments = RandomProgram::arguments_of(3);
            device.set_arguments(arguments, inputs);
            device.submit(program, inputs, access);

            inputs.inputs[1] = input.data();
            run_on_cpu(program, {workspace,
                                 arguments,
                                 {inputs.scalars.data(), inputs.inputs.data(), nullptr,
                                  inputs.scalars.data(), nullptr}});
            const std::vector<float> expected(workspace.floats(a), workspace.floats(y) + count + 8);
            device.download();
            EXPECT_EQ(std::vector<float>(workspace.floats(a), workspace.floats(y) + count + 8),
                      expected)
                << function << " " << static_cast<int>(from) << " " << count << " " << offset;
          }
        }
      }
    }
  }
}

// A product that reads an input is the same however it finds it.
TEST_P(PointwiseTest, AProductReadsAnInputByValueAndThroughTheBlock) {
  Workspace workspace;
  const Operand b = workspace.add_floats("b", 40 * 24), c = workspace.add_floats("c", 2 * 32 * 24);
  GemmOp op{};
  op.m = 32;
  op.n = op.b_stride = op.c_stride = 24;
  op.k = op.a_stride = 40;
  op.a = Operand::of_input(0);
  op.b = b;
  op.c = c;
  op.count = 1;
  Program program("product", workspace);
  program.record(op);
  workspace.allocate();
  std::vector<float> input(32 * 40);
  for (size_t i = 0; i < input.size(); ++i) {
    input[i] = random_normal(random_source(2, kStreamEvent, static_cast<u32>(i), 0), 0);
  }
  for (u32 i = 0; i < 40 * 24; ++i) {
    *workspace.floats(b + i) = random_normal(random_source(2, kStreamEvent, i, 1), 0);
  }
  Backend backend(test_backend_api(GetParam()));
  Stream stream(backend);
  Transfer transfer(backend);
  Memory memory(backend, Memory::Kind::kDevice, input.size() * sizeof(float));
  transfer.write(memory.floats(), input);
  DeviceWorkspace device(backend, stream, workspace, {&program}, Precision::kFp32);
  std::vector<std::vector<float>> found;
  for (const auto access :
       {DeviceWorkspace::InputAccess::kByValue, DeviceWorkspace::InputAccess::kThroughBlock}) {
    device.upload();
    const HostInputs inputs = {{}, {memory.floats()}, {}};
    device.set_arguments(RandomProgram::arguments_of(0), inputs);
    device.submit(program, inputs, access);
    device.download(c);
    found.emplace_back(workspace.floats(c), workspace.floats(c) + 32 * 24);
    std::fill_n(workspace.floats(c), 32 * 24, 0.0f);
  }
  EXPECT_EQ(found[0], found[1]);
  double first = 0;
  for (int k = 0; k < 40; ++k) first += double{input[k]} * *workspace.floats(b + 24 * k);
  EXPECT_NEAR(found[0][0], first, 1e-4);
}

TEST(Pointwise, OnlyReadingDeviceOpsMayTakeAnInput) {
  Workspace workspace;
  const Operand a = workspace.add_floats("a", 8);
  Program program("inputs", workspace);
  PointwiseOp op{};
  op.function = Pointwise::kAdd;
  op.count = 8;
  op.a = Operand::of_input(2) + 8;
  op.b = op.y = a;
  program.record(op);
  EXPECT_EQ(program.takes().input_floats, (std::vector<uint64_t>{0, 0, 16}));
  EXPECT_THROW(program.record_on_host(op), Failure);
  op.y = op.a;
  EXPECT_THROW(program.record(op), Failure);
  EXPECT_THROW(program.record(ColumnSumOp{1, 8, Operand::of_input(0), a}), Failure);
}

}  // namespace
}  // namespace millrace
