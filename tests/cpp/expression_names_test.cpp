// Tests for cpp/expression_names.cpp: the table is consistent, and every name reads the components
// that the physics owner and the update step provide.
#include "expression_names.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "expression_body.h"
#include "task_fixture.h"
#include "update.h"

namespace millrace {
namespace {

ExpressionScope everything() { return {29, 29, 1, true, true, true}; }

TEST(ExpressionNames, EveryNameStandsOnce) {
  std::set<std::string> words;
  for (const nlohmann::json& each : describe_expressions()) {
    EXPECT_TRUE(words.insert(each.at("name")).second) << each;
    EXPECT_EQ(each.at("kind"), "expression");
    EXPECT_NE(each.at("unit"), "") << each;
    EXPECT_NE(each.at("summary"), "") << each;
  }
  EXPECT_EQ(words.size(), expression_names().size() + expression_functions().size());
}

TEST(ExpressionNames, ComponentsLieWithinTheirFields) {
  const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
  RandomSim sim(g1_model(), true, 1, 3);
  const UpdateStep update(task, sim.state_view(), 1, 5);
  for (const ExpressionName& name : expression_names()) {
    const int width = name.width(everything());
    ASSERT_GT(width, 0) << name.name;
    const StateView& state = update.state();
    const FieldView field = name.field < kSimFieldCount
                                ? state.sim[name.field]
                                : state.episode[name.field - kSimFieldCount];
    EXPECT_LT(name.offset + name.stride * (width - 1), field.dim) << name.name;
    if (*name.letters) {
      EXPECT_EQ(std::strlen(name.letters), static_cast<size_t>(name.dim)) << name.name;
    }
  }
}

TEST(ExpressionNames, ATaskHasWhatItsRobotHas) {
  const ExpressionScope cart = {2, 1, 1, false, false, false};
  std::set<std::string> names;
  for (const ExpressionName& name : expression_names()) {
    if (name.width(cart) > 0) names.insert(name.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"action", "body_ang_vel", "body_lin_vel", "body_pos",
                                          "body_quat", "joint_pos", "joint_vel", "last_action"}));
}

}  // namespace
}  // namespace millrace
