// Tests for motion_robot.h: velocities are the derivatives of positions, and known orders.
#include "motion_robot.h"

#include <cmath>
#include <random>

#include "motion_fixture.h"
#include "resources.h"

namespace millrace {
namespace {

TEST(MotionRobot, VelocitiesAreTheDerivativesOfPositions) {
  MotionRobot robot = tracking_robot();
  ASSERT_EQ(robot.bodies(), 14);
  ASSERT_EQ(robot.joints(), 29);
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  std::vector<double> joints(29), rates(29), later(29);
  for (size_t j = 0; j < 29; ++j) joints[j] = uniform(generator), rates[j] = uniform(generator);
  const double position[3] = {1, 2, 0.8}, linear[3] = {0.3, -0.2, 0.1}, angular[3] = {0.2, 1, -0.4};
  const double quaternion[4] = {0.5, 0.5, -0.5, 0.5};
  robot.place_moving(position, quaternion, joints.data(), linear, angular, rates.data());
  std::vector<BodyState> now;
  for (int i = 0; i < 14; ++i) now.push_back(robot.body(i));

  const double h = 1e-6;
  double moved[3], turned[4];
  mju_copy4(turned, quaternion);
  const double inverse[4] = {0.5, -0.5, 0.5, -0.5};
  double local[3];
  mju_rotVecQuat(local, angular, inverse);
  mju_quatIntegrate(turned, local, h);
  for (int i = 0; i < 3; ++i) moved[i] = position[i] + h * linear[i];
  for (size_t j = 0; j < 29; ++j) later[j] = joints[j] + h * rates[j];
  robot.place(moved, turned, later.data());
  for (int i = 0; i < 14; ++i) {
    const BodyState& before = now[static_cast<size_t>(i)];
    const BodyState after = robot.body(i);
    double back[4], turn[4], rate[3];
    mju_negQuat(back, before.quaternion);
    mju_mulQuat(turn, after.quaternion, back);
    mju_quat2Vel(rate, turn, h);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR((after.position[k] - before.position[k]) / h, before.linear_velocity[k], 1e-5);
      EXPECT_NEAR(rate[k], before.angular_velocity[k], 1e-5);
    }
  }
}

TEST(MotionRobot, KnowsTheOrdersOfOtherSimulators) {
  const MotionRobot robot = tracking_robot();
  ASSERT_EQ(robot.orders_of(14).size(), 1u);
  EXPECT_TRUE(robot.orders_of(13).empty());
  const std::vector<MotionRobot::Order> orders = robot.orders_of(30);
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[0].name, "depth first");
  EXPECT_EQ(orders[0].joints[5], 5);
  EXPECT_EQ(orders[0].bodies[0], 0);
  EXPECT_EQ(orders[0].bodies[1], -1) << "the hip pitch link is not tracked";
  EXPECT_EQ(orders[0].bodies[2], 1);
  // Isaac's: left hip pitch, right hip pitch, waist yaw, left hip roll, right hip roll, ...
  EXPECT_EQ(orders[1].name, "breadth first");
  const std::vector<int> first(orders[1].joints.begin(), orders[1].joints.begin() + 6);
  EXPECT_EQ(first, (std::vector<int>{0, 6, 12, 1, 7, 13}));
}

TEST(MotionRobot, WithoutAFreeRootThereIsNone) {
  SimSpec spec = sim_spec_of({{"task", "g1_motion_tracking"}}, resources());
  spec.model_path = resources() + "/models/cartpole.xml";
  EXPECT_THROW(MotionRobot{spec}, Failure);
}

}  // namespace
}  // namespace millrace
