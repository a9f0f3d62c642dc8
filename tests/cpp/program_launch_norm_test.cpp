// Tests for cpp/program_launch.h: the ops that FlashSAC adds, and what it asks of the others, are
// the CPU's on every backend.
#include <algorithm>

#include "program_trial.h"

namespace millrace {
namespace {

class ProgramLaunchNormTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_COMPUTING_BACKEND(ProgramLaunchNormTest);

struct Shape {
  int rows, groups, width;
};
const std::vector<Shape> kShapes = {{1, 1, 5}, {67, 2, 37}, {300, 1, 130}, {2050, 2, 96}};

void make_positive(Workspace& workspace, Operand first, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    float& value = *workspace.floats(first + i);
    value = 0.5f + value * value;
  }
}

BatchNorm norm_of(Trial& trial, const Shape& shape, bool is_training, bool has_relu,
                  bool is_shared) {
  BatchNorm norm{};
  norm.rows = shape.rows;
  norm.groups = shape.groups;
  norm.width = shape.width;
  norm.is_training = is_training;
  norm.has_relu = has_relu;
  norm.input_stride = is_shared ? shape.width + 7 : shape.groups * shape.width;
  norm.input_distance = is_shared ? 0 : static_cast<uint64_t>(shape.width);
  const uint64_t columns = static_cast<uint64_t>(shape.groups * shape.width);
  norm.input =
      trial.add("input", static_cast<uint64_t>(shape.rows * norm.input_stride), 2.0f, 3.0f);
  norm.affine = trial.add("affine", 2 * columns);
  norm.mean = trial.add("mean", columns, 1.0f, 3.0f);
  norm.variance = trial.add("variance", columns);
  return norm;
}

TEST_P(ProgramLaunchNormTest, BatchNormForward) {
  for (const Shape& shape : kShapes) {
    for (int mode = 0; mode < 8; ++mode) {
      SCOPED_TRACE(std::to_string(shape.width) + " mode " + std::to_string(mode));
      const bool is_training = mode % 2 != 0, is_shared = mode / 2 % 2 != 0,
                 is_last = mode / 4 != 0;
      if (is_training && shape.rows == 1) continue;  // all rounding
      Trial trial;
      BatchNormForwardOp op{};
      op.norm = norm_of(trial, shape, is_training, is_last, is_shared);
      const uint64_t values = static_cast<uint64_t>(shape.rows * shape.groups * shape.width);
      if (is_last) op.residual = trial.add("residual", values);
      op.output = trial.add("output", values);
      trial.run(GetParam(), op, 5e-6, Precision::kFp32, [&](Workspace& workspace) {
        make_positive(workspace, op.norm.variance,
                      static_cast<uint64_t>(shape.groups * shape.width));
      });
    }
  }
}

// The backward pass is given the statistics: the rows' own do not matter to parity.
TEST_P(ProgramLaunchNormTest, BatchNormBackward) {
  for (const Shape& shape : kShapes) {
    for (int mode = 0; mode < 6; ++mode) {
      SCOPED_TRACE(std::to_string(shape.width) + " mode " + std::to_string(mode));
      const bool is_training = mode < 3;
      const bool is_shared = mode == 2 || mode == 5;
      Trial trial;
      BatchNormBackwardOp op{};
      op.norm = norm_of(trial, shape, is_training, mode % 3 == 1, is_shared);
      const uint64_t values = static_cast<uint64_t>(shape.rows * shape.groups * shape.width);
      op.gradient = trial.add("gradient", values);
      if (is_training) {
        op.affine_gradient =
            trial.add("affine_gradient", static_cast<uint64_t>(2 * shape.groups * shape.width));
      }
      if (mode == 1) {
        op.input_gradient = op.gradient;
      } else if (mode != 2) {  // a shared input's gradient: in evaluation mode alone
        op.input_gradient = trial.add("input_gradient", values);
      }
      trial.run(GetParam(), op, 5e-6, Precision::kFp32, [&](Workspace& workspace) {
        make_positive(workspace, op.norm.variance,
                      static_cast<uint64_t>(shape.groups * shape.width));
      });
    }
  }
}

TEST_P(ProgramLaunchNormTest, RunningStatistics) {
  for (const float finite : {1.0f, 0.0f}) {
    Trial trial;
    RunningStatisticsOp op{};
    op.count = 333;
    op.batch = trial.add("batch", 666);
    op.running = trial.add("running", 666);
    op.finite = trial.add("finite", 1, 0, finite);
    op.share = 0.01f;
    op.correction = 1.01f;
    trial.run(GetParam(), op, kRounding);
  }
}

TEST_P(ProgramLaunchNormTest, RmsNorm) {
  for (const Shape& shape :
       {Shape{1, 1, 5}, Shape{67, 2, 37}, Shape{301, 2, 128}, Shape{2050, 2, 256}, {70, 1, 700}}) {
    const uint64_t values = static_cast<uint64_t>(shape.rows * shape.groups * shape.width);
    const uint64_t columns = static_cast<uint64_t>(shape.groups * shape.width);
    const uint64_t rows = static_cast<uint64_t>(shape.rows * shape.groups);
    Trial forward;
    RmsNormForwardOp op{shape.rows, shape.groups, shape.width, {}, {}, {}, {}};
    op.input = forward.add("input", values);
    op.gain = forward.add("gain", columns);
    op.inverse_rms = forward.add("inverse_rms", rows);
    op.output = forward.add("output", values);
    forward.run(GetParam(), op, kRounding);
    for (const bool has_sums : {true, false}) {
      Trial backward;
      RmsNormBackwardOp back{shape.rows, shape.groups, shape.width, {}, {}, {}, {}, {}, {}};
      back.gradient = backward.add("gradient", values);
      back.input = backward.add("input", values);
      back.inverse_rms = backward.add("inverse_rms", rows, 0.1f, 1.0f);
      back.gain = backward.add("gain", columns);
      back.input_gradient = backward.add("input_gradient", values);
      if (has_sums) back.gain_gradient = backward.add("gain_gradient", columns);
      backward.run(GetParam(), back, 5e-6);
    }
  }
}

TEST_P(ProgramLaunchNormTest, AProductThatAccumulates) {
  for (const Products by : {Products::kLibrary, Products::kOwnKernel}) {
    for (const int k : {64, 4096}) {  // whole, and in pieces
      Trial trial;
      GemmOp op{};
      op.m = 96;
      op.n = 40;
      op.k = k;
      op.count = 2;
      op.a_stride = 2 * k;
      op.a_distance = static_cast<uint64_t>(k);
      op.b_stride = 40;
      op.b_distance = static_cast<uint64_t>(40 * k);
      op.c_stride = 80;
      op.c_distance = 40;
      op.accumulates = true;
      op.a = trial.add("a", static_cast<uint64_t>(96 * 2 * k));
      op.b = trial.add("b", static_cast<uint64_t>(2 * 40 * k));
      op.c = trial.add("c", 96 * 80, 50.0f);
      trial.run(
          GetParam(), op, 2.5 * kRounding, Precision::kFp32, [](Workspace&) {}, by);
    }
  }
}

TEST_P(ProgramLaunchNormTest, ActionsOfFlashSac) {
  Trial sampling;
  SampleActionOp op{};
  op.rows = 301;
  op.actions = 29;
  op.density = kFlashSacDensity;
  op.stream = kStreamExploration;
  op.action_stride = 29;
  op.heads_stride = 58;
  op.heads = sampling.add("heads", 301 * 58, 3);  // some beyond where tanh rounds to one
  op.bias = sampling.add("bias", 58);
  op.action = sampling.add("action", 301 * 29);
  op.noise = sampling.add("noise", 301 * 29);
  op.log_probability = sampling.add("log_probability", 301);
  sampling.run(GetParam(), op, 5e-6);

  Trial gradient;
  ActionGradientOp back{};
  back.rows = 301;
  back.actions = 29;
  back.density = kFlashSacDensity;
  back.action_gradient_stride = 130;
  back.heads_stride = 58;
  back.heads = gradient.add("heads", 301 * 58, 2);
  back.bias = gradient.add("bias", 58);
  back.noise = gradient.add("noise", 301 * 29);
  back.action_gradient = gradient.add("action_gradient", 301 * 130);
  back.log_alpha = gradient.add("log_alpha", 1, 0, -2);
  back.heads_gradient = gradient.add("heads_gradient", 301 * 58);
  gradient.run(GetParam(), back, 1e-5);
}

TEST_P(ProgramLaunchNormTest, NoiseOfEachRowsOwnTick) {
  Trial trial;
  SampleActionOp op{};
  op.rows = 37;
  op.actions = 5;
  op.stream = kStreamExploration;
  op.action_stride = 5;
  op.heads_stride = 10;
  op.heads = trial.add("heads", 37 * 10);
  op.bias = trial.add("bias", 10);
  op.action = trial.add("action", 37 * 5);
  op.noise = trial.add("noise", 37 * 5);
  op.drawn_at = trial.add_counter("drawn_at", 37);
  trial.run(GetParam(), op, kRounding, Precision::kFp32, [&](Workspace& workspace) {
    for (uint64_t r = 0; r < 37; ++r) workspace.counters(op.drawn_at)[r] = (r % 5) << 33 | r / 3;
  });
}

// Columns 0, 1, 2 of a row: reward, done, truncated.
std::vector<float> reward_rows(int rows) {
  std::vector<float> batch(static_cast<size_t>(rows) * 3);
  for (int r = 0; r < rows; ++r) {
    float* row = batch.data() + r * 3;
    row[0] = 5.0f * random_normal(random_source(5, kStreamReset, static_cast<u32>(r), 0), 0);
    row[1] = r % 4 == 3 ? 1.0f : 0.0f;
    row[2] = r % 8 == 7 ? 1.0f : 0.0f;
  }
  return batch;
}

TEST_P(ProgramLaunchNormTest, TheSmallerCriticsTargetAndValue) {
  for (const int atoms : {11, 101, 501}) {
    SCOPED_TRACE(atoms);
    const uint64_t columns = 2 * static_cast<uint64_t>(atoms);
    Trial target;
    ProjectTargetOp project{};
    project.rows = 80;
    project.source_rows = 40;
    project.groups = 2;
    project.support = {atoms, -5, 5};
    project.value_stride = atoms;
    project.done_column = 1;
    project.truncated_column = 2;
    project.gamma = 0.97f;
    project.takes_smallest = true;
    project.logits = target.add("logits", 80 * columns);
    project.bias = target.add("bias", columns);
    project.log_probability = target.add("log_probability", 80);
    project.log_alpha = target.add("log_alpha", 1, 0, -1);
    project.target = target.add("target", 80 * columns);
    target.batch = reward_rows(40);
    target.batch[3 * 7] = NAN;
    target.with.row_stride = 3;
    target.with.reward_scale = 0.3f;
    target.run(GetParam(), project, 1e-5);

    Trial value;
    ActorLossOp loss{};
    loss.rows = 301;
    loss.groups = 2;
    loss.support = {atoms, -5, 5};
    loss.value_stride = atoms;
    loss.takes_smallest = true;
    loss.logits = value.add("logits", 301 * columns, 2);
    loss.bias = value.add("bias", columns);
    loss.log_probability = value.add("log_probability", 301, 1, -20);
    loss.log_alpha = value.add("log_alpha", 1, 0, -1);
    loss.logits_gradient = value.add("logits_gradient", 301 * columns);
    loss.loss = value.add("loss", 1);
    loss.entropy = value.add("entropy", 1);
    value.run(GetParam(), loss, 2e-5);
  }
}

TEST_P(ProgramLaunchNormTest, TheMeanOfBothCriticsLosses) {
  Trial trial;
  CriticLossOp op{};
  op.rows = 301;
  op.groups = 2;
  op.support = {101, -5, 5};
  op.value_stride = 101;
  op.is_mean_over_groups = true;
  op.logits = trial.add("logits", 602 * 101, 2);
  op.bias = trial.add("bias", 202);
  op.target = trial.add("target", 602 * 101, 0, 1.0f / 101);
  op.logits_gradient = trial.add("logits_gradient", 602 * 101);
  op.loss = trial.add("loss", 1);
  op.value_mean = trial.add("value_mean", 1);
  op.value_max = trial.add("value_max", 1);
  op.value_min = trial.add("value_min", 1);
  trial.run(GetParam(), op, 2e-5);
}

}  // namespace
}  // namespace millrace
