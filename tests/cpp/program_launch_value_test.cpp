// Tests for cpp/program_launch.h: the ops on the critics' values, categorical and scalar, are the
// CPU's on every backend.
#include <algorithm>
#include <cmath>

#include "bf16.h"
#include "program_trial.h"

namespace millrace {
namespace {

class ProgramLaunchValueTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_COMPUTING_BACKEND(ProgramLaunchValueTest);

// Columns 0, 1, 2 of a row: reward, done, truncated.
std::vector<float> reward_rows(int rows) {
  std::vector<float> batch(static_cast<size_t>(rows) * 3);
  for (int r = 0; r < rows; ++r) {
    float* row = batch.data() + r * 3;
    const RandomSource source = random_source(5, kStreamReset, static_cast<u32>(r), 0);
    row[0] = 12.0f * random_normal(source, 0);  // some beyond the support
    row[1] = r % 4 == 3 ? 1.0f : 0.0f;
    row[2] = r % 8 == 7 ? 1.0f : 0.0f;
  }
  return batch;
}

// So many rows that devices take several at a time where there are few atoms.
constexpr int kManyRows = 4098;

// The part that ops on distributions have in common: two groups, rows of values with a gap.
template <class CategoricalOp>
CategoricalOp categorical(int rows, int atoms) {
  CategoricalOp op{};
  op.rows = rows;
  op.groups = 2;
  op.support = {atoms, -20, 20};
  op.value_stride = atoms + 3;
  return op;
}

TEST_P(ProgramLaunchValueTest, ProjectTarget) {
  for (const auto& [atoms, rows] :
       {std::pair{2, 80}, {11, 80}, {101, 80}, {501, 80}, {600, 80}, {101, kManyRows}}) {
    SCOPED_TRACE(std::to_string(atoms) + " atoms, " + std::to_string(rows) + " rows");
    Trial trial;
    ProjectTargetOp op = categorical<ProjectTargetOp>(rows, atoms);
    op.source_rows = 40;
    op.reward_column = 0;
    op.done_column = 1;
    op.truncated_column = 2;
    op.gamma = 0.97f;
    const uint64_t values = 2 * static_cast<uint64_t>(rows * op.value_stride);
    op.logits = trial.add("logits", values);
    op.bias = trial.add("bias", 2 * static_cast<uint64_t>(op.value_stride));
    op.log_probability = trial.add("log_probability", static_cast<uint64_t>(rows));
    op.log_alpha = trial.add("log_alpha", 1, 0, -1);
    op.target = trial.add("target", values);
    trial.batch = reward_rows(40);
    trial.batch[3 * 7] = NAN;
    trial.batch[3 * 9] = INFINITY;
    trial.with.row_stride = 3;
    trial.run(GetParam(), op, 1e-5);
  }
}

TEST_P(ProgramLaunchValueTest, CriticLoss) {
  in_each_storage(GetParam(), 5e-5, [&](Precision precision, double tolerance) {
    for (const auto& [atoms, rows] :
         {std::pair{2, 1201}, {11, 1201}, {101, 1201}, {501, 50}, {600, 50}, {101, kManyRows}}) {
      SCOPED_TRACE(std::to_string(atoms) + " atoms, " + std::to_string(rows) + " rows");
      Trial trial;
      CriticLossOp op = categorical<CriticLossOp>(rows, atoms);
      const uint64_t stride = static_cast<uint64_t>(op.value_stride);
      const uint64_t values = 2 * static_cast<uint64_t>(op.rows) * stride;
      op.logits = trial.add("logits", values, 8);  // some log-probabilities below the floor
      op.bias = trial.add("bias", 2 * stride);
      op.target = trial.add("target", values);
      op.logits_gradient = trial.add_activation("logits_gradient", values);
      op.loss = trial.add("loss", 1);
      op.value_mean = trial.add("value_mean", 1);
      op.value_max = trial.add("value_max", 1);
      op.value_min = trial.add("value_min", 1);
      trial.run(GetParam(), op, tolerance, precision, [&](Workspace& workspace) {
        for (uint64_t i = 0; i < values; ++i) {
          float& target = *workspace.floats(op.target + i);
          target = std::abs(target) / static_cast<float>(op.support.atoms);
        }
      });
    }
  });
}

// A block's warps take a row each: the extremes of all count.
TEST_P(ProgramLaunchValueTest, TheLargestAndTheSmallestValueMayStandInAnyRow) {
  constexpr uint64_t kRows = 4, kGroups = 2, kAtoms = 11;
  for (uint64_t largest = 0; largest < 4; ++largest) {
    SCOPED_TRACE(largest);
    const uint64_t smallest = (largest + 1) % 4;
    Trial trial;
    CriticLossOp op{};
    op.rows = kRows;
    op.groups = kGroups;
    op.support = {kAtoms, -20, 20};
    op.value_stride = kAtoms;
    op.logits = trial.add("logits", kRows * kGroups * kAtoms);
    op.bias = trial.add("bias", kGroups * kAtoms, 0);
    op.target = trial.add("target", kRows * kGroups * kAtoms, 0, 1.0f / kAtoms);
    op.logits_gradient = trial.add_activation("logits_gradient", kRows * kGroups * kAtoms);
    op.loss = trial.add("loss", 1);
    op.value_mean = trial.add("value_mean", 1);
    op.value_max = trial.add("value_max", 1);
    op.value_min = trial.add("value_min", 1);
    trial.run(GetParam(), op, 5e-5, Precision::kFp32, [&](Workspace& workspace) {
      *workspace.floats(op.logits + (largest * kAtoms + kAtoms - 1)) = 20;
      *workspace.floats(op.logits + smallest * kAtoms) = 20;
    });
  }
}

TEST_P(ProgramLaunchValueTest, ActorLoss) {
  in_each_storage(GetParam(), 2e-5, [&](Precision precision, double tolerance) {
    for (const auto& [atoms, rows] :
         {std::pair{11, 1201}, {101, 1201}, {501, 50}, {101, kManyRows}}) {
      SCOPED_TRACE(std::to_string(atoms) + " atoms, " + std::to_string(rows) + " rows");
      Trial trial;
      ActorLossOp op = categorical<ActorLossOp>(rows, atoms);
      const uint64_t stride = static_cast<uint64_t>(op.value_stride);
      const uint64_t values = 2 * static_cast<uint64_t>(op.rows) * stride;
      op.logits = trial.add("logits", values, 2);
      op.bias = trial.add("bias", 2 * stride);
      op.log_probability = trial.add("log_probability", static_cast<uint64_t>(op.rows), 1, -20);
      op.log_alpha = trial.add("log_alpha", 1, 0, -1);
      op.logits_gradient = trial.add_activation("logits_gradient", values);
      op.loss = trial.add("loss", 1);
      op.entropy = trial.add("entropy", 1);
      trial.run(GetParam(), op, tolerance, precision);
    }
  });
}

ScalarHead add_scalar_head(Trial& trial, int rows, int groups, int width) {
  ScalarHead head{};
  head.rows = rows;
  head.groups = groups;
  head.width = width;
  const auto count = [](int a, int b, int c = 1) {
    return static_cast<uint64_t>(a) * static_cast<uint64_t>(b) * static_cast<uint64_t>(c);
  };
  head.weight_distance = count(8, width);
  head.bias_distance = 8;
  head.hidden = trial.add_activation("hidden", count(rows, groups, width));
  head.weight = trial.add_parameters("weight", count(groups, 8, width));
  head.bias = trial.add("bias", count(groups, 8));
  return head;
}

// Calls check(trial, head, run) for heads of all kinds in each storage: of any width, and of one
// that is read in whole vectors. run(op) is the trial's, with a `prepare` if one is given.
template <class Check>
void with_each_scalar_head(const std::string& backend_name, int rows, const Check& check) {
  in_each_storage(backend_name, 5e-6, [&](Precision precision, double tolerance) {
    for (const int groups : {1, 2, 5}) {
      for (const int width : {3, 37, 256}) {
        SCOPED_TRACE(std::to_string(groups) + " groups, " + std::to_string(width) + " wide");
        Trial trial;
        check(trial, add_scalar_head(trial, rows, groups, width),
              [&](const Op& op, const auto&... prepare) {
                trial.run(backend_name, op, tolerance, precision, prepare...);
              });
      }
    }
  });
}

// Of hidden layers with a ReLU and, at one width, without.
ScalarHeadGradient add_head_gradient(Trial& trial, const ScalarHead& head) {
  return {trial.add_activation("hidden_gradient", static_cast<uint64_t>(head.rows) *
                                                      static_cast<uint64_t>(head.groups) *
                                                      static_cast<uint64_t>(head.width)),
          head.width != 37};
}

TEST_P(ProgramLaunchValueTest, ScalarTarget) {
  with_each_scalar_head(GetParam(), 602, [](Trial& trial, const ScalarHead& head, auto run) {
    ScalarTargetOp op{};
    op.head = head;
    op.source_rows = 301;
    op.reward_column = 0;
    op.done_column = 1;
    op.truncated_column = 2;
    op.gamma = 0.97f;
    op.log_probability = trial.add("log_probability", 602);
    op.log_alpha = trial.add("log_alpha", 1, 0, -1);
    op.target = trial.add("target", 602);
    trial.batch = reward_rows(301);
    trial.batch[3 * 7] = NAN;
    trial.batch[3 * 9] = INFINITY;
    trial.with.row_stride = 3;
    trial.with.reward_scale = 0.3f;
    run(op);
  });
}

TEST_P(ProgramLaunchValueTest, ScalarCriticGradient) {
  with_each_scalar_head(GetParam(), 1201, [](Trial& trial, const ScalarHead& head, auto run) {
    ScalarCriticGradientOp op{};
    op.head = head;
    const uint64_t lines = 1201 * static_cast<uint64_t>(head.groups);
    op.target = trial.add("target", 1201, 8, 1);
    op.values = trial.add("values", lines);
    op.values_gradient = trial.add_activation("values_gradient", 8 * lines);
    op.gradient = add_head_gradient(trial, head);
    run(op);
  });
}

TEST_P(ProgramLaunchValueTest, ScalarActorGradient) {
  with_each_scalar_head(GetParam(), 1201, [](Trial& trial, const ScalarHead& head, auto run) {
    ScalarActorGradientOp op{};
    op.head = head;
    op.least_values = trial.add("least_values", 1201);
    op.gradient = add_head_gradient(trial, head);
    // Values that rounding does not touch: it could make another group the smallest.
    run(op, [&](Workspace& workspace) {
      float* hidden = workspace.floats(head.hidden);
      const uint64_t count = 1201 * static_cast<uint64_t>(head.groups * head.width);
      std::transform(hidden, hidden + count, hidden,
                     [](float value) { return from_bf16(to_bf16(value)); });
    });
  });
}

TEST_P(ProgramLaunchValueTest, ScalarCriticLoss) {
  for (const int rows : {1, 1201}) {
    Trial trial;
    ScalarCriticLossOp op{};
    op.rows = rows;
    op.groups = 2;
    op.values = trial.add("values", 2 * static_cast<uint64_t>(rows), 8);
    op.target = trial.add("target", static_cast<uint64_t>(rows), 8, 1);
    op.loss = trial.add("loss", 1);
    op.value_mean = trial.add("value_mean", 1);
    op.value_max = trial.add("value_max", 1);
    op.value_min = trial.add("value_min", 1);
    trial.run(GetParam(), op, 2e-5);
  }
}

TEST_P(ProgramLaunchValueTest, ScalarActorLoss) {
  for (const int rows : {1, 1201}) {
    Trial trial;
    ScalarActorLossOp op{};
    op.rows = rows;
    op.least_values = trial.add("least_values", static_cast<uint64_t>(rows), 8);
    op.log_probability = trial.add("log_probability", static_cast<uint64_t>(rows), 1, -20);
    op.log_alpha = trial.add("log_alpha", 1, 0, -1);
    op.loss = trial.add("loss", 1);
    op.entropy = trial.add("entropy", 1);
    trial.run(GetParam(), op, 2e-5);
  }
}

}  // namespace
}  // namespace millrace
