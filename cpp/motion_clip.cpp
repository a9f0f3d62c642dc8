#include "motion_clip.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "motion_generator.h"
#include "npz.h"
#include "status.h"

namespace millrace {

namespace {

using Values = std::vector<double>;

constexpr double kFitMetres = 0.05;  // farther off, bodies are other bodies
constexpr int kFitFrames = 9;        // looked at to find out

[[noreturn]] void refuse(const MotionFile& file, const std::string& problem) {
  throw Failure(Code::kInvalid, "motion file '" + file.path + "': " + problem);
}

const double* row_of(const Values& values, int frame, size_t width) {
  return values.data() + static_cast<size_t>(frame) * width;
}

// ---- resampling ----

// Where the frames of a new rate lie between those of an old one.
struct Resampling {
  int frames;
  double step;  // old frames per new frame

  Resampling(int old_frames, double old_rate, double new_rate)
      : frames(static_cast<int>(std::floor((old_frames - 1) * new_rate / old_rate + 1e-9)) + 1),
        step(old_rate / new_rate) {}
  int frame(int i, int old_frames) const {
    return std::min(static_cast<int>(i * step), old_frames - 2);
  }
  double share(int i, int old_frames) const {
    return std::min(i * step - frame(i, old_frames), 1.0);
  }
};

Values resample(const Values& values, int old_frames, const Resampling& rate) {
  if (values.empty()) return {};
  const size_t width = values.size() / static_cast<size_t>(old_frames);
  Values result;
  for (int i = 0; i < rate.frames; ++i) {
    const double* a = row_of(values, rate.frame(i, old_frames), width);
    const double share = rate.share(i, old_frames);
    for (size_t k = 0; k < width; ++k) result.push_back(a[k] + share * (a[width + k] - a[k]));
  }
  return result;
}

void interpolate_quaternion(const double* a, const double* b, double share, double* out) {
  double cosine = 0;
  for (int k = 0; k < 4; ++k) cosine += a[k] * b[k];
  const double sign = cosine < 0 ? -1 : 1;
  const double angle = std::acos(std::min(std::abs(cosine), 1.0));
  const bool is_small = angle < 1e-6;
  const double of_a = is_small ? 1 - share : std::sin((1 - share) * angle) / std::sin(angle);
  const double of_b = sign * (is_small ? share : std::sin(share * angle) / std::sin(angle));
  double square = 0;
  for (int k = 0; k < 4; ++k) {
    out[k] = of_a * a[k] + of_b * b[k];
    square += out[k] * out[k];
  }
  for (int k = 0; k < 4; ++k) out[k] /= std::sqrt(square);
}

Values resample_quaternions(const Values& values, int old_frames, const Resampling& rate) {
  const size_t width = values.size() / static_cast<size_t>(old_frames);
  Values result(static_cast<size_t>(rate.frames) * width);
  for (int i = 0; i < rate.frames; ++i) {
    const double* a = row_of(values, rate.frame(i, old_frames), width);
    for (size_t k = 0; k < width; k += 4) {
      interpolate_quaternion(a + k, a + width + k, rate.share(i, old_frames),
                             &result[static_cast<size_t>(i) * width + k]);
    }
  }
  return result;
}

MotionFile at_rate(const MotionFile& file, double frames_per_second) {
  if (file.frames_per_second == frames_per_second) return file;
  const Resampling rate(file.frames, file.frames_per_second, frames_per_second);
  if (rate.frames < 2) refuse(file, "it is shorter than two ticks");
  MotionFile result = file;
  result.frames_per_second = frames_per_second;
  result.frames = rate.frames;
  result.joint_position = resample(file.joint_position, file.frames, rate);
  result.joint_velocity = resample(file.joint_velocity, file.frames, rate);
  result.body_position = resample(file.body_position, file.frames, rate);
  result.body_linear_velocity = resample(file.body_linear_velocity, file.frames, rate);
  result.body_angular_velocity = resample(file.body_angular_velocity, file.frames, rate);
  result.body_quaternion = resample_quaternions(file.body_quaternion, file.frames, rate);
  return result;
}

// ---- from a file with all bodies ----

// How far the file's tracked bodies are from where the robot's would be, at most.
double misfit(const MotionFile& file, MotionRobot& robot, const MotionRobot::Order& order) {
  const auto width = static_cast<size_t>(file.bodies);
  Values joints(static_cast<size_t>(file.joints));
  double worst = 0;
  for (int k = 0; k < kFitFrames; ++k) {
    const int frame = (file.frames - 1) * k / (kFitFrames - 1);
    const double* wanted = row_of(file.joint_position, frame, joints.size());
    for (size_t j = 0; j < joints.size(); ++j) {
      joints[static_cast<size_t>(order.joints[j])] = wanted[j];
    }
    robot.place(row_of(file.body_position, frame, 3 * width),
                row_of(file.body_quaternion, frame, 4 * width), joints.data());
    for (size_t i = 0; i < width; ++i) {
      if (order.bodies[i] < 0) continue;
      const BodyState body = robot.body(order.bodies[i]);
      const double* position = row_of(file.body_position, frame, 3 * width) + 3 * i;
      worst =
          std::max(worst, std::hypot(position[0] - body.position[0], position[1] - body.position[1],
                                     position[2] - body.position[2]));
    }
  }
  return worst;
}

MotionRobot::Order find_order(const MotionFile& file, MotionRobot& robot) {
  const std::vector<MotionRobot::Order> orders = robot.orders_of(file.bodies);
  if (orders.empty()) {
    refuse(file, "it has " + std::to_string(file.bodies) + " bodies; the task tracks " +
                     std::to_string(robot.bodies()) + ", and the robot has another number, too");
  }
  double best = HUGE_VAL;
  const MotionRobot::Order* found = nullptr;
  for (const MotionRobot::Order& order : orders) {
    const double distance = misfit(file, robot, order);
    if (distance < best) {
      best = distance;
      found = &order;
    }
  }
  if (best > kFitMetres) {
    refuse(file, "its joints and bodies fit the robot in no known order; the nearest is " +
                     found->name + ", " + std::to_string(best) + " m off");
  }
  return *found;
}

// The robot's values from the file's, `dim` a joint or body; those with target -1 are left out.
std::vector<float> reordered(const Values& values, const std::vector<int>& target, size_t kept,
                             size_t dim) {
  const size_t frames = values.size() / (target.size() * dim);
  std::vector<float> result(frames * kept * dim);
  for (size_t frame = 0; frame < frames; ++frame) {
    for (size_t i = 0; i < target.size(); ++i) {
      if (target[i] < 0) continue;
      const double* from = &values[(frame * target.size() + i) * dim];
      float* to = &result[(frame * kept + static_cast<size_t>(target[i])) * dim];
      for (size_t k = 0; k < dim; ++k) to[k] = static_cast<float>(from[k]);
    }
  }
  return result;
}

MotionClip clip_from_bodies(const MotionFile& file, MotionRobot& robot) {
  const MotionRobot::Order order = find_order(file, robot);
  const auto joints = static_cast<size_t>(robot.joints());
  const auto bodies = static_cast<size_t>(robot.bodies());
  MotionClip clip;
  clip.joint_position = reordered(file.joint_position, order.joints, joints, 1);
  clip.joint_velocity = reordered(file.joint_velocity, order.joints, joints, 1);
  clip.body_position = reordered(file.body_position, order.bodies, bodies, 3);
  clip.body_quaternion = reordered(file.body_quaternion, order.bodies, bodies, 4);
  clip.body_linear_velocity = reordered(file.body_linear_velocity, order.bodies, bodies, 3);
  clip.body_angular_velocity = reordered(file.body_angular_velocity, order.bodies, bodies, 3);
  return clip;
}

// ---- from root and joints ----

// Change per second around a frame: central, one-sided at the ends.
struct Neighbours {
  int before, after;
  double seconds;

