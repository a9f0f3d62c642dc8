// Tests for motion_clip.h: fitting to robot and rate, files with all bodies, several recordings.
#include "motion_clip.h"

#include <cmath>
#include <filesystem>

#include "motion_fixture.h"
#include "motion_generator.h"
#include "resources.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

using Floats = std::vector<float>;

double largest_difference(const Floats& a, const Floats& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  }
  return largest;
}

// q and -q turn alike.
double largest_turn(const Floats& a, const Floats& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i += 4) {
    double cosine = 0;
    for (size_t k = i; k < i + 4; ++k) cosine += double(a[k]) * double(b[k]);
    largest = std::max(largest, 2 * std::acos(std::min(std::abs(cosine), 1.0)));
  }
  return largest;
}

std::string csv_of(const PoseTrack& track) {
  std::string text;
  char number[40];
  const auto put = [&](double value, const char* end) {
    std::snprintf(number, sizeof number, "%.9g%s", value, end);
    text += number;
  };
  for (size_t f = 0; f < static_cast<size_t>(track.frames); ++f) {
    for (size_t i = 0; i < 3; ++i) put(track.root_position[3 * f + i], ",");
    for (const size_t i : {1u, 2u, 3u, 0u}) put(track.root_quaternion[4 * f + i], ",");
    for (size_t j = 0; j < 29; ++j) put(track.joint_position[29 * f + j], j < 28 ? "," : "\n");
  }
  return text;
}

TEST(MotionClip, TheBuiltInOneIsConsistent) {
  MotionRobot robot = tracking_robot();
  const MotionClip clip = load_motion("", robot, 50);
  EXPECT_EQ(clip.describe(), (nlohmann::json{{"source", "built-in"},
                                             {"clips", 1},
                                             {"frames", 500},
                                             {"frames_per_second", 50.0},
                                             {"seconds", 10.0},
                                             {"joints", 29},
                                             {"bodies", 14}}));
  // Velocities are the slopes of positions, to the order of a tick's square.
  double worst = 0;
  for (size_t f = 1; f + 1 < 500; ++f) {
    for (size_t i = 0; i < 42; ++i) {
      const double slope = (double(clip.body_position[(f + 1) * 42 + i]) -
                            double(clip.body_position[(f - 1) * 42 + i])) *
                           25;
      worst = std::max(worst, std::abs(slope - double(clip.body_linear_velocity[f * 42 + i])));
    }
  }
  EXPECT_LT(worst, 0.01);
  EXPECT_EQ(load_motion("", robot, 50).digest(), clip.digest());
  MotionClip other = clip;
  other.joint_velocity[77] += 1e-6f;
  EXPECT_NE(other.digest(), clip.digest());
}

TEST(MotionClip, ACsvAtThirtyFramesIsResampled) {
  MotionRobot robot = tracking_robot();
  const MotionPath file(".csv");
  file.write(csv_of(generate_motion(robot, 30)));
  const MotionClip clip = load_motion(file.path, robot, 50);
  const MotionClip built_in = load_motion("", robot, 50);
  // 300 frames at 30 a second last 299 / 30 s: 499 frames at 50.
  ASSERT_EQ(clip.frames, 499);
  Floats expected(built_in.joint_position.begin(), built_in.joint_position.begin() + 499 * 29);
  EXPECT_LT(largest_difference(clip.joint_position, expected), 0.005);
  expected.assign(built_in.body_position.begin(), built_in.body_position.begin() + 499 * 42);
  EXPECT_LT(largest_difference(clip.body_position, expected), 0.005);
}

