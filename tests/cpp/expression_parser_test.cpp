// Tests for cpp/expression_parser.cpp: what is refused, where, and how that is said.
#include "expression_parser.h"

#include <gtest/gtest.h>

#include "status.h"

namespace millrace {
namespace {

const ExpressionScope kWalking = {29, 29, 0, true, true, true};

std::string error_of(const std::string& text, const ExpressionScope& scope = kWalking) {
  try {
    parse_expression(text, scope, "rewards.mine.expr");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    const std::string message = failure.what();
    EXPECT_EQ(message.rfind("rewards.mine.expr: column ", 0), 0u) << message;
    return message.substr(std::string("rewards.mine.expr: column ").size());
  }
  return "no error";
}

TEST(ExpressionParser, TheIssuesExampleIsANumber) {
  const auto root = parse_expression("exp(-norm2(cmd.xy - base_lin_vel.xy) / 0.25)", kWalking, "");
  EXPECT_EQ(root->width, 0);
  EXPECT_EQ(root->kind, ExpressionNode::Kind::kElementwise);
}

TEST(ExpressionParser, UnknownNamesHaveAColumnAndASuggestion) {
  const std::string message = error_of("exp(-norm2(base_lin_vle.xy))");
  EXPECT_EQ(message.rfind("12: unknown name \"base_lin_vle\"; did you mean \"base_lin_vel\"?", 0),
            0u)
      << message;
  EXPECT_EQ(
      error_of("1 + nrm2(cmd)").rfind("5: unknown function \"nrm2\"; did you mean \"norm2\"?"), 0u);
  EXPECT_EQ(error_of("1 + norm2"), "5: norm2 is a function: it takes (");
  EXPECT_EQ(error_of("cmd.x", {29, 29, 0, true, false, false}), "1: this task has no cmd");
}

TEST(ExpressionParser, SyntaxErrorsHaveColumns) {
  const std::pair<const char*, const char*> expected[] = {
      {"", "1: unexpected end, expected a number, a name or \"(\""},
      {"  ", "3: unexpected end, expected a number, a name or \"(\""},
      {"1 +", "4: unexpected end, expected a number, a name or \"(\""},
      {"1 2", "3: unexpected \"2\""},
      {"(1", "3: unexpected end, expected \")\""},
      {"1)", "2: unexpected \")\""},
      {"1 < 2 < 3", "7: unexpected \"<\""},
      {"2 ^ 2", "3: unexpected \"^\""},
      {"1 = 2", "3: unexpected \"=\""},
      {"min(1 2)", "7: unexpected \"2\", expected \",\""},
      {"min(1,)", "7: unexpected \")\", expected a number, a name or \"(\""},
      {"1e99", "1: 1e99 does not fit a 32-bit float"},
      {"2 * 1e999", "5: 1e999 does not fit a 32-bit float"},
      {"cmd.x + \xc3\xa4", "9: unexpected character"},
      {"1.5.x", "5: a number has no components"},
      {"2.5 .x", "6: a number has no components"},
      {"cmd.", "5: unexpected end, expected the letters of components"},
      {"joint_pos[", "11: unexpected end, expected a whole number"},
      {"joint_pos[1.5]", "11: unexpected \"1.5\", expected a whole number"},
      {"joint_pos[-1]", "11: unexpected \"-\", expected a whole number"},
      {"joint_pos[1", "12: unexpected end, expected \"]\""}};
  for (const auto& [text, message] : expected) EXPECT_EQ(error_of(text), message) << text;
}

TEST(ExpressionParser, ShapeErrorsHaveColumns) {
  const std::pair<const char*, const char*> expected[] = {
      {"cmd",
       "1: a reward is a number, this is a vector of 3: take its sum, mean or norm, or one "
       "component"},
      {"1 - joint_pos[0:3]",
       "3: a reward is a number, this is a vector of 3: take its sum, mean "
       "or norm, or one component"},
      {"sum(cmd - joint_pos)", "9: \"-\" takes vectors of one width, got 3 and 29"},
      {"sum(max(cmd.xy, cmd))", "5: \"max\" takes vectors of one width, got 2 and 3"},
      {"dot(cmd.xy, cmd)", "1: \"dot\" takes vectors of one width, got 2 and 3"},
      {"dot(cmd, 1)", "10: dot takes a vector, got a number"},
      {"norm2(cmd.x)", "7: norm2 takes a vector, got a number"},
      {"clamp(1, 2)", "1: clamp takes 3 arguments, got 2"},
      {"exp()", "1: exp takes 1 argument, got 0"},
      {"cmd.x.x", "7: a number has no components"},
      {"cmd.w", "5: \".w\": the components here are xyz"},
      {"cmd.xy.z", "8: \".z\": the components here are xy"},
      {"norm(cmd.yx)", "10: \".yx\": components stand in their order, as in .xy"},
      {"norm(cmd.xx)", "10: \".xx\": components stand in their order, as in .xy"},
      {"norm(root_quat.wxz)", "16: \".wxz\": components stand in their order, as in .xy"},
      {"joint_pos.x", "11: a vector of 29 has no letters: [0] to [28] are its components"},
      {"joint_pos[29]", "11: 29 is beyond 28"},
      {"joint_pos[99999999999999999999]", "11: 99999999999999999999 is beyond 28"},
      {"sum(joint_pos[3:30])", "17: 30 is beyond 29"},
      {"sum(joint_pos[3:3])", "16: no components between these two"},
      {"1[0]", "3: a number has no components"}};
  for (const auto& [text, message] : expected) EXPECT_EQ(error_of(text), message) << text;
}

TEST(ExpressionParser, NestingAndLengthAreBounded) {
  const std::string deep(31, '(');
  EXPECT_EQ(error_of(deep + "1" + std::string(31, ')')), "no error");
  EXPECT_EQ(error_of("(" + deep + "1" + std::string(32, ')')), "33: nested deeper than 32");
  EXPECT_EQ(error_of(std::string(500, '-') + "1"), "33: nested deeper than 32");
  EXPECT_EQ(error_of(std::string(1000, '1')),
            "1: " + std::string(1000, '1') + " does not fit a 32-bit float");
  EXPECT_EQ(error_of(std::string(1001, ' ')), "1001: longer than 1000 characters");
}

}  // namespace
}  // namespace millrace
