// Tests for motion_file.h: both formats, and one clear line for every way to be wrong.
#include "motion_file.h"

#include <cmath>
#include <limits>

#include "motion_fixture.h"

namespace millrace {
namespace {

NpyArray filled(std::vector<int64_t> shape, double value) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  return {std::move(shape), std::vector<double>(count, value)};
}

// Two joints, one body, three frames.
NpyArrays small_motion() {
  return {{"fps", {{}, {50}}},
          {"joint_pos", filled({3, 2}, 0.1)},
          {"joint_vel", filled({3, 2}, 0.2)},
          {"body_pos_w", filled({3, 1, 3}, 0.3)},
          {"body_quat_w", filled({3, 1, 4}, 0.5)},
          {"body_lin_vel_w", filled({3, 1, 3}, 0.4)},
          {"body_ang_vel_w", filled({3, 1, 3}, 0.5)}};
}

std::string npz_problem(const NpyArrays& arrays) {
  const MotionPath file(".npz");
  write_npz(file.path, arrays);
  return problem_of([&] { read_motion_file(file.path); });
}

std::string csv_problem(const std::string& text) {
  const MotionPath file(".csv");
  file.write(text);
  return problem_of([&] { read_motion_file(file.path); });
}

TEST(MotionFile, ReadsNpz) {
  const MotionPath file(".npz");
  NpyArrays arrays = small_motion();
  arrays["fps"] = {{1}, {30}};
  write_npz(file.path, arrays);
  const MotionFile motion = read_motion_file(file.path);
  EXPECT_EQ(motion.frames_per_second, 30);
  EXPECT_EQ(motion.frames, 3);
  EXPECT_EQ(motion.joints, 2);
  EXPECT_EQ(motion.bodies, 1);
  EXPECT_TRUE(motion.has_velocities);
  EXPECT_NEAR(motion.joint_position[5], 0.1, 1e-7);
  EXPECT_NEAR(motion.body_angular_velocity[8], 0.5, 1e-7);
}

TEST(MotionFile, SaysWhatIsWrongWithAnNpz) {
  for (const auto& item : small_motion()) {
    NpyArrays arrays = small_motion();
    arrays.erase(item.first);
    EXPECT_EQ(npz_problem(arrays), "array " + item.first + " is missing");
  }
  NpyArrays arrays = small_motion();
  arrays["joint_vel"] = filled({2, 3}, 0);
  EXPECT_EQ(npz_problem(arrays), "array joint_vel has shape (2, 3), expected (3, 2)");
  arrays = small_motion();
  arrays["body_pos_w"] = filled({3, 3}, 0);
  EXPECT_EQ(npz_problem(arrays), "array body_pos_w has shape (3, 3), expected (frames, bodies, 3)");
  arrays = small_motion();
  arrays["body_lin_vel_w"].values[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(npz_problem(arrays), "array body_lin_vel_w is not finite as float32 in frame 2");
  arrays = small_motion();
  arrays["body_quat_w"].values[4] = 3;
  EXPECT_EQ(npz_problem(arrays), "a quaternion in frame 1 has length 3.122499 instead of 1");
  for (const double fps : {0.0, -50.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    arrays = small_motion();
    arrays["fps"].values[0] = fps;
    EXPECT_EQ(npz_problem(arrays).substr(0, 7), "fps is ") << fps;
  }
  arrays = small_motion();
  arrays["fps"] = filled({2}, 50);
  EXPECT_EQ(npz_problem(arrays), "array fps has shape (2)");
  arrays = small_motion();
  arrays["joint_pos"] = filled({1, 2}, 0);
  EXPECT_EQ(npz_problem(arrays), "1 frames; at least 2 and at most 1000000 are needed");
  arrays["joint_pos"] = filled({0, 2}, 0);
  EXPECT_EQ(npz_problem(arrays), "0 frames; at least 2 and at most 1000000 are needed");
}

TEST(MotionFile, ReadsCsv) {
  const MotionPath file(".csv");
  file.write("x,y,z,qx,qy,qz,qw,knee\r\n1, 2,3,0,0,0,1,0.5\r\n\n1.5,2,3,0.6,0,0,0.8,-5e-1\n");
  const MotionFile motion = read_motion_file(file.path);
  EXPECT_EQ(motion.frames_per_second, 30);
  EXPECT_EQ(motion.frames, 2);
  EXPECT_EQ(motion.joints, 1);
  EXPECT_EQ(motion.bodies, 1);
  EXPECT_FALSE(motion.has_velocities);
  EXPECT_EQ(motion.body_position, (std::vector<double>{1, 2, 3, 1.5, 2, 3}));
  EXPECT_EQ(motion.body_quaternion, (std::vector<double>{1, 0, 0, 0, 0.8, 0.6, 0, 0}));
  EXPECT_EQ(motion.joint_position, (std::vector<double>{0.5, -0.5}));
}

TEST(MotionFile, SaysWhatIsWrongWithACsv) {
  const std::string good = "0,0,1,0,0,0,1,0.5\n";
  EXPECT_EQ(csv_problem(good + "0,0,1,0,0,0,1\n"), "line 2 has 7 columns, expected 8");
  EXPECT_EQ(csv_problem("0,0,1,0,0,0,1\n"),
            "line 1 has 7 columns, expected 7 of the root and one a joint");
  EXPECT_EQ(csv_problem(good + "0,0,1,0,zero,0,1,0.5\n"),
            "line 2 is not a list of numbers with commas between them");
  EXPECT_EQ(csv_problem(good + "0,0,1,0,0,0,1,0.5;\n"),
            "line 2 is not a list of numbers with commas between them");
  EXPECT_EQ(csv_problem(good + "0,0,1,0,0,0,1,nan\n"),
            "line 2 holds a number that is not finite as float32");
  EXPECT_EQ(csv_problem(good + "0,0,1e300,0,0,0,1,0.5\n"),
            "line 2 holds a number that is not finite as float32");
  EXPECT_EQ(csv_problem(good + "0,0,1,0,0,0,1,1e999\n"),
            "line 2 holds a number that is not finite as float32");
  EXPECT_EQ(csv_problem(good + "0,0,1,0,0,0,0,0.5\n"),
            "a quaternion in frame 1 has length 0.000000 instead of 1");
  EXPECT_EQ(csv_problem(good), "1 frames; at least 2 and at most 1000000 are needed");
  EXPECT_EQ(csv_problem(""), "0 frames; at least 2 and at most 1000000 are needed");
}

TEST(MotionFile, OtherFilesAreRefused) {
  EXPECT_EQ(problem_of([] { read_motion_file("/nowhere/dance.csv"); }),
            "is not there or cannot be read");
  EXPECT_EQ(problem_of([] { read_motion_file("dance.pkl"); }),
            "expected a name that ends in .npz or .csv");
}

}  // namespace
}  // namespace millrace