// q and -q are one orientation: from frame to frame the shorter way is taken.
TEST(MotionClip, AQuaternionMayChangeItsSign) {
  MotionRobot robot = tracking_robot();
  const MotionPath file(".csv");
  std::string joints;
  for (int j = 0; j < 29; ++j) joints += ",0";
  const double yaw = 0.6;
  const std::string turned =
      std::to_string(-std::sin(yaw / 2)) + "," + std::to_string(-std::cos(yaw / 2)) + joints + "\n";
  file.write("0,0,0.8,0,0,0,1" + joints + "\n0,0,0.8,0,0," + turned);
  const MotionClip clip = load_motion(file.path, robot, 50);
  ASSERT_EQ(clip.frames, 2);
  const float* q = &clip.body_quaternion[14 * 4];  // 0.6 of the way
  EXPECT_NEAR(2 * std::atan2(q[3], q[0]), 0.6 * yaw, 1e-5);
  EXPECT_NEAR(clip.body_angular_velocity[2], 0.6 * yaw * 50, 1e-3);
}

TEST(MotionClip, ASpeedThatNoFloatHoldsIsRefused) {
  MotionRobot robot = tracking_robot();
  const MotionPath file(".csv");
  std::string joints;
  for (int j = 0; j < 29; ++j) joints += ",0";
  const std::string still = "0,0,0.8,0,0,0,1" + joints + "\n";
  file.write(still + still + still + "3e38,0,0.8,0,0,0,1" + joints + "\n");
  EXPECT_EQ(problem_of([&] { load_motion(file.path, robot, 50); }),
            "body_lin_vel_w is not finite as float32 0.060000 s after the start");
}

TEST(MotionClip, WrittenAndReadItIsTheSame) {
  MotionRobot robot = tracking_robot();
  const MotionClip clip = load_motion("", robot, 50);
  const MotionPath file(".npz");
  write_motion(file.path, clip);
  const MotionClip read = load_motion(file.path, robot, 50);
  EXPECT_EQ(read.joint_position, clip.joint_position);
  EXPECT_EQ(read.joint_velocity, clip.joint_velocity);
  EXPECT_EQ(read.body_position, clip.body_position);
  EXPECT_EQ(read.body_linear_velocity, clip.body_linear_velocity);
  EXPECT_EQ(read.body_angular_velocity, clip.body_angular_velocity);
  EXPECT_LT(largest_difference(read.body_quaternion, clip.body_quaternion), 1e-6);
  const MotionClip half = load_motion(file.path, robot, 25);
  EXPECT_EQ(half.frames, 250);
  EXPECT_EQ(half.joint_position[29], clip.joint_position[2 * 29]);
}

// The built-in motion as a simulator with all 30 bodies would have recorded it.
NpyArrays all_bodies(MotionRobot& robot, const MotionRobot::Order& order) {
  SimSpec spec = sim_spec_of({{"task", "g1_motion_tracking"}}, resources());
  const ModelPtr model = load_model(spec.model_path);
  spec.body_names.clear();
  for (int body = 1; body < model->nbody; ++body) {
    spec.body_names.push_back(mj_id2name(model.get(), mjOBJ_BODY, body));
  }
  MotionRobot whole(spec);
  const MotionClip clip = load_motion("", whole, 50);
  // Bodies that are tracked are known by the order; the others go where no one looks.
  const MotionClip tracked = load_motion("", robot, 50);
  const auto spread = [&](const Floats& values, size_t dim, double other) {
    NpyArray array = {{500, 30, int64_t(dim)}, std::vector<double>(500 * 30 * dim, other)};
    for (size_t f = 0; f < 500; ++f) {
      for (size_t i = 0; i < 30; ++i) {
        if (order.bodies[i] < 0) continue;
        for (size_t k = 0; k < dim; ++k) {
          array.values[(f * 30 + i) * dim + k] =
              double(values[(f * 14 + size_t(order.bodies[i])) * dim + k]);
        }
      }
    }
    return array;
  };
  const auto shuffled = [&](const Floats& values) {
    NpyArray array = {{500, 29}, std::vector<double>(500 * 29)};
    for (size_t f = 0; f < 500; ++f) {
      for (size_t j = 0; j < 29; ++j) {
        array.values[f * 29 + j] = double(values[f * 29 + size_t(order.joints[j])]);
      }
    }
    return array;
  };
  EXPECT_EQ(clip.bodies, 30);
  return {{"fps", {{}, {50}}},
          {"joint_pos", shuffled(tracked.joint_position)},
          {"joint_vel", shuffled(tracked.joint_velocity)},
          {"body_pos_w", spread(tracked.body_position, 3, 0)},
          {"body_quat_w", spread(tracked.body_quaternion, 4, 0.5)},
          {"body_lin_vel_w", spread(tracked.body_linear_velocity, 3, 0)},
          {"body_ang_vel_w", spread(tracked.body_angular_velocity, 3, 0)}};
}

