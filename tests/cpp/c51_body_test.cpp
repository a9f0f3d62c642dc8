// Tests for cpp/c51_body.h: a team of any size computes what c51.cpp does.
#include "c51_body.h"

#include <gtest/gtest.h>

#include <cmath>

#include "c51.h"
#include "lane_team.h"
#include "philox.h"

namespace millrace {
namespace {

std::vector<float> normals(u32 which, int count, float scale) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] =
        scale * random_normal(random_source(1, kStreamEvent, which, 0), static_cast<u32>(i));
  }
  return values;
}

std::vector<float> distribution(int atoms) {
  std::vector<float> values = normals(3, atoms, 1);
  float sum = 0;
  for (float& value : values) sum += value = std::abs(value);
  for (float& value : values) value /= sum;
  return values;
}

constexpr int kMostAtoms = 101;

// By `lanes` threads, from a room that holds garbage.
std::vector<float> project(int lanes, const Support& support, const std::vector<float>& from,
                           float reward, float discount) {
  std::vector<float> found(from.size());
  std::vector<u32> room(static_cast<size_t>(projection_room(support.atoms)), 12345u);
  run_team(lanes, [&](const LaneTeam& team) {
    float own[kMostAtoms];
    each_own_column<kMostAtoms>(team, support.atoms,
                                [&](int at, int i) { own[at] = from[static_cast<size_t>(i)]; });
    project_row(team, support, own, reward, discount, room.data(), found.data());
  });
  return found;
}

// On atoms, between them, far beyond both ends, and everything on one place.
// Its units are 2^-30: half of one lost or gained for each of an atom's two parts.
TEST(C51Body, ProjectionIsTheCpusAndItsMassIsOne) {
  for (const int atoms : {2, 11, 101}) {
    const Support support{atoms, -20, 20};
    const std::vector<float> probabilities = distribution(atoms);
    for (const float reward : {0.0f, 0.37f, -3.0f, 19.99f, 20.0f, 21.0f, -500.0f, 1e30f}) {
      for (const float discount : {0.0f, 0.5f, 0.97f, 1.0f}) {
        std::vector<float> expected(static_cast<size_t>(atoms));
        project_distribution(support, probabilities.data(), reward, discount, expected.data());
        for (const int lanes : {1, 5}) {
          const std::vector<float> found = project(lanes, support, probabilities, reward, discount);
          double mass = 0;
          for (size_t i = 0; i < found.size(); ++i) {
            ASSERT_NEAR(found[i], expected[i], 1e-6)
                << atoms << " " << reward << " " << discount << " " << lanes << " atom " << i;
            mass += found[i];
          }
          ASSERT_NEAR(mass, 1, 1e-6);
        }
      }
    }
  }
}

TEST(C51Body, AProjectionOfWhatIsNotANumberShowsIt) {
  const Support support{11, -20, 20};
  std::vector<float> probabilities = distribution(11);
  std::vector<float> expected(11);
  for (const int which : {0, 1, 2}) {
    const float reward = which == 0 ? NAN : 1.0f, discount = which == 1 ? NAN : 1.0f;
    if (which == 2) probabilities.assign(11, NAN);  // of logits that are none
    project_distribution(support, probabilities.data(), reward, discount, expected.data());
    const std::vector<float> found = project(1, support, probabilities, reward, discount);
    EXPECT_TRUE(std::isnan(found[0])) << which;
    EXPECT_TRUE(std::isnan(expected[0])) << which;
  }
}

// One row of one group: the losses are the row's own.
TEST(C51Body, CrossEntropyAndItsGradientAreTheCpus) {
  for (const int atoms : {2, 11, 101}) {
    const auto count = static_cast<uint64_t>(atoms);
    Workspace workspace;
    CriticLossOp op{};
    op.rows = op.groups = 1;
    op.support = {atoms, -20, 20};
    op.value_stride = atoms;
    op.logits = workspace.add_floats("logits", count);
    op.bias = workspace.add_floats("bias", count);
    op.target = workspace.add_floats("target", count);
    op.logits_gradient = workspace.add_floats("gradient", count);
    op.loss = workspace.add_floats("loss", 1);
    op.value_mean = workspace.add_floats("value_mean", 1);
    op.value_max = workspace.add_floats("value_max", 1);
    op.value_min = workspace.add_floats("value_min", 1);
    workspace.allocate();
    const std::vector<float> logits = normals(1, atoms, 15), bias = normals(2, atoms, 1);
    const std::vector<float> target = distribution(atoms);
    std::copy(logits.begin(), logits.end(), workspace.floats(op.logits));
    std::copy(bias.begin(), bias.end(), workspace.floats(op.bias));
    std::copy(target.begin(), target.end(), workspace.floats(op.target));
    execute(op, CpuFrame{workspace, Arguments{}});
    for (const int lanes : {1, 7, 32}) {
      std::vector<float> gradient(count);
      float loss = 0, value = 0;
      run_team(lanes, [&](const LaneTeam& team) {
        const Softmax<kMostAtoms> row =
            softmax_row<kMostAtoms>(team, logits.data(), bias.data(), atoms);
        const float row_loss =
            cross_entropy_row(team, row, target.data(), 1.0f, gradient.data(), atoms);
        const float row_value = expected_value_row(team, op.support, row.probabilities);
        if (team.leads()) {
          loss = row_loss;
          value = row_value;
        }
      });
      EXPECT_NEAR(loss, *workspace.floats(op.loss), 2e-5f);
      EXPECT_NEAR(value, *workspace.floats(op.value_mean), 2e-5f);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(gradient[i], workspace.floats(op.logits_gradient)[i], 2e-6f) << i;
      }
    }
  }
}

TEST(C51Body, TheGradientOfTheExpectedValueIsTheCpus) {
  constexpr int kAtoms = 101;
  Workspace workspace;
  ActorLossOp op{};
  op.rows = op.groups = 1;
  op.support = {kAtoms, -20, 20};
  op.value_stride = kAtoms;
  op.logits = workspace.add_floats("logits", kAtoms);
  op.bias = workspace.add_floats("bias", kAtoms);
  op.log_probability = workspace.add_floats("log_probability", 1);
  op.log_alpha = workspace.add_floats("log_alpha", 1);
  op.logits_gradient = workspace.add_floats("gradient", kAtoms);
  op.loss = workspace.add_floats("loss", 1);
  op.entropy = workspace.add_floats("entropy", 1);
  workspace.allocate();
  const std::vector<float> logits = normals(1, kAtoms, 2), bias = normals(2, kAtoms, 1);
  std::copy(logits.begin(), logits.end(), workspace.floats(op.logits));
  std::copy(bias.begin(), bias.end(), workspace.floats(op.bias));
  execute(op, CpuFrame{workspace, Arguments{}});
  std::vector<float> gradient(kAtoms);
  run_team(8, [&](const LaneTeam& team) {
    const Softmax<kAtoms> row = softmax_row<kAtoms>(team, logits.data(), bias.data(), kAtoms);
    const float value = expected_value_row(team, op.support, row.probabilities);
    value_gradient_row(team, op.support, row.probabilities, value, 1.0f, gradient.data());
  });
  for (size_t i = 0; i < kAtoms; ++i) {
    ASSERT_NEAR(gradient[i], workspace.floats(op.logits_gradient)[i], 2e-6f) << i;
  }
}

}  // namespace
}  // namespace millrace
