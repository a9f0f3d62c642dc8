// Tests for cpp/c51.cpp.
#include "c51.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "philox.h"

namespace millrace {
namespace {

std::vector<float> random_distribution(int atoms, uint64_t seed) {
  std::vector<float> p(atoms);
  double sum = 0;
  for (int i = 0; i < atoms; ++i) {
    p[i] = random_uniform(random_source(seed, kStreamEvent, 0, 0), i, 0.0f, 1.0f);
    sum += p[i];
  }
  for (float& v : p) v = static_cast<float>(v / sum);
  return p;
}

double mass(const std::vector<float>& p) { return std::accumulate(p.begin(), p.end(), 0.0); }

double mean(const Support& support, const std::vector<float>& p) {
  double sum = 0;
  for (int i = 0; i < support.atoms; ++i) {
    sum += p[i] * (support.v_min + i * double{support.v_max - support.v_min} / (support.atoms - 1));
  }
  return sum;
}

class C51Mass : public testing::TestWithParam<int> {};

// Public bug K1: targets on a bin moved both neighbours (mass above one) or neither (below).
TEST_P(C51Mass, IsOneOnBetweenAndBeyondBins) {
  const Support support{GetParam(), -20.0f, 20.0f};
  const float spacing = support.spacing();
  const std::vector<float> p = random_distribution(support.atoms, 3);
  const double before = mass(p);
  ASSERT_NEAR(before, 1.0, 1e-6);
  for (const float discount : {0.0f, 0.5f, 0.97f, 1.0f}) {
    for (const float reward : {0.0f, spacing, -3 * spacing, 0.37f * spacing, 1e-7f, 19.999f, 20.0f,
                               25.0f, -20.0f, -1e6f, 1e30f}) {
      std::vector<float> target(support.atoms, 7.0f);
      project_distribution(support, p.data(), reward, discount, target.data());
      EXPECT_NEAR(mass(target), 1.0, 1e-6) << "reward " << reward << " discount " << discount;
      for (const float v : target) EXPECT_GE(v, 0.0f);
    }
  }
}

TEST_P(C51Mass, MeanMovesWithTheRewardInsideTheSupport) {
  const Support support{GetParam(), -20.0f, 20.0f};
  const std::vector<float> p = random_distribution(support.atoms, 4);
  for (const float reward : {0.0f, 0.3f, -1.234f}) {
    std::vector<float> target(support.atoms);
    project_distribution(support, p.data(), reward, 0.9f, target.data());
    EXPECT_NEAR(mean(support, target), reward + 0.9 * mean(support, p), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Atoms, C51Mass, testing::Values(101, 501));

TEST(C51, ZeroRewardFullDiscountKeepsTheDistribution) {
  const Support support{101, -20.0f, 20.0f};
  const std::vector<float> p = random_distribution(101, 5);
  std::vector<float> target(101);
  project_distribution(support, p.data(), 0.0f, 1.0f, target.data());
  for (int i = 0; i < 101; ++i) EXPECT_NEAR(target[i], p[i], 1e-6);
}

TEST(C51, BeyondTheSupportAllMassIsOnTheEnd) {
  const Support support{11, -5.0f, 5.0f};
  const std::vector<float> p = random_distribution(11, 6);
  std::vector<float> target(11);
  project_distribution(support, p.data(), 100.0f, 1.0f, target.data());
  EXPECT_NEAR(target[10], 1.0, 1e-6);
  project_distribution(support, p.data(), -100.0f, 1.0f, target.data());
  EXPECT_NEAR(target[0], 1.0, 1e-6);
}

// One row through the op: columns reward, done, truncated.
struct TargetRow {
  Workspace workspace;
  ProjectTargetOp op{};

  explicit TargetRow(int groups) {
    op.rows = op.source_rows = 1;
    op.groups = groups;
    op.support = {101, -20.0f, 20.0f};
    op.value_stride = 101;
    op.reward_column = 0;
    op.done_column = 1;
    op.truncated_column = 2;
    op.gamma = 0.97f;
    op.logits = workspace.add_floats("logits", groups * 101);
    op.bias = workspace.add_floats("bias", groups * 101);
    op.log_probability = workspace.add_floats("log_probability", 1);
    op.log_alpha = workspace.add_floats("log_alpha", 1);
    op.target = workspace.add_floats("target", groups * 101);
    workspace.allocate();
  }
  std::vector<float> run(float reward, float done, float truncated, int group) {
    const float row[3] = {reward, done, truncated};
    Arguments arguments{};
    arguments.rows = row;
    arguments.row_stride = 3;
    execute(op, CpuFrame{workspace, arguments});
    const float* target = workspace.floats(op.target) + group * 101;
    return {target, target + 101};
  }
};

// Public bug O4: a fall on the last tick of the limit must not bootstrap. The update step stores it
// as terminated alone.
TEST(C51, ATerminatedRowsTargetIsItsReward) {
  TargetRow row(2);
  *row.workspace.floats(row.op.log_probability) = -7.0f;  // no entropy part either
  const Support support = row.op.support;
  for (int group = 0; group < 2; ++group) {
    EXPECT_NEAR(mean(support, row.run(1.3f, 1.0f, 0.0f, group)), 1.3, 1e-5);
  }
}

TEST(C51, ATruncatedRowBootstrapsLikeARunningOne) {
  TargetRow row(1);
  *row.workspace.floats(row.op.log_probability) = -2.0f;
  *row.workspace.floats(row.op.log_alpha) = std::log(0.5f);
  row.workspace.floats(row.op.logits)[60] = 50.0f;  // next value z = -20 + 60 * 0.4 = 4
  const double expected = 1.3 + 0.97 * 0.5 * 2.0 + 0.97 * 4.0;
  EXPECT_NEAR(mean(row.op.support, row.run(1.3f, 0.0f, 0.0f, 0)), expected, 1e-4);
  EXPECT_NEAR(mean(row.op.support, row.run(1.3f, 1.0f, 1.0f, 0)), expected, 1e-4);
}

TEST(C51, EachGroupProjectsItsOwnDistribution) {
  TargetRow row(2);
  row.workspace.floats(row.op.logits)[60] = 50.0f;
  row.workspace.floats(row.op.logits)[101 + 40] = 50.0f;  // z = -4
  EXPECT_NEAR(mean(row.op.support, row.run(0.0f, 0.0f, 0.0f, 0)), 0.97 * 4.0, 1e-4);
  EXPECT_NEAR(mean(row.op.support, row.run(0.0f, 0.0f, 0.0f, 1)), -0.97 * 4.0, 1e-4);
}

TEST(C51, ARewardThatIsNotFinitePoisonsItsTarget) {
  TargetRow row(1);
  EXPECT_TRUE(std::isnan(mass(row.run(INFINITY, 0.0f, 0.0f, 0))));
  EXPECT_TRUE(std::isnan(mass(row.run(NAN, 1.0f, 0.0f, 0))));
}

TEST(C51, LogProbabilitiesAreClampedAndPassNoGradientThere) {
  Workspace workspace;
  CriticLossOp op{};
  op.rows = op.groups = 1;
  op.support = {3, -1.0f, 1.0f};
  op.value_stride = 3;
  op.logits = workspace.add_floats("logits", 3);
  op.bias = workspace.add_floats("bias", 3);
  op.target = workspace.add_floats("target", 3);
  op.logits_gradient = workspace.add_floats("gradient", 3);
  op.loss = workspace.add_floats("loss", 4);
  op.value_mean = op.loss + 1;
  op.value_max = op.loss + 2;
  op.value_min = op.loss + 3;
  workspace.allocate();
  workspace.floats(op.bias)[2] = 100.0f;  // the others have log-probability -100
  workspace.floats(op.target)[0] = 0.25f;
  workspace.floats(op.target)[2] = 0.75f;
  execute(op, CpuFrame{workspace, Arguments{}});
  EXPECT_NEAR(*workspace.floats(op.loss), 0.25 * 30, 1e-5);
  EXPECT_NEAR(*workspace.floats(op.value_mean), 1.0, 1e-6);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(workspace.floats(op.logits_gradient)[i], 0.0, 1e-6);
}

}  // namespace
}  // namespace millrace