TEST(MotionClip, TheOrderOfAFileIsFound) {
  MotionRobot robot = tracking_robot();
  const MotionClip expected = load_motion("", robot, 50);
  const MotionPath file(".npz");
  for (const MotionRobot::Order& order : robot.orders_of(30)) {
    write_npz(file.path, all_bodies(robot, order));
    const MotionClip clip = load_motion(file.path, robot, 50);
    EXPECT_EQ(clip.joint_position, expected.joint_position) << order.name;
    EXPECT_EQ(clip.joint_velocity, expected.joint_velocity) << order.name;
    EXPECT_EQ(clip.body_position, expected.body_position) << order.name;
    EXPECT_LT(largest_turn(clip.body_quaternion, expected.body_quaternion), 1e-3) << order.name;
  }
}

TEST(MotionClip, WhatDoesNotFitTheRobotIsRefused) {
  MotionRobot robot = tracking_robot();
  const MotionPath file(".npz");
  const MotionClip clip = load_motion("", robot, 50);
  const auto problem = [&] { return problem_of([&] { load_motion(file.path, robot, 50); }); };
  MotionClip wrong = clip;
  for (size_t i = 0; i < wrong.body_position.size(); i += 42) wrong.body_position[i + 9] += 0.2f;
  write_motion(file.path, wrong);
  EXPECT_EQ(problem().substr(0, 89),
            "its joints and bodies fit the robot in no known order; the nearest is tracked bodies, "
            "0.2");
  NpyArrays arrays = read_npz(file.path, {"fps", "joint_pos", "joint_vel", "body_pos_w",
                                          "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"});
  for (const char* name : {"joint_pos", "joint_vel"}) {
    arrays[name].shape = {500, 28};
    arrays[name].values.resize(500 * 28);
  }
  write_npz(file.path, arrays);
  EXPECT_EQ(problem(), "it has 28 joints, the robot has 29");
  const MotionPath csv(".csv");
  csv.write("0,0,1,0,0,0,1,0\n0,0,1,0,0,0,1,0\n");
  EXPECT_EQ(problem_of([&] { load_motion(csv.path, robot, 50); }),
            "it has 1 joints, the robot has 29");
}

TEST(MotionClip, AFolderIsItsFilesInOrder) {
  namespace fs = std::filesystem;
  MotionRobot robot = tracking_robot();
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  EXPECT_EQ(problem_of([&] { load_motion(folder.string(), robot, 50); }),
            "motion folder '" + folder.string() + "' holds no .npz and no .csv file");
  const MotionClip clip = load_motion("", robot, 50);
  write_motion((folder / "b.npz").string(), clip);
  write_motion((folder / "a.npz").string(), load_motion("", robot, 20));
  const MotionClip both = load_motion(folder.string(), robot, 50);
  // 200 frames at 20 a second are 498 at 50.
  ASSERT_EQ(both.frames, 998);
  EXPECT_EQ(both.describe().at("clips"), 2);
  EXPECT_EQ(both.clip_end[0], 498);
  EXPECT_EQ(both.clip_end[497], 498);
  EXPECT_EQ(both.clip_end[498], 998);
  EXPECT_EQ(both.body_position[498 * 42 + 5], clip.body_position[5]);
  const MotionView view = both.view();
  EXPECT_EQ(motion_body(view, view.body_position, 498, 1, 3)[2], clip.body_position[5]);
}

}  // namespace
}  // namespace millrace
