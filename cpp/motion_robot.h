// MotionRobot: the kinematics that a motion is fitted to: from root and joints to the positions and
// velocities of the tracked bodies, by MuJoCo's forward kinematics. Owns a model and a data of its
// own; one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "model_loader.h"
#include "sim_backend.h"

namespace millrace {

// Root and joints over time, at a constant rate. Quaternions are w, x, y, z; world axes.
struct PoseTrack {
  double frames_per_second = 0;
  int frames = 0;
  std::vector<double> root_position;    // frames x 3
  std::vector<double> root_quaternion;  // frames x 4
  std::vector<double> joint_position;   // frames x joints
};

// One moment, from the last call of place().
struct BodyState {
  double position[3], quaternion[4], linear_velocity[3], angular_velocity[3];  // world axes
};

class MotionRobot {
 public:
  // Throws Failure(kInvalid) for a model that lacks what the spec names or has no free root.
  explicit MotionRobot(const SimSpec& spec);

  const SimModel& model() const { return description_; }
  int joints() const { return static_cast<int>(index_.joints.size()); }
  int bodies() const { return static_cast<int>(index_.bodies.size()); }
  const std::string& path() const { return path_; }

  // Root position and quaternion, joint positions.
  void place(const double* root_position, const double* root_quaternion, const double* joints);
  // Also velocities: linear and angular of the root in world axes, of the joints.
  void place_moving(const double* root_position, const double* root_quaternion,
                    const double* joints, const double* root_linear, const double* root_angular,
                    const double* joint_velocity);
  BodyState body(int tracked) const {
    return state_of(index_.bodies[static_cast<size_t>(tracked)]);
  }
  // Middle of the feet's sites, and the lowest of them.
  void feet(double* middle, double* lowest) const;

  // Orders that recordings of other simulators use: entry i is the robot's joint, or the tracked
  // body (-1: not tracked), that stands at place i. Depth first is MuJoCo's, breadth first Isaac's.
  struct Order {
    std::string name;
    std::vector<int> joints;
    std::vector<int> bodies;
  };
  std::vector<Order> orders_of(int bodies) const;

 private:
  BodyState state_of(int body) const;
  std::vector<int> breadth_first() const;

  std::string path_;
  ModelPtr model_;
  ModelIndex index_;
  SimModel description_;
  DataPtr data_;
};

}  // namespace millrace
