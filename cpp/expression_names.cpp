#include "expression_names.h"

#include "expression_body.h"

namespace millrace {

namespace {

using Extent = ExpressionExtent;

constexpr int kLoad = kExpressionLoad;
constexpr const char* kVector = "xyz";
constexpr const char* kQuaternion = "wxyz";

constexpr int of_episode(EpisodeField field) { return kSimFieldCount + field; }

std::vector<ExpressionName> robot_names() {
  return {
      {"base_lin_vel", kLoad, kLocalLinearVelocity, 0, 1, Extent::kLegged, 3, kVector, "m/s",
       "linear velocity at the pelvis IMU, in its axes"},
      {"base_ang_vel", kLoad, kGyro, 0, 1, Extent::kLegged, 3, kVector, "rad/s",
       "angular velocity at the torso IMU, in its axes"},
      {"projected_gravity", kLoad, kProjectedGravity, 0, 1, Extent::kLegged, 3, kVector, "1",
       "gravity direction in torso axes"},
      {"root_pos", kLoad, kRootPosition, 0, 1, Extent::kLegged, 3, kVector, "m",
       "position of the root (world)"},
      {"root_quat", kLoad, kRootQuaternion, 0, 1, Extent::kLegged, 4, kQuaternion, "1",
       "orientation of the root"},
      {"root_lin_vel", kLoad, kRootLinearVelocity, 0, 1, Extent::kLegged, 3, kVector, "m/s",
       "linear velocity of the root (world)"},
      {"root_ang_vel", kLoad, kRootAngularVelocity, 0, 1, Extent::kLegged, 3, kVector, "rad/s",
       "angular velocity of the root, in its axes"},
      {"joint_pos", kExpressionLoadJointPosition, kJointPosition, 0, 1, Extent::kJoints, 1, "",
       "rad or m", "joint positions relative to the default pose"},
      {"joint_vel", kLoad, kJointVelocity, 0, 1, Extent::kJoints, 1, "", "rad/s or m/s",
       "joint velocities"},
      {"body_pos", kLoad, kBodyPosition, 0, 1, Extent::kBodies, 3, kVector, "m",
       "positions of the tracked bodies (world), one behind the other"},
      {"body_quat", kLoad, kBodyQuaternion, 0, 1, Extent::kBodies, 4, kQuaternion, "1",
       "orientations of the tracked bodies"},
      {"body_lin_vel", kLoad, kBodyLinearVelocity, 0, 1, Extent::kBodies, 3, kVector, "m/s",
       "linear velocities of the tracked bodies (world)"},
      {"body_ang_vel", kLoad, kBodyAngularVelocity, 0, 1, Extent::kBodies, 3, kVector, "rad/s",
       "angular velocities of the tracked bodies (world)"},
  };
}

std::vector<ExpressionName> foot_and_episode_names() {
  return {
      {"left_foot_pos", kLoad, kFootPosition, 0, 1, Extent::kLegged, 3, kVector, "m",
       "position of the left foot (world)"},
      {"right_foot_pos", kLoad, kFootPosition, 3, 1, Extent::kLegged, 3, kVector, "m",
       "position of the right foot (world)"},
      {"left_foot_quat", kLoad, kFootQuaternion, 0, 1, Extent::kLegged, 4, kQuaternion, "1",
       "orientation of the left foot"},
      {"right_foot_quat", kLoad, kFootQuaternion, 4, 1, Extent::kLegged, 4, kQuaternion, "1",
       "orientation of the right foot"},
      {"foot_height", kLoad, kFootPosition, 2, 3, Extent::kLegged, 2, "", "m",
       "heights of the left and the right foot"},
      {"foot_contact", kLoad, kFootContact, 0, 1, Extent::kLegged, 2, "", "1",
       "1 for a foot that touches the ground, left and right"},
      {"cmd", kLoad, of_episode(kCommand), 0, 1, Extent::kCommand, 3, kVector, "m/s, m/s, rad/s",
       "commanded velocity: forward, left, yaw rate"},
      {"action", kLoad, of_episode(kAction), 0, 1, Extent::kActions, 1, "", "1",
       "the action of this tick"},
      {"last_action", kLoad, of_episode(kLastAction), 0, 1, Extent::kActions, 1, "", "1",
       "the action of the tick before"},
      {"gait_phase", kLoad, of_episode(kGaitPhase), 0, 1, Extent::kGait, 2, "", "rad",
       "gait phase of the left and the right foot, 0 to 2 pi"},
      {"foot_air_time", kLoad, of_episode(kFootAirTime), 0, 1, Extent::kGait, 2, "", "s",
       "time since the left and the right foot last touched the ground"},
  };
}

std::string shape(const ExpressionName& name) {
  std::string dim = std::to_string(name.dim);
  switch (name.extent) {
    case Extent::kJoints:
      return "one per joint";
    case Extent::kActions:
      return "one per action";
    case Extent::kBodies:
      return dim + " per body";
    default:
      return dim;
  }
}

}  // namespace

int ExpressionName::width(const ExpressionScope& scope) const {
  switch (extent) {
    case Extent::kLegged:
      return scope.is_legged ? dim : 0;
    case Extent::kCommand:
      return scope.has_command ? dim : 0;
    case Extent::kGait:
      return scope.has_gait ? dim : 0;
    case Extent::kJoints:
      return dim * scope.joints;
    case Extent::kActions:
      return dim * scope.actions;
    case Extent::kBodies:
      return dim * scope.bodies;
  }
  return 0;
}

const std::vector<ExpressionName>& expression_names() {
  static const std::vector<ExpressionName> names = [] {
    std::vector<ExpressionName> all = robot_names();
    for (const ExpressionName& name : foot_and_episode_names()) all.push_back(name);
    return all;
  }();
  return names;
}

const std::vector<ExpressionFunction>& expression_functions() {
  static const std::vector<ExpressionFunction> functions = {
      {"abs", 1, false, "magnitude"},
      {"clamp", 3, false, "clamp(x, low, high): x, but not outside of the two"},
      {"cos", 1, false, "cosine"},
      {"dot", 2, true, "sum of the products of two vectors' components"},
      {"exp", 1, false, "e to the power of x"},
      {"log", 1, false, "natural logarithm"},
      {"max", 2, false, "the larger of two"},
      {"mean", 1, true, "sum of a vector's components divided by their number"},
      {"min", 2, false, "the smaller of two"},
      {"norm", 1, true, "length of a vector"},
      {"norm2", 1, true, "squared length of a vector"},
      {"sin", 1, false, "sine"},
      {"sqrt", 1, false, "square root"},
      {"square", 1, false, "x times x"},
      {"sum", 1, true, "sum of a vector's components"},
  };
  return functions;
}

nlohmann::json describe_expressions() {
  nlohmann::json list = nlohmann::json::array();
  const auto add = [&](const std::string& name, const std::string& unit,
                       const std::string& summary) {
    list.push_back({{"name", name},
                    {"kind", "expression"},
                    {"unit", unit},
                    {"summary", summary},
                    {"params", nlohmann::json::array()}});
  };
  for (const ExpressionName& name : expression_names()) {
    add(name.name, name.unit, std::string(name.summary) + "; components: " + shape(name));
  }
  for (const ExpressionFunction& function : expression_functions()) {
    add(function.name, "function", function.summary);
  }
  return list;
}

}  // namespace millrace
