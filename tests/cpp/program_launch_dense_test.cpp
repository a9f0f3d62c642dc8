// Tests for cpp/program_launch.h: dense layers with their products, which a device may compute in
// one kernel, are the CPU's on every backend.
#include <gtest/gtest.h>

#include <cstring>

#include "device_workspace.h"
#include "program_launch.h"
#include "program_trial.h"

namespace millrace {
namespace {

class ProgramLaunchDenseTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_COMPUTING_BACKEND(ProgramLaunchDenseTest);

struct Shape {
  int rows, groups, width, inputs;
  bool is_first;      // all groups read the same rows
  bool keeps_linear;  // else the output takes their place
  int stride_slack = 0;
};

// Of a trial or of a bare workspace.
template <class Carriers>
DenseForwardOp add_dense(Carriers& to, const Shape& shape) {
  const uint64_t parameters = static_cast<uint64_t>(shape.groups) * shape.width;
  const uint64_t lines = static_cast<uint64_t>(shape.rows) * shape.groups;
  const uint64_t values = lines * shape.width;
  DenseForwardOp op{};
  LayerForwardOp& layer = op.layer;
  layer.rows = shape.rows;
  layer.groups = shape.groups;
  layer.width = shape.width;
  GemmOp& product = op.product;
  product.transpose_b = true;
  product.m = shape.rows;
  product.n = shape.is_first ? shape.groups * shape.width : shape.width;
  product.k = shape.inputs;
  product.count = shape.is_first ? 1 : shape.groups;
  product.a_distance = shape.inputs;
  product.a_stride = (shape.is_first ? 1 : shape.groups) * shape.inputs + shape.stride_slack;
  product.b_stride = shape.inputs;
  product.b_distance = static_cast<uint64_t>(shape.width) * shape.inputs;
  product.c_stride = shape.groups * shape.width;
  product.c_distance = shape.width;
  product.a = to.add_activation("input", static_cast<uint64_t>(shape.rows) * product.a_stride);
  product.b = to.add_parameters("weights", parameters * shape.inputs);
  layer.output = to.add_activation("output", values);
  layer.linear = shape.keeps_linear ? to.add_activation("linear", values) : layer.output;
  product.c = layer.linear;
  layer.bias = to.add_parameters("bias", parameters);
  layer.gain = to.add_parameters("gain", parameters);
  layer.shift = to.add_parameters("shift", parameters);
  layer.mean = to.add_transient("mean", lines);
  layer.inverse_deviation = to.add_transient("inverse_deviation", lines);
  return op;
}

// As Trial's, where a test wants no more than carriers.
struct TrialCarriers {
  Trial& trial;
  Operand add_activation(const char* name, uint64_t count) {
    return trial.add_activation(name, count);
  }
  Operand add_parameters(const char* name, uint64_t count) {
    return trial.add_parameters(name, count);
  }
  Operand add_transient(const char* name, uint64_t count) { return trial.add(name, count); }
};

void run(const std::string& backend, const Shape& shape, Precision precision, double tolerance) {
  SCOPED_TRACE(std::to_string(shape.rows) + " rows, " + std::to_string(shape.groups) + " x " +
               std::to_string(shape.width) + " of " + std::to_string(shape.inputs));
  Trial trial;
  TrialCarriers carriers{trial};
  const DenseForwardOp op = add_dense(carriers, shape);
  trial.run(backend, op, tolerance, precision, [&](Workspace& workspace) {
    workspace.floats(op.product.a)[shape.rows / 2 * op.product.a_stride] = NAN;  // one row is lost
  });
}

TEST_P(ProgramLaunchDenseTest, IsTheProductAndTheLayerAtAnyWidth) {
  for (const int width : {4, 37, 128, 192, 256, 384, 512, 768, 2100}) {
    for (const int rows : {1, 67}) {
      for (const bool is_first : {true, false}) {
        run(GetParam(), {rows, 2, width, 9, is_first, rows == 1}, Precision::kFp32, 2e-5);
      }
    }
  }
}

TEST(DenseForward, ALayerIsOfItsProductsResult) {
  const Shape shape{3, 2, 8, 4, true, true};
  for (const bool has_other_rows : {true, false}) {
    Workspace workspace;
    DenseForwardOp op = add_dense(workspace, shape);
    Program("whole", workspace).record(op);
    if (has_other_rows) {
      op.layer.rows -= 1;
    } else {
      op.layer.linear = op.layer.output;
    }
    EXPECT_THROW(Program("apart", workspace).record(op), Failure);
  }
}

// Enough rows for a kernel that computes both at once (cuda/joined_layer.cuh), which fill no tile;
// inputs that fill one box, two, and all; strides that are wider than the rows.
TEST_P(ProgramLaunchDenseTest, IsTheProductAndTheLayerForWideFirstLayers) {
  if ((test_backend_api(GetParam()).precisions & precision_bit(Precision::kBf16)) == 0) {
    GTEST_SKIP() << "computes no products in bf16";
  }
  for (const int width : {512, 768}) {
    for (const int groups : {1, 2}) {
      const bool is_joined = GetParam() == "cuda" && width == 768 && groups == 2;
      for (const bool keeps_linear : {true, false}) {
        for (const int inputs : {24, 104, 136}) {
          run(GetParam(),
              {is_joined ? 6501 : 67, groups, width, inputs, true, keeps_linear,
               inputs == 24 ? 8 : 0},
              Precision::kBf16, 2 * kBf16Rounding);
        }
      }
    }
  }
}

// A device that says it joins them launches one kernel, and says so of no narrower ones.
TEST_P(ProgramLaunchDenseTest, WideFirstLayersAreOneKernelWhereTheDeviceSaysSo) {
  Backend backend(test_backend_api(GetParam()));
  if (backend.api().has_graphs == 0 ||
      std::strstr(backend.facts().products, "first layers") == nullptr) {
    GTEST_SKIP() << "joins no layers";
  }
  Stream stream(backend);
  for (const int width : {768, 192}) {
    Workspace workspace;
    Program program("dense", workspace);
    program.record(add_dense(workspace, {8192, 2, width, 136, true, true}));
    workspace.allocate();
    DeviceWorkspace device(backend, stream, workspace, {&program}, Precision::kBf16);
    device.upload();
    device.set_arguments(Arguments{});
    device.submit(program);
    const Graph graph(backend, stream, [&] { device.submit(program); });
    if (width == 768) {
      EXPECT_EQ(graph.nodes().kernels, 1u);
    } else {
      EXPECT_GE(graph.nodes().kernels, 2u);
    }
  }
}

}  // namespace
}  // namespace millrace
