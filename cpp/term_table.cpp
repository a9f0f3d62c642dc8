#include "term_table.h"

#include <algorithm>

#include "motion_term_table.h"
#include "status.h"
#include "terms.h"

namespace millrace {

namespace {

constexpr TermKind kObservation = TermKind::kObservation;
constexpr TermKind kReward = TermKind::kReward;
constexpr TermKind kTermination = TermKind::kTermination;

std::vector<TermInfo> observation_terms() {
  return {
      {"gyro", kObservation, kObserveGyro, 3, "rad/s", "angular velocity at the torso IMU", {}},
      {"projected_gravity",
       kObservation,
       kObserveProjectedGravity,
       3,
       "1",
       "gravity direction in torso axes",
       {}},
      {"joint_position",
       kObservation,
       kObserveJointPosition,
       kPerJoint,
       "rad or m",
       "joint positions relative to the default pose",
       {}},
      {"joint_velocity",
       kObservation,
       kObserveJointVelocity,
       kPerJoint,
       "rad/s or m/s",
       "joint velocities",
       {}},
      {"last_action",
       kObservation,
       kObserveLastAction,
       kPerAction,
       "1",
       "the action applied last",
       {}},
      {"command",
       kObservation,
       kObserveCommand,
       3,
       "m/s, m/s, rad/s",
       "commanded velocity: forward, left, yaw rate",
       {}},
      {"gait_phase",
       kObservation,
       kObserveGaitPhase,
       2,
       "rad",
       "gait phase of the left and the right foot",
       {}},
      {"local_linear_velocity",
       kObservation,
       kObserveLocalLinearVelocity,
       3,
       "m/s",
       "linear velocity at the pelvis IMU, in its axes",
       {}},
      {"pole_direction",
       kObservation,
       kObservePoleDirection,
       2,
       "1",
       "cosine and sine of the pole's angle from upright",
       {}},
      {"pole_velocity",
       kObservation,
       kObservePoleVelocity,
       1,
       "rad/s",
       "angular velocity of the pole",
       {}},
  };
}

std::vector<TermInfo> main_reward_terms() {
  return {
      {"tracking_lin_vel",
       kReward,
       kRewardTrackingLinVel,
       0,
       "1",
       "exp(-squared error of the horizontal velocity / scale)",
       {{"scale", .25, "m^2/s^2", 1e-4, 100, "squared error at which the reward is 1/e"}}},
      {"tracking_ang_vel",
       kReward,
       kRewardTrackingAngVel,
       0,
       "1",
       "exp(-squared error of the yaw rate / scale)",
       {{"scale", .25, "rad^2/s^2", 1e-4, 100, "squared error at which the reward is 1/e"}}},
      {"penalty_ang_vel_xy",
       kReward,
       kRewardPenaltyAngVelXy,
       0,
       "rad^2/s^2",
       "squared roll and pitch rate of the torso",
       {}},
      {"penalty_orientation",
       kReward,
       kRewardPenaltyOrientation,
       0,
       "1",
       "squared horizontal part of the gravity direction in torso axes",
       {}},
      {"penalty_action_rate",
       kReward,
       kRewardPenaltyActionRate,
       0,
       "1",
       "squared change of the action since the last tick",
       {}},
      {"pose",
       kReward,
       kRewardPose,
       0,
       "rad^2",
       "weighted squared distance of the joints from the default pose",
       {{"hip_pitch", .01, "1", 0, 1000, "weight of the hip pitch joints"},
        {"hip_roll", 1, "1", 0, 1000, "weight of the hip roll joints"},
        {"hip_yaw", 5, "1", 0, 1000, "weight of the hip yaw joints"},
        {"knee", .01, "1", 0, 1000, "weight of the knees"},
        {"ankle_pitch", 5, "1", 0, 1000, "weight of the ankle pitch joints"},
        {"ankle_roll", 5, "1", 0, 1000, "weight of the ankle roll joints"},
        {"other", 50, "1", 0, 1000, "weight of every other joint"}}},
      {"penalty_feet_ori",
       kReward,
       kRewardPenaltyFeetOri,
       0,
       "1",
       "x^2 + y^2 of both foot quaternions",
       {}},
      {"feet_phase",
       kReward,
       kRewardFeetPhase,
       0,
       "1",
       "exp(-squared error of both foot heights against the gait / scale)",
       {{"scale", .04, "m^2", 1e-5, 10, "squared error at which the reward is 1/e"},
        {"swing_height", .09, "m", 0, 1, "height of a foot in mid-swing"},
        {"gate_speed", 0, "m/s", 0, 10, "no reward below this forward speed; 0 = always"}}},
      {"alive", kReward, kRewardAlive, 0, "1", "1 in every tick", {}},
      {"upright", kReward, kRewardUpright, 0, "1", "(1 + cosine of the pole's angle) / 2", {}},
  };
}

std::vector<TermInfo> further_reward_terms() {
  return {
      {"forward_progress",
       kReward,
       kRewardForwardProgress,
       0,
       "m/s",
       "forward velocity, counted up to the commanded one",
       {}},
      {"under_speed",
       kReward,
       kRewardUnderSpeed,
       0,
       "m/s",
       "shortfall of the velocity along the commanded x direction",
       {}},
      {"lin_vel_z", kReward, kRewardLinVelZ, 0, "m^2/s^2", "squared vertical velocity", {}},
      {"base_height",
       kReward,
       kRewardBaseHeight,
       0,
       "m^2",
       "squared distance of the root's height from the target",
       {{"target", .754, "m", 0, 10, "wanted height of the root"}}},
      {"upper_body_pose",
       kReward,
       kRewardUpperBodyPose,
       0,
       "rad^2",
       "squared distance of waist and arm joints from the default pose",
       {}},
      {"penalty_close_feet_xy",
       kReward,
       kRewardPenaltyCloseFeetXy,
       0,
       "m^2",
       "squared shortfall of the horizontal distance of the feet",
       {{"distance", .15, "m", 0, 2, "distance below which it counts"}}},
      {"feet_phase_contrast",
       kReward,
       kRewardFeetPhaseContrast,
       0,
       "1",
       "exp(-squared error of the height difference of the feet against the gait / scale)",
       {{"scale", .04, "m^2", 1e-5, 10, "squared error at which the reward is 1/e"},
        {"swing_height", .09, "m", 0, 1, "height of a foot in mid-swing"}}},
      {"feet_phase_contact",
       kReward,
       kRewardFeetPhaseContact,
       0,
       "1",
       "share of feet whose contact agrees with the gait",
       {{"swing_height", .09, "m", 0, 1, "height of a foot in mid-swing"},
        {"stance_height", .01, "m", 0, 1, "gait height below which a foot should touch"}}},
      {"feet_double_stance",
       kReward,
       kRewardFeetDoubleStance,
       0,
       "1",
       "1 while both feet touch the ground although a movement is commanded",
       {{"command_speed", .1, "m/s", 0, 10, "commanded speed from which it counts"}}},
      {"feet_air_time",
       kReward,
       kRewardFeetAirTime,
       0,
       "s",
       "at each touch-down: time in the air beyond the threshold",
       {{"threshold_seconds", .4, "s", 0, 10, "shorter swings count negative"},
        {"command_speed", .1, "m/s", 0, 10, "commanded speed from which it counts"}}},
  };
}

std::vector<TermInfo> termination_terms() {
  return {
      {"tilt",
       kTermination,
       kTerminateTilt,
       0,
       "deg",
       "the torso leans more than the limit",
       {{"limit_degrees", 65, "deg", 1, 180, "largest lean"}}},
      {"low_root",
       kTermination,
       kTerminateLowRoot,
       0,
       "m",
       "the root is below a height",
       {{"height", .3, "m", -10, 10, "smallest height"}}},
      {"time_out",
       kTermination,
       kTerminateTimeOut,
       0,
       "s",
       "the episode reached its length (truncates)",
       {}},
      {"physics_unstable",
       kTermination,
       kTerminatePhysicsUnstable,
       0,
       "1",
       "MuJoCo warned of bad positions, velocities or accelerations",
       {}},
      {"non_finite",
       kTermination,
       kTerminateNonFinite,
       0,
       "1",
       "an action, reward or observation was not finite",
       {}},
  };
}

std::vector<TermInfo> other_terms() {
  return {
      {"velocity",
       TermKind::kCommand,
       0,
       0,
       "m/s, rad/s",
       "velocity command, drawn uniformly",
       {{"linear_x_low", -.6, "m/s", -10, 10, "slowest forward velocity"},
        {"linear_x_high", 1, "m/s", -10, 10, "fastest forward velocity"},
        {"linear_y_low", -.4, "m/s", -10, 10, "slowest velocity to the left"},
        {"linear_y_high", .4, "m/s", -10, 10, "fastest velocity to the left"},
        {"angular_low", -.8, "rad/s", -10, 10, "slowest yaw rate"},
        {"angular_high", .8, "rad/s", -10, 10, "fastest yaw rate"},
        {"resample_seconds", 10, "s", 0, 1000, "time between draws; 0 = only at reset"},
        {"minimum_speed", .2, "m/s", 0, 10, "linear commands up to this speed become 0"},
        {"standing_share", 0, "1", 0, 1, "share of commands to stand still"},
        {"heading_mode", 0, "1", 0, 1, "1 = the yaw rate steers towards a drawn heading"},
        {"heading_stiffness", .5, "1/s", 0, 100, "yaw rate per angle of heading error"},
        {"heading_rate_limit", 2, "rad/s", 0, 100, "largest yaw rate in heading mode"}}},
      {"push",
       TermKind::kEvent,
       0,
       0,
       "m/s",
       "velocity change of the base at random intervals",
       {{"interval_seconds_low", 5, "s", .02, 1000, "shortest time between pushes"},
        {"interval_seconds_high", 10, "s", .02, 1000, "longest time between pushes"},
        {"velocity", .5, "m/s", 0, 10, "half-width of the change along x and y (world)"},
        {"velocity_z", 0, "m/s", 0, 10, "half-width of the change along z"},
        {"roll_pitch_rate", 0, "rad/s", 0, 10, "half-width of the change about x and y (world)"},
        {"yaw_rate", 0, "rad/s", 0, 10, "half-width of the change about z"}}},
      {"gains",
       TermKind::kEvent,
       0,
       0,
       "1",
       "servo gains drawn at reset, kp and kd apart",
       {{"factor_low", .9, "1", .01, 10, "smallest factor"},
        {"factor_high", 1.1, "1", .01, 10, "largest factor"}}},
      {"penalty",
       TermKind::kCurriculum,
       0,
       0,
       "1",
       "scales all negative rewards with the average episode length",
       {{"start", .5, "1", 0, 10, "first scale"},
        {"min", .5, "1", 0, 10, "smallest scale"},
        {"max", 1, "1", 0, 10, "largest scale"},
        {"lower_length", 150, "ticks", 0, 1e6, "below this average length the scale shrinks"},
        {"upper_length", 750, "ticks", 0, 1e6, "above this average length the scale grows"},
        {"rate", .001, "1", 0, 1, "relative change per tick with ended episodes"},
        {"window", 1000, "episodes", 1, 1e9, "averaging window at 4,096 environments"}}},
  };
}

std::vector<TermInfo> build_table() {
  std::vector<TermInfo> table;
  for (const auto& part : {observation_terms(), main_reward_terms(), further_reward_terms(),
                           termination_terms(), other_terms(), motion_term_table()}) {
    table.insert(table.end(), part.begin(), part.end());
  }
  return table;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

const char* to_string(TermKind kind) {
  switch (kind) {
    case TermKind::kObservation:
      return "observation";
    case TermKind::kReward:
      return "reward";
    case TermKind::kTermination:
      return "termination";
    case TermKind::kCommand:
      return "command";
    case TermKind::kEvent:
      return "event";
    case TermKind::kCurriculum:
      return "curriculum";
  }
  return "unknown";
}

const std::vector<TermInfo>& term_table() {
  static const std::vector<TermInfo> table = build_table();
  return table;
}

const TermInfo& term_info(TermKind kind, const std::string& name) {
  for (const TermInfo& info : term_table()) {
    if (info.kind == kind && name == info.name) return info;
  }
  throw Failure(Code::kBug, std::string("no ") + to_string(kind) + " term is called " + name);
}

nlohmann::json describe_terms() {
  nlohmann::json terms = nlohmann::json::array();
  for (const TermInfo& info : term_table()) {
    nlohmann::json parameters = nlohmann::json::array();
    for (const TermParameter& parameter : info.parameters) {
      parameters.push_back({{"name", parameter.name},
                            {"default", parameter.default_value},
                            {"unit", parameter.unit},
                            {"min", parameter.min},
                            {"max", parameter.max},
                            {"summary", parameter.summary}});
    }
    terms.push_back({{"name", info.name},
                     {"kind", to_string(info.kind)},
                     {"unit", info.unit},
                     {"summary", info.summary},
                     {"params", parameters}});
  }
  return terms;
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance > std::max<size_t>(1, name.size() / 3)) continue;
    if (distance >= std::min(name.size(), candidate.size())) continue;
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

void refuse_unknown(const std::string& path, const std::string& what, const std::string& name,
                    const std::vector<std::string>& allowed) {
  std::string list;
  for (const std::string& candidate : allowed) {
    list += (list.empty() ? "" : ", ") + candidate;
  }
  std::string message = path + ": unknown " + what + " \"" + name + "\"; ";
  const std::string nearest = nearest_name(name, allowed);
  if (allowed.empty()) {
    message += "none are allowed here";
  } else if (nearest.empty()) {
    message += "allowed: " + list;
  } else {
    message += "did you mean \"" + nearest + "\"? Allowed: " + list;
  }
  throw Failure(Code::kInvalid, message);
}

}  // namespace millrace
