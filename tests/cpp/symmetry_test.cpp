// Tests for symmetry.h (K3): involution, fixed points, names.
#include "symmetry.h"

#include <gtest/gtest.h>

#include <random>

#include "status.h"
#include "task_fixture.h"

namespace millrace {
namespace {

std::vector<float> mirrored(const MirrorMap& map, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  map.apply(x.data(), out.data());
  return out;
}

std::vector<float> random_vector(size_t size) {
  std::mt19937 generator(4);
  std::vector<float> x(size);
  for (float& v : x) v = std::uniform_real_distribution<float>(-3, 3)(generator);
  return x;
}

TEST(Symmetry, MirroringTwiceGivesBackEveryBit) {
  const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
  ASSERT_TRUE(task.symmetry.available);
  for (const MirrorMap* map :
       {&task.symmetry.observation, &task.symmetry.critic, &task.symmetry.action}) {
    const std::vector<float> x = random_vector(map->source.size());
    EXPECT_NE(mirrored(*map, x), x);
    EXPECT_EQ(mirrored(*map, mirrored(*map, x)), x);
  }
  EXPECT_EQ(task.symmetry.observation.source.size(), 98u);
  EXPECT_EQ(task.symmetry.critic.source.size(), 101u);
  EXPECT_EQ(task.symmetry.action.source.size(), 29u);
}

TEST(Symmetry, StandingStraightIsItsOwnMirrorUpToThePhases) {
  const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
  std::vector<float> standing(98, 0.0f);
  standing[5] = -1.0f;  // gravity
  standing[93] = 0.7f;  // forward command
  standing[96] = 1.0f;
  standing[97] = 1.0f + 3.14159265f;
  std::vector<float> image = mirrored(task.symmetry.observation, standing);
  EXPECT_EQ(image[96], standing[97]);
  EXPECT_EQ(image[97], standing[96]);
  std::swap(image[96], image[97]);
  EXPECT_EQ(image, standing);
}

TEST(Symmetry, EveryPartHasItsRule) {
  const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
  const MirrorMap& map = task.symmetry.critic;
  const auto expect = [&](int i, int source, float sign) {
    EXPECT_EQ(map.source[static_cast<size_t>(i)], source) << i;
    EXPECT_EQ(map.sign[static_cast<size_t>(i)], sign) << i;
  };
  expect(0, 0, -1), expect(1, 1, 1), expect(2, 2, -1);        // gyro
  expect(3, 3, 1), expect(4, 4, -1), expect(5, 5, 1);         // gravity
  expect(6, 12, 1), expect(7, 13, -1), expect(8, 14, -1);     // hip pitch, roll, yaw
  expect(9, 15, 1), expect(10, 16, 1), expect(11, 17, -1);    // knee, ankle pitch, roll
  expect(18, 18, -1), expect(19, 19, -1), expect(20, 20, 1);  // waist yaw, roll, pitch
  expect(24, 31, 1);                                          // elbow
  expect(64, 70, 1);                                          // last action
  expect(93, 93, 1), expect(94, 94, -1), expect(95, 95, -1);  // command
  expect(96, 97, 1);                                          // gait phase
  expect(98, 98, 1), expect(99, 99, -1), expect(100, 100, 1);
}

TEST(Symmetry, AJointWithoutPartnerIsNamed) {
  try {
    mirror_joints({"left_knee_joint", "waist_yaw_joint"});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(),
                 "model: joint left_knee_joint has no partner right_knee_joint to mirror it");
  }
}

TEST(Symmetry, CartpoleHasNone) {
  EXPECT_FALSE(make_task({{"task", "cartpole_swingup"}}, cartpole_model()).symmetry.available);
}

}  // namespace
}  // namespace millrace
