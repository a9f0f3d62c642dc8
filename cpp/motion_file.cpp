#include "motion_file.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "npz.h"
#include "status.h"

namespace millrace {

namespace {

constexpr double kCsvFramesPerSecond = 30;
constexpr int kRootColumns = 7;
constexpr int64_t kFramesMax = 1000000;
constexpr double kUnitTolerance = 0.01;

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Failure(Code::kInvalid, "motion file '" + path + "': " + problem);
}

std::string shown(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + ")";
}

// A clip holds floats.
bool is_finite_float(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

// Takes one array out of the archive after checking its shape and that its numbers are finite.
std::vector<double> take(const std::string& path, NpyArrays& arrays, const std::string& name,
                         const std::vector<int64_t>& shape) {
  const auto found = arrays.find(name);
  if (found == arrays.end()) refuse(path, "array " + name + " is missing");
  NpyArray& array = found->second;
  if (array.shape != shape) {
    refuse(path,
           "array " + name + " has shape " + shown(array.shape) + ", expected " + shown(shape));
  }
  const size_t per_frame = array.values.size() / static_cast<size_t>(shape[0]);
  for (size_t i = 0; i < array.values.size(); ++i) {
    if (is_finite_float(array.values[i])) continue;
    refuse(path,
           "array " + name + " is not finite as float32 in frame " + std::to_string(i / per_frame));
  }
  return std::move(array.values);
}

void normalise_quaternions(const MotionFile& motion, std::vector<double>& quaternions) {
  for (size_t i = 0; i < quaternions.size(); i += 4) {
    double square = 0;
    for (size_t k = i; k < i + 4; ++k) square += quaternions[k] * quaternions[k];
    const double length = std::sqrt(square);
    if (!(std::abs(length - 1) <= kUnitTolerance)) {
      const size_t frame = i / (4 * static_cast<size_t>(motion.bodies));
      refuse(motion.path, "a quaternion in frame " + std::to_string(frame) + " has length " +
                              std::to_string(length) + " instead of 1");
    }
    for (size_t k = i; k < i + 4; ++k) quaternions[k] /= length;
  }
}

void check_frames(const std::string& path, int64_t frames) {
  if (frames >= 2 && frames <= kFramesMax) return;
  refuse(path, std::to_string(frames) + " frames; at least 2 and at most " +
                   std::to_string(kFramesMax) + " are needed");
}

MotionFile read_npz_motion(const std::string& path) {
  NpyArrays arrays = read_npz(path, {"fps", "joint_pos", "joint_vel", "body_pos_w", "body_quat_w",
                                     "body_lin_vel_w", "body_ang_vel_w"});
  MotionFile motion;
  motion.path = path;
  for (const char* name : {"fps", "joint_pos", "body_pos_w"}) {
    if (!arrays.count(name)) refuse(path, std::string("array ") + name + " is missing");
  }
  const NpyArray& fps = arrays["fps"];
  if (fps.values.size() != 1) refuse(path, "array fps has shape " + shown(fps.shape));
  motion.frames_per_second = fps.values[0];
  if (!(motion.frames_per_second >= 1 && motion.frames_per_second <= 1000)) {
    refuse(path, "fps is " + std::to_string(motion.frames_per_second) +
                     ", expected a number from 1 to 1000");
  }
  const std::vector<int64_t> joints = arrays["joint_pos"].shape;
  const std::vector<int64_t> bodies = arrays["body_pos_w"].shape;
  if (joints.size() != 2 || joints[1] < 1) {
    refuse(path, "array joint_pos has shape " + shown(joints) + ", expected (frames, joints)");
  }
  if (bodies.size() != 3 || bodies[1] < 1) {
    refuse(path, "array body_pos_w has shape " + shown(bodies) + ", expected (frames, bodies, 3)");
  }
  check_frames(path, joints[0]);
  const int64_t frames = joints[0], count = bodies[1];
  motion.frames = static_cast<int>(frames);
  motion.joints = static_cast<int>(joints[1]);
  motion.bodies = static_cast<int>(count);
  motion.has_velocities = true;
  motion.joint_position = take(path, arrays, "joint_pos", joints);
  motion.joint_velocity = take(path, arrays, "joint_vel", joints);
  motion.body_position = take(path, arrays, "body_pos_w", {frames, count, 3});
  motion.body_quaternion = take(path, arrays, "body_quat_w", {frames, count, 4});
  motion.body_linear_velocity = take(path, arrays, "body_lin_vel_w", {frames, count, 3});
  motion.body_angular_velocity = take(path, arrays, "body_ang_vel_w", {frames, count, 3});
  normalise_quaternions(motion, motion.body_quaternion);
  return motion;
}

// The numbers of a line; empty if it has anything else. No part of it depends on the locale.
std::vector<double> numbers_of(const std::string& line) {
  std::vector<double> numbers;
  const char* at = line.data();
  const char* const end = at + line.size();
  const auto skip_spaces = [&] {
    while (at != end && (*at == ' ' || *at == '\t' || *at == '\r')) ++at;
  };
  for (;;) {
    skip_spaces();
    double number;
    const std::from_chars_result read = std::from_chars(at, end, number);
    if (read.ec == std::errc::invalid_argument) return {};
    numbers.push_back(read.ec == std::errc() ? number : HUGE_VAL);
    at = read.ptr;
    skip_spaces();
    if (at == end) return numbers;
    if (*at++ != ',') return {};
  }
}

void add_csv_frame(MotionFile& motion, const std::vector<double>& row) {
  motion.body_position.insert(motion.body_position.end(), row.begin(), row.begin() + 3);
  motion.body_quaternion.push_back(row[6]);  // x y z w in the file
  motion.body_quaternion.insert(motion.body_quaternion.end(), row.begin() + 3, row.begin() + 6);
  motion.joint_position.insert(motion.joint_position.end(), row.begin() + kRootColumns, row.end());
  ++motion.frames;
}

MotionFile read_csv_motion(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) refuse(path, "is not there or cannot be read");
  MotionFile motion;
  motion.path = path;
  motion.frames_per_second = kCsvFramesPerSecond;
  motion.bodies = 1;
  size_t columns = 0;
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::vector<double> row = numbers_of(line);
    const std::string where = "line " + std::to_string(number);
    if (row.empty() && number == 1) continue;  // a header
    if (row.empty()) refuse(path, where + " is not a list of numbers with commas between them");
    if (columns == 0) columns = row.size();
    if (row.size() != columns || columns <= kRootColumns) {
      refuse(path, where + " has " + std::to_string(row.size()) + " columns, expected " +
                       (columns > kRootColumns ? std::to_string(columns)
                                               : std::string("7 of the root and one a joint")));
    }
    for (const double value : row) {
      if (!is_finite_float(value)) {
        refuse(path, where + " holds a number that is not finite as float32");
      }
    }
    if (motion.frames == kFramesMax) check_frames(path, kFramesMax + 1);
    add_csv_frame(motion, row);
  }
  check_frames(path, motion.frames);
  motion.joints = static_cast<int>(columns) - kRootColumns;
  normalise_quaternions(motion, motion.body_quaternion);
  return motion;
}

}  // namespace

MotionFile read_motion_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npz") return read_npz_motion(path);
  if (extension == ".csv") return read_csv_motion(path);
  refuse(path, "expected a name that ends in .npz or .csv");
}

}  // namespace millrace
