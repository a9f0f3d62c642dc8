// Tests for cpp/row_norm.cpp.
#include "row_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "philox.h"

namespace millrace {
namespace {

struct Problem {
  Problem() {
    op.blocks = {{2, 3, 5, 1.0f}, {17, 1, 4, 2.0f}, {21, 1, 3, 0.0f}};
    op.parameters = workspace.add_floats("parameters", 26);
    op.target = workspace.add_floats("target", 26);
    op.finite = workspace.add_floats("finite", 1);
    workspace.allocate();
    for (int i = 0; i < 26; ++i) {
      parameters()[i] = random_normal(random_source(1, kStreamEvent, 0, 0), static_cast<u32>(i));
      target()[i] = 10.0f;
    }
    *workspace.floats(op.finite) = 1.0f;
    before.assign(parameters(), parameters() + 26);
  }
  float* parameters() { return workspace.floats(op.parameters); }
  float* target() { return workspace.floats(op.target); }
  void run() {
    Arguments arguments{};
    arguments.target_rate = 0.25f;
    execute(op, {workspace, arguments});
  }

  Workspace workspace;
  NormaliseRowsOp op{};
  std::vector<float> before;
};

TEST(RowNorm, RowsGetTheirLengthsAndKeepTheirDirections) {
  Problem problem;
  problem.run();
  for (const RowBlock& block : problem.op.blocks) {
    for (int r = 0; r < block.rows; ++r) {
      const size_t first = block.first + static_cast<uint64_t>(r * block.width);
      double squares = 0, old_squares = 0, product = 0;
      for (int i = 0; i < block.width; ++i) {
        const double now = problem.parameters()[first + i], old = problem.before[first + i];
        squares += now * now;
        old_squares += old * old;
        product += now * old;
      }
      const double wanted = block.length > 0 ? block.length : std::sqrt(old_squares);
      EXPECT_NEAR(std::sqrt(squares), wanted, 1e-6);
      EXPECT_NEAR(product, std::sqrt(squares * old_squares), 1e-5);
    }
  }
}

TEST(RowNorm, TargetsMoveTowardsTheScaledRowsOfAllBlocks) {
  Problem problem;
  problem.run();
  for (int i = 0; i < 26; ++i) {
    const bool is_inside = i >= 2 && i < 24;
    const float wanted = is_inside ? 7.5f + 0.25f * problem.parameters()[i] : 10.0f;
    EXPECT_FLOAT_EQ(problem.target()[i], wanted) << i;
    if (is_inside) continue;
    EXPECT_EQ(problem.parameters()[i], problem.before[i]);
  }
}

TEST(RowNorm, ARowOfZerosStaysAndWithoutATargetNothingElseMoves) {
  Problem problem;
  std::fill_n(problem.parameters() + 2, 5, 0.0f);
  problem.op.target = Operand{};
  problem.run();
  for (int i = 2; i < 7; ++i) EXPECT_EQ(problem.parameters()[i], 0.0f);
  EXPECT_NE(problem.parameters()[7], problem.before[7]);
}

TEST(RowNorm, AnUpdateThatIsLeftOutChangesNothing) {
  Problem problem;
  *problem.workspace.floats(problem.op.finite) = 0.0f;
  problem.run();
  for (int i = 0; i < 26; ++i) {
    EXPECT_EQ(problem.parameters()[i], problem.before[i]);
    EXPECT_EQ(problem.target()[i], 10.0f);
  }
}

}  // namespace
}  // namespace millrace