  Neighbours(int frame, const PoseTrack& track)
      : before(std::max(frame - 1, 0)),
        after(std::min(frame + 1, track.frames - 1)),
        seconds((after - before) / track.frames_per_second) {}
};

void rate_of(const Values& values, const Neighbours& at, size_t width, double* rate) {
  const double* a = row_of(values, at.before, width);
  const double* b = row_of(values, at.after, width);
  for (size_t k = 0; k < width; ++k) rate[k] = (b[k] - a[k]) / at.seconds;
}

// Angular velocity in world axes.
void turn_rate_of(const Values& quaternions, const Neighbours& at, double* rate) {
  mjtNum inverse[4], turn[4];
  mju_negQuat(inverse, row_of(quaternions, at.before, 4));
  mju_mulQuat(turn, row_of(quaternions, at.after, 4), inverse);
  mju_quat2Vel(rate, turn, at.seconds);
}

template <size_t kCount>
void append(std::vector<float>& to, const double (&values)[kCount]) {
  for (const double value : values) to.push_back(static_cast<float>(value));
}

void append_frame(MotionClip& clip, const MotionRobot& robot) {
  for (int i = 0; i < robot.bodies(); ++i) {
    const BodyState body = robot.body(i);
    append(clip.body_position, body.position);
    append(clip.body_quaternion, body.quaternion);
    append(clip.body_linear_velocity, body.linear_velocity);
    append(clip.body_angular_velocity, body.angular_velocity);
  }
}

MotionClip clip_from_poses(const PoseTrack& track, MotionRobot& robot) {
  const auto joints = static_cast<size_t>(robot.joints());
  Values joint_velocity(joints);
  MotionClip clip;
  for (int frame = 0; frame < track.frames; ++frame) {
    const Neighbours at(frame, track);
    double linear[3], angular[3];
    rate_of(track.root_position, at, 3, linear);
    turn_rate_of(track.root_quaternion, at, angular);
    rate_of(track.joint_position, at, joints, joint_velocity.data());
    const double* position = row_of(track.joint_position, frame, joints);
    robot.place_moving(row_of(track.root_position, frame, 3),
                       row_of(track.root_quaternion, frame, 4), position, linear, angular,
                       joint_velocity.data());
    append_frame(clip, robot);
    for (size_t j = 0; j < joints; ++j) {
      clip.joint_position.push_back(static_cast<float>(position[j]));
      clip.joint_velocity.push_back(static_cast<float>(joint_velocity[j]));
    }
  }
  return clip;
}

PoseTrack track_of(MotionFile&& file) {
  return {file.frames_per_second, file.frames, std::move(file.body_position),
          std::move(file.body_quaternion), std::move(file.joint_position)};
}

MotionClip finished(MotionClip clip, const MotionRobot& robot, double frames_per_second) {
  clip.frames_per_second = frames_per_second;
  clip.joints = robot.joints();
  clip.bodies = robot.bodies();
  clip.frames = static_cast<int>(clip.joint_position.size()) / clip.joints;
  clip.clip_end.assign(static_cast<size_t>(clip.frames), clip.frames);
  return clip;
}

// From positions that are floats can come rates that are none.
void check_finite(const MotionFile& file, const MotionClip& clip) {
  const auto check = [&](const char* name, const std::vector<float>& values) {
    const size_t per_frame = values.size() / static_cast<size_t>(clip.frames);
    const auto found = std::find_if_not(values.begin(), values.end(),
                                        [](float value) { return std::isfinite(value); });
    if (found == values.end()) return;
    const size_t frame = static_cast<size_t>(found - values.begin()) / per_frame;
    refuse(file, std::string(name) + " is not finite as float32 " +
                     std::to_string(static_cast<double>(frame) / clip.frames_per_second) +
                     " s after the start");
  };
  check("joint_pos", clip.joint_position);
  check("joint_vel", clip.joint_velocity);
  check("body_pos_w", clip.body_position);
  check("body_quat_w", clip.body_quaternion);
  check("body_lin_vel_w", clip.body_linear_velocity);
  check("body_ang_vel_w", clip.body_angular_velocity);
}

// ---- several recordings ----

std::vector<std::string> motion_files(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  const fs::directory_iterator entries(path, error);
  if (error) {
    throw Failure(Code::kInvalid,
                  "motion folder '" + path + "' cannot be read: " + error.message());
  }
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : entries) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".npz" || extension == ".csv") files.push_back(entry.path().string());
  }
  if (files.empty()) {
    throw Failure(Code::kInvalid, "motion folder '" + path + "' holds no .npz and no .csv file");
  }
  std::sort(files.begin(), files.end());
  return files;
}

