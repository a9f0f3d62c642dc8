// Tests for cpp/sim_fields.cpp.
#include "sim_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "task_cartpole_swingup.h"
#include "task_g1_motion_tracking.h"
#include "task_g1_walk_flat.h"

namespace millrace {
namespace {

TEST(SimFields, DependOnRobotAndTask) {
  const auto walk = sim_field_dims(g1_walk_flat().sim, 29);
  EXPECT_EQ(walk[kJointPosition], 29);
  EXPECT_EQ(walk[kFootQuaternion], 8);
  EXPECT_EQ(walk[kBodyPosition], 0);
  EXPECT_EQ(walk[kUnstable], 1);
  const auto tracking = sim_field_dims(g1_motion_tracking().sim, 29);
  EXPECT_EQ(tracking[kBodyQuaternion], 4 * 14);
  EXPECT_EQ(tracking[kBodyAngularVelocity], 3 * 14);
  const auto cartpole = sim_field_dims(cartpole_swingup().sim, 2);
  EXPECT_EQ(cartpole[kRootPosition], 0);
  EXPECT_EQ(cartpole[kJointVelocity], 2);
}

TEST(SimFields, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int i = 0; i < kSimFieldCount; ++i) names.insert(sim_field_name(static_cast<SimField>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kSimFieldCount));
}

}  // namespace
}  // namespace millrace
