// Tests for motion_generator.h: a loop within the joints' limits, with both feet on the ground.
#include "motion_generator.h"

#include <algorithm>
#include <cmath>

#include "motion_fixture.h"

namespace millrace {
namespace {

TEST(MotionGenerator, IsALoopWithinTheLimits) {
  MotionRobot robot = tracking_robot();
  const PoseTrack track = generate_motion(robot, 50);
  ASSERT_EQ(track.frames, 500);
  const SimModel& model = robot.model();
  double widest = 0;
  for (int frame = 0; frame < 500; ++frame) {
    const int next = (frame + 1) % 500;
    for (int j = 0; j < 29; ++j) {
      const auto joint = static_cast<size_t>(j);
      const double q = track.joint_position[static_cast<size_t>(29 * frame + j)];
      EXPECT_GT(q, model.joint_lower[joint]) << model.joint_names[joint];
      EXPECT_LT(q, model.joint_upper[joint]) << model.joint_names[joint];
      const double step = track.joint_position[static_cast<size_t>(29 * next + j)] - q;
      EXPECT_LT(std::abs(step) * 50, 2.0) << "rad/s, " << model.joint_names[joint];
      widest = std::max(widest, std::abs(q - model.default_joint_position[joint]));
    }
  }
  EXPECT_GT(widest, 0.5) << "it moves";
}

TEST(MotionGenerator, BothFeetStayOnTheGround) {
  MotionRobot robot = tracking_robot();
  const PoseTrack track = generate_motion(robot, 50);
  double lowest_root = 1, highest_root = 0, rightmost = 0;
  for (int frame = 0; frame < 500; ++frame) {
    const double* root = &track.root_position[static_cast<size_t>(3 * frame)];
    robot.place(root, &track.root_quaternion[static_cast<size_t>(4 * frame)],
                &track.joint_position[static_cast<size_t>(29 * frame)]);
    lowest_root = std::min(lowest_root, root[2]);
    highest_root = std::max(highest_root, root[2]);
    rightmost = std::min(rightmost, root[1]);
    // Ankle roll links, 3 and 6 of the tracked bodies: as far from the ground and apart as
    // standing.
    for (const int foot : {3, 6}) {
      const BodyState ankle = robot.body(foot);
      EXPECT_NEAR(ankle.position[2], 0.037, 0.006) << frame;
      EXPECT_NEAR(ankle.position[1], foot == 3 ? 0.118 : -0.118, 0.01) << frame;
      EXPECT_LT(1 - ankle.quaternion[0] * ankle.quaternion[0], 0.001) << "soles level, " << frame;
    }
  }
  EXPECT_LT(lowest_root, highest_root - 0.05) << "it squats";
  EXPECT_LT(rightmost, -0.03) << "it shifts its weight";
}

}  // namespace
}  // namespace millrace