template <typename T>
void join(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void join(MotionClip& to, const MotionClip& more) {
  join(to.joint_position, more.joint_position);
  join(to.joint_velocity, more.joint_velocity);
  join(to.body_position, more.body_position);
  join(to.body_quaternion, more.body_quaternion);
  join(to.body_linear_velocity, more.body_linear_velocity);
  join(to.body_angular_velocity, more.body_angular_velocity);
  for (const int end : more.clip_end) to.clip_end.push_back(to.frames + end);
  to.frames += more.frames;
}

}  // namespace

MotionView MotionClip::view() const {
  return {joint_position.data(),
          joint_velocity.data(),
          body_position.data(),
          body_quaternion.data(),
          body_linear_velocity.data(),
          body_angular_velocity.data(),
          clip_end.data(),
          frames,
          joints,
          bodies};
}

uint64_t MotionClip::digest() const {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto add = [&hash](const auto& values) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(values[0]); ++i) {
      hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
  };
  add(joint_position);
  add(joint_velocity);
  add(body_position);
  add(body_quaternion);
  add(body_linear_velocity);
  add(body_angular_velocity);
  add(clip_end);
  return hash;
}

nlohmann::json MotionClip::describe() const {
  int clips = 0;
  for (int frame = 0; frame < frames; frame = clip_end[static_cast<size_t>(frame)]) ++clips;
  return {{"source", source},
          {"clips", clips},
          {"frames", frames},
          {"frames_per_second", frames_per_second},
          {"seconds", frames / frames_per_second},
          {"joints", joints},
          {"bodies", bodies}};
}

