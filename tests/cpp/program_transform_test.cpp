// Tests for cpp/program_transform.cpp; that the bits stay the same is program_runner_test's matter.
#include "program_transform.h"

#include <gtest/gtest.h>

#include "random_program.h"

namespace millrace {
namespace {

class ProgramTransformTest : public testing::Test {
 protected:
  PointwiseOp scaled(const ScalarSource& scalar) const {
    PointwiseOp op{};
    op.function = Pointwise::kScale;
    op.count = 8;
    op.a = op.y = a_;
    op.scalar = scalar;
    return op;
  }
  static ScalarSource constant() { return {ScalarSource::From::kConstant, 2, 0, {}}; }
  static std::string kinds(const TransformedProgram& transformed) {
    std::string text;
    for (const Rewrite& each : transformed.rewrites) {
      text += std::to_string(each.op) + " " + each.kind + "; ";
    }
    return text;
  }

  Workspace workspace_;
  const Operand a_ = workspace_.add_floats("a", 8), b_ = workspace_.add_floats("b", 8);
  Program program_{"p", workspace_};
};

TEST_F(ProgramTransformTest, AHostScalarIsReadFromTheBlock) {
  program_.record(scaled(constant()));
  program_.record(scaled({ScalarSource::From::kHost, 0, 3, {}}));
  const int line = __LINE__ - 1;
  const TransformedProgram transformed = transform(program_, InputRewrite::kNone);
  EXPECT_EQ(kinds(transformed), "1 scalar_to_block; ");
  EXPECT_EQ(transformed.rewrites[0].site.line, line);
  ASSERT_EQ(transformed.segments.size(), 1u);
  EXPECT_TRUE(transformed.segments[0].is_captured);
  const auto& op = std::get<PointwiseOp>(transformed.segments[0].program.records()[1].op);
  EXPECT_EQ(op.scalar.from, ScalarSource::From::kBlock);
  EXPECT_EQ(op.scalar.number, 3);
  EXPECT_EQ(transformed.captured_ops(), 2u);
  EXPECT_TRUE(transformed.refusals.empty());
}

TEST_F(ProgramTransformTest, ACopyMovesBeforeTheProgramUnlessItsTargetIsTouchedBefore) {
  program_.record(scaled(constant()));
  program_.record(CopyInOp{0, 8, b_});      // free
  program_.record(CopyInOp{1, 4, a_});      // op 0 works on it
  program_.record(CopyInOp{2, 4, b_ + 2});  // the first copy writes it
  const TransformedProgram transformed = transform(program_, InputRewrite::kNone);
  EXPECT_EQ(kinds(transformed), "1 copy_moved_before; ");
  ASSERT_EQ(transformed.copies_before.size(), 1u);
  EXPECT_EQ(transformed.copies_before[0].buffer, 0);
  ASSERT_EQ(transformed.refusals.size(), 2u);
  EXPECT_NE(transformed.refusals[0].reason.find("op 0 pointwise"), std::string::npos)
      << transformed.refusals[0].reason;
  EXPECT_NE(transformed.refusals[1].reason.find("op 1 copy_in"), std::string::npos)
      << transformed.refusals[1].reason;
  ASSERT_EQ(transformed.segments.size(), 2u);
  EXPECT_TRUE(transformed.segments[0].is_captured);
  EXPECT_FALSE(transformed.segments[1].is_captured);
}

TEST_F(ProgramTransformTest, ACopyToTheOtherHalfOfATouchedCarrierMoves) {
  PointwiseOp half = scaled(constant());
  half.count = 4;
  program_.record(half);
  program_.record(CopyInOp{0, 4, a_ + 4});
  EXPECT_EQ(kinds(transform(program_, InputRewrite::kNone)), "1 copy_moved_before; ");
}

TEST_F(ProgramTransformTest, AnOpOnTheHostMovesOnlyIfItsDeviceVersionGivesTheSameBits) {
  ColumnSumOp sum{};
  sum.rows = 2;
  sum.width = 2;
  sum.values = a_;
  sum.sums = b_;
  program_.record_on_host(scaled({ScalarSource::From::kHost, 0, 0, {}}));
  program_.record_on_host(sum);
  program_.record(scaled(constant()));
  program_.record(HostFunctionOp{"reverse", reverse_copy, a_, b_, 8, 8});
  program_.record(scaled(constant()));
  const TransformedProgram transformed = transform(program_, InputRewrite::kNone);
  EXPECT_EQ(kinds(transformed), "0 moved_to_device; 0 scalar_to_block; ");
  ASSERT_EQ(transformed.refusals.size(), 2u);
  EXPECT_EQ(transformed.refusals[0].op, 1u);
  EXPECT_NE(transformed.refusals[0].reason.find("rounds in another order"), std::string::npos);
  EXPECT_EQ(transformed.refusals[1].op, 3u);
  EXPECT_NE(transformed.refusals[1].reason.find("'reverse'"), std::string::npos);
  std::string shape;
  for (const auto& segment : transformed.segments) {
    shape += (segment.is_captured ? "graph " : "eager ") +
             std::to_string(segment.program.records().size()) + "; ";
  }
  EXPECT_EQ(shape, "graph 1; eager 1; graph 1; eager 1; graph 1; ");
}

TEST_F(ProgramTransformTest, InputsAreReadThroughTheBlockIfAskedFor) {
  PointwiseOp op = scaled(constant());
  op.a = Operand::of_input(2);
  program_.record(op);
  EXPECT_EQ(kinds(transform(program_, InputRewrite::kNone)), "");
  EXPECT_EQ(kinds(transform(program_, InputRewrite::kThroughBlock)), "0 input_to_block; ");
}

TEST_F(ProgramTransformTest, DescribesItself) {
  program_.record(scaled({ScalarSource::From::kHost, 0, 0, {}}));
  program_.record(HostFunctionOp{"reverse", reverse_copy, a_, b_, 8, 8});
  const nlohmann::json facts = transform(program_, InputRewrite::kNone).describe();
  EXPECT_EQ(facts["rewrites"][0]["kind"], "scalar_to_block");
  EXPECT_EQ(facts["refusals"][0]["op"], 1);
  EXPECT_EQ(facts["captured_ops"], 1);
  EXPECT_EQ(facts["segments"].size(), 2u);
  EXPECT_EQ(facts["rewrites"][0]["site"].get<std::string>().rfind("program_transform_test.cpp:", 0),
            0u);
}

}  // namespace
}  // namespace millrace