MotionClip fit_motion(const MotionFile& file, MotionRobot& robot, double frames_per_second) {
  if (file.joints != robot.joints()) {
    refuse(file, "it has " + std::to_string(file.joints) + " joints, the robot has " +
                     std::to_string(robot.joints()));
  }
  MotionFile resampled = at_rate(file, frames_per_second);
  MotionClip clip =
      finished(resampled.has_velocities ? clip_from_bodies(resampled, robot)
                                        : clip_from_poses(track_of(std::move(resampled)), robot),
               robot, frames_per_second);
  check_finite(file, clip);
  clip.source = file.path;
  return clip;
}

MotionClip load_motion(const std::string& path, MotionRobot& robot, double frames_per_second) {
  if (path.empty()) {
    MotionClip clip = finished(clip_from_poses(generate_motion(robot, frames_per_second), robot),
                               robot, frames_per_second);
    clip.source = "built-in";
    return clip;
  }
  MotionClip all;
  for (const std::string& file : motion_files(path)) {
    MotionClip clip = fit_motion(read_motion_file(file), robot, frames_per_second);
    if (all.frames == 0) {
      all = std::move(clip);
    } else {
      join(all, clip);
    }
  }
  all.source = path;
  return all;
}

void write_motion(const std::string& path, const MotionClip& clip) {
  const int64_t frames = clip.frames, joints = clip.joints, bodies = clip.bodies;
  const auto array = [](std::vector<int64_t> shape, const std::vector<float>& values) {
    return NpyArray{std::move(shape), Values(values.begin(), values.end())};
  };
  write_npz(path, {{"fps", {{}, {clip.frames_per_second}}},
                   {"joint_pos", array({frames, joints}, clip.joint_position)},
                   {"joint_vel", array({frames, joints}, clip.joint_velocity)},
                   {"body_pos_w", array({frames, bodies, 3}, clip.body_position)},
                   {"body_quat_w", array({frames, bodies, 4}, clip.body_quaternion)},
                   {"body_lin_vel_w", array({frames, bodies, 3}, clip.body_linear_velocity)},
                   {"body_ang_vel_w", array({frames, bodies, 3}, clip.body_angular_velocity)}});
}

}  // namespace millrace
