#include "task.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "expression.h"
#include "motion_clip.h"
#include "status.h"
#include "task_config.h"

namespace millrace {

namespace {

using nlohmann::json;

double parameter(TermKind kind, const TermUse& use, const std::string& name) {
  const auto found = use.parameters.find(name);
  if (found != use.parameters.end()) return found->second;
  for (const TermParameter& candidate : term_info(kind, use.term).parameters) {
    if (name == candidate.name) return candidate.default_value;
  }
  throw Failure(Code::kBug, use.term + " has no parameter " + name);
}

TermParams flatten_parameters(TermKind kind, const TermUse& use) {
  TermParams params = {};
  const TermInfo& info = term_info(kind, use.term);
  MR_CHECK(info.parameters.size() <= kMaxTermParams, "too many parameters: " + use.term);
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    params.value[i] = static_cast<float>(parameter(kind, use, info.parameters[i].name));
  }
  return params;
}

void require_ordered(const std::string& path, double low, double high) {
  if (low > high) refuse(path, "the low bound " + shown(low) + " is above " + shown(high));
}

struct RobotSize {
  int joints, actions, bodies;
};

RobotSize robot_size(const TaskDefinition& task, int joints, int actions) {
  return {joints, actions, static_cast<int>(task.sim.body_names.size())};
}

int observation_dim(const ObservationUse& use, RobotSize robot) {
  if (use.dim) return use.dim;
  const int dim = term_info(TermKind::kObservation, use.term).dim;
  switch (dim) {
    case kPerJoint:
      return robot.joints;
    case kPerAction:
      return robot.actions;
    case kThreePerBody:
      return 3 * robot.bodies;
    case kSixPerBody:
      return 6 * robot.bodies;
  }
  return dim;
}

ObservationLayout flatten_observations(const std::vector<ObservationUse>& uses, RobotSize robot) {
  ObservationLayout layout = {};
  MR_CHECK(uses.size() <= kMaxObservationSlots, "too many observation terms");
  for (const ObservationUse& use : uses) {
    ObservationSlot& slot = layout.slot[layout.count++];
    slot.term = term_info(TermKind::kObservation, use.term).id;
    slot.offset = layout.dim;
    slot.dim = observation_dim(use, robot);
    slot.scale = static_cast<float>(use.scale);
    slot.noise = static_cast<float>(use.noise);
    layout.dim += slot.dim;
  }
  return layout;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The pose reward weighs joints by the group that their name puts them in.
float pose_weight(const TermUse& use, const std::string& joint) {
  for (const char* group :
       {"hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"}) {
    if (has(joint, group)) return static_cast<float>(parameter(TermKind::kReward, use, group));
  }
  return static_cast<float>(parameter(TermKind::kReward, use, "other"));
}

TermConstants flatten_constants(const TaskDefinition& task, const SimModel& model) {
  TermConstants constants = {};
  const size_t joints = model.joint_names.size();
  if (joints > kMaxJoints) {
    refuse("env.model_file", "the robot has " + std::to_string(joints) + " joints, at most " +
                                 std::to_string(int{kMaxJoints}) + " are supported");
  }
  constants.num_joints = static_cast<int>(joints);
  constants.tick_seconds = static_cast<float>(task.sim.tick_seconds);
  for (size_t j = 0; j < joints; ++j) {
    const std::string& joint = model.joint_names[j];
    constants.default_joint_position[j] = static_cast<float>(model.default_joint_position[j]);
    constants.joint_lower[j] = static_cast<float>(model.joint_lower[j]);
    constants.joint_upper[j] = static_cast<float>(model.joint_upper[j]);
    for (const TermUse& use : task.rewards) {
      if (use.term == "pose") constants.pose_weight[j] = pose_weight(use, joint);
    }
    const bool leg = has(joint, "hip") || has(joint, "knee") || has(joint, "ankle");
    constants.upper_body_weight[j] = leg ? 0.0f : 1.0f;
  }
  const std::vector<std::string>& bodies = task.sim.body_names;
  MR_CHECK(bodies.size() <= kMaxBodies, "too many tracked bodies");
  for (size_t i = 0; i < bodies.size(); ++i) {
    const auto& hands_and_feet = task.end_effectors;
    if (bodies[i] == task.anchor_body) constants.anchor_body = static_cast<int>(i);
    constants.is_end_effector[i] =
        std::count(hands_and_feet.begin(), hands_and_feet.end(), bodies[i]) > 0 ? 1 : 0;
  }
  return constants;
}

int ticks_of(double seconds, double tick_seconds) {
  return static_cast<int>(std::lround(seconds / tick_seconds));
}

CommandParams flatten_command(const TermUse& use, double tick_seconds) {
  const auto value = [&](const char* name) {
    return static_cast<float>(parameter(TermKind::kCommand, use, name));
  };
  CommandParams command = {};
  command.enabled = 1;
  command.resample_ticks = ticks_of(value("resample_seconds"), tick_seconds);
  command.linear_x_low = value("linear_x_low");
  command.linear_x_high = value("linear_x_high");
  command.linear_y_low = value("linear_y_low");
  command.linear_y_high = value("linear_y_high");
  command.angular_low = value("angular_low");
  command.angular_high = value("angular_high");
  command.minimum_speed = value("minimum_speed");
  command.standing_share = value("standing_share");
  command.heading_mode = value("heading_mode") > 0.5f ? 1 : 0;
  command.heading_stiffness = value("heading_stiffness");
  command.heading_rate_limit = value("heading_rate_limit");
  require_ordered("commands.velocity.params.linear_x_low", command.linear_x_low,
                  command.linear_x_high);
  require_ordered("commands.velocity.params.linear_y_low", command.linear_y_low,
                  command.linear_y_high);
  require_ordered("commands.velocity.params.angular_low", command.angular_low,
                  command.angular_high);
  return command;
}

PushParams flatten_push(const TermUse& use, double tick_seconds) {
  PushParams push = {};
  const double low = parameter(TermKind::kEvent, use, "interval_seconds_low");
  const double high = parameter(TermKind::kEvent, use, "interval_seconds_high");
  require_ordered("events.push.params.interval_seconds_low", low, high);
  push.enabled = use.enabled ? 1 : 0;
  push.interval_ticks_low = ticks_of(low, tick_seconds);
  push.interval_ticks_high = ticks_of(high, tick_seconds);
  const char* names[6] = {"velocity",        "velocity",        "velocity_z",
                          "roll_pitch_rate", "roll_pitch_rate", "yaw_rate"};
  for (int i = 0; i < 6; ++i) {
    push.velocity[i] = static_cast<float>(parameter(TermKind::kEvent, use, names[i]));
  }
  return push;
}

ExpressionScope expression_scope(const TaskDefinition& task, RobotSize robot) {
  ExpressionScope scope;
  scope.joints = robot.joints;
  scope.actions = robot.actions;
  scope.bodies = static_cast<int>(task.sim.body_names.size());
  scope.is_legged = task.sim.is_legged;
  scope.has_gait = task.gait_frequency_hz > 0;
  for (const TermUse& use : task.commands) {
    scope.has_command = scope.has_command || use.term == "velocity";
  }
  return scope;
}

// Throws Failure(kInvalid) with one line for each expression that is wrong.
std::map<std::string, std::vector<ExpressionInstruction>> compile_expressions(
    const TaskDefinition& task, RobotSize robot) {
  const ExpressionScope scope = expression_scope(task, robot);
  std::map<std::string, std::vector<ExpressionInstruction>> compiled;
  std::string mistakes;
  for (const TermUse& use : task.rewards) {
    if (use.expression.empty()) continue;
    try {
      compiled[use.term] =
          compile_expression(use.expression, scope, "rewards." + use.term + ".expr");
    } catch (const Failure& failure) {
      mistakes += (mistakes.empty() ? "" : "\n") + std::string(failure.what());
    }
  }
  if (!mistakes.empty()) throw Failure(Code::kInvalid, mistakes);
  return compiled;
}

void flatten_rewards(Task& task, RobotSize robot) {
  UpdateParams& params = task.params;
  const auto expressions = compile_expressions(task.definition, robot);
  for (const TermUse& use : task.definition.rewards) {
    const bool is_table_term = use.expression.empty();
    const std::string path = "rewards." + use.term;
    if (use.weight == 0) continue;
    if (params.reward_count == kMaxRewardSlots) {
      refuse(path, "at most " + std::to_string(int{kMaxRewardSlots}) + " rewards have a weight");
    }
    RewardSlot& slot = params.reward[params.reward_count++];
    slot.weight = static_cast<float>(use.weight);
    if (is_table_term) {
      slot.term = term_info(TermKind::kReward, use.term).id;
      slot.params = flatten_parameters(TermKind::kReward, use);
    } else {
      slot.expression =
          append_expression(expressions.at(use.term), path + ".expr", params.expressions);
    }
    task.reward_names.push_back(use.term);
  }
  if (params.reward_count == 0) refuse("rewards", "every weight is 0: nothing can be learnt");
}

void flatten_terminations(Task& task) {
  UpdateParams& params = task.params;
  std::vector<TermUse> uses = task.definition.terminations;
  uses.push_back({"physics_unstable"});
  uses.push_back({"non_finite"});
  MR_CHECK(uses.size() <= kMaxTerminationSlots, "too many terminations");
  for (const TermUse& use : uses) {
    TerminationSlot& slot = params.termination[params.termination_count++];
    slot.term = term_info(TermKind::kTermination, use.term).id;
    slot.truncates = use.truncates ? 1 : 0;
    slot.params = flatten_parameters(TermKind::kTermination, use);
    task.termination_names.push_back(use.term);
    if (slot.term == kTerminatePhysicsUnstable) params.unstable_reason = params.termination_count;
    if (slot.term == kTerminateNonFinite) params.non_finite_reason = params.termination_count;
  }
}

void flatten_events(Task& task, const SimModel& model) {
  const TaskDefinition& definition = task.definition;
  task.reset = definition.reset;
  task.reset.nv = model.nv;
  task.reset.qpos = model.default_qpos;
  for (size_t i = 0; i < definition.reset.qpos.size() && i < task.reset.qpos.size(); ++i) {
    task.reset.qpos[i] += definition.reset.qpos[i];
  }
  for (const TermUse& use : definition.events) {
    if (use.term == "push") {
      task.params.push = flatten_push(use, definition.sim.tick_seconds);
    } else if (use.term == "gains") {
      task.reset.randomise_gains = use.enabled;
      task.reset.gain_low = parameter(TermKind::kEvent, use, "factor_low");
      task.reset.gain_high = parameter(TermKind::kEvent, use, "factor_high");
      require_ordered("events.gains.params.factor_low", task.reset.gain_low, task.reset.gain_high);
    }
  }
}

PenaltyCurriculumSpec flatten_curriculum(const TaskDefinition& task) {
  PenaltyCurriculumSpec spec;
  for (const TermUse& use : task.curricula) {
    if (use.term != "penalty") continue;
    const auto value = [&](const char* name) {
      return parameter(TermKind::kCurriculum, use, name);
    };
    spec.enabled = use.enabled;
    spec.start = value("start");
    spec.min = value("min");
    spec.max = value("max");
    spec.lower_length = value("lower_length");
    spec.upper_length = value("upper_length");
    spec.rate = value("rate");
    spec.window = value("window");
    require_ordered("curriculum.penalty.min", spec.min, spec.max);
    require_ordered("curriculum.penalty.lower_length", spec.lower_length, spec.upper_length);
  }
  return spec;
}

// env.<key>: null or a text; refused when the task follows no motion.
std::string motion_setting(const json& config, const char* key, bool follows_motion) {
  const json* value = member(env_section(config), key);
  if (!value) return "";
  const std::string path = std::string("env.") + key;
  if (!follows_motion) refuse(path, "this task follows no motion");
  if (!value->is_string()) refuse(path, "expected a text, got " + value->dump());
  return value->get<std::string>();
}

FrameSamplerSpec flatten_frame_sampler(const TaskDefinition& task, const std::string& mode) {
  FrameSamplerSpec spec;
  spec.frames_per_second = 1 / task.sim.tick_seconds;
  const std::vector<std::string>& modes = frame_mode_names();
  if (!mode.empty()) {
    const auto found = std::find(modes.begin(), modes.end(), mode);
    if (found == modes.end()) refuse_unknown("env.motion_start", "mode", mode, modes);
    spec.mode = static_cast<FrameMode>(found - modes.begin());
  }
  for (const TermUse& use : task.curricula) {
    if (use.term != "frame_sampler") continue;
    const auto value = [&](const char* name) {
      return parameter(TermKind::kCurriculum, use, name);
    };
    if (!use.enabled && spec.mode == FrameMode::kAdaptive) spec.mode = FrameMode::kUniform;
    spec.uniform_share = value("uniform_share");
    spec.rate = value("rate");
    spec.kernel_size = static_cast<int>(value("kernel_size"));
    spec.kernel_decay = value("kernel_decay");
    spec.clip_start_share = value("clip_start_share");
  }
  return spec;
}

MotionResetSpec flatten_motion_reset(const TermUse& use, const SimModel& model) {
  const auto value = [&](const char* name) { return parameter(TermKind::kCommand, use, name); };
  MotionResetSpec spec;
  const char* pose[6] = {"root_xy",         "root_xy",         "root_z",
                         "root_roll_pitch", "root_roll_pitch", "root_yaw"};
  const char* velocity[6] = {"velocity_xy",     "velocity_xy",     "velocity_z",
                             "roll_pitch_rate", "roll_pitch_rate", "yaw_rate"};
  for (int i = 0; i < 6; ++i) {
    spec.root_pose[i] = value(pose[i]);
    spec.root_velocity[i] = value(velocity[i]);
  }
  spec.joint_position = value("joint_position");
  spec.qpos_address = model.joint_qpos_address;
  spec.dof_address = model.joint_dof_address;
  spec.joint_lower = model.joint_lower;
  spec.joint_upper = model.joint_upper;
  return spec;
}

MotionClip configured_motion(const std::string& file, MotionRobot& robot,
                             double frames_per_second) {
  try {
    return load_motion(file, robot, frames_per_second);
  } catch (const Failure& failure) {
    if (file.empty() || failure.code() != Code::kInvalid) throw;
    throw Failure(Code::kInvalid, std::string("env.motion_file: ") + failure.what() +
                                      "; allowed: a .npz, a .csv, a folder of them, or null for "
                                      "the built-in motion");
  }
}

void flatten_commands(Task& task, const json& config, const SimModel& model) {
  const TaskDefinition& definition = task.definition;
  const std::vector<std::string> names = names_of(definition.commands);
  const bool follows_motion = std::count(names.begin(), names.end(), "motion") > 0;
  const std::string file = motion_setting(config, "motion_file", follows_motion);
  const std::string start = motion_setting(config, "motion_start", follows_motion);
  for (const TermUse& use : definition.commands) {
    if (use.term == "velocity") {
      task.params.command = flatten_command(use, definition.sim.tick_seconds);
      continue;
    }
    MotionRobot robot(sim_spec_of(config, config.at("resources_dir").get<std::string>()));
    task.motion = std::make_shared<const MotionClip>(
        configured_motion(file, robot, 1 / definition.sim.tick_seconds));
    task.frame_sampler = flatten_frame_sampler(definition, start);
    task.motion_reset = flatten_motion_reset(use, model);
  }
}

Symmetry build_symmetry(const Task& task, const SimModel& model) {
  Symmetry symmetry;
  if (!task.definition.has_mirror) return symmetry;
  symmetry.available = true;
  const auto& joints = model.joint_names;
  const MirrorMap all = mirror_joints(joints);
  symmetry.action = mirror_joints({joints.begin(), joints.begin() + model.num_actions});
  symmetry.observation = mirror_observation(task.params.observation, all, symmetry.action);
  symmetry.critic = mirror_observation(task.params.critic, all, symmetry.action);
  return symmetry;
}

// ---- describing ----

json describe_observations(const std::vector<ObservationUse>& uses, RobotSize robot) {
  json list = json::array();
  for (const ObservationUse& use : uses) {
    list.push_back({{"term", use.term},
                    {"dim", observation_dim(use, robot)},
                    {"scale", use.scale},
                    {"noise", use.noise},
                    {"unit", term_info(TermKind::kObservation, use.term).unit}});
  }
  return list;
}

json describe_uses(TermKind kind, const std::vector<TermUse>& uses) {
  json list = json::array();
  for (const TermUse& use : uses) {
    json parameters = json::object();
    for (const TermParameter& candidate : term_info(kind, use.term).parameters) {
      parameters[candidate.name] = parameter(kind, use, candidate.name);
    }
    json described = {{"term", use.term}, {"params", parameters}};
    if (kind == TermKind::kReward) described["weight"] = use.weight;
    if (kind == TermKind::kTermination) described["truncates"] = use.truncates;
    list.push_back(described);
  }
  return list;
}

json describe_task(const TaskDefinition& task) {
  const RobotSize robot = robot_size(task, task.nominal_joints, task.nominal_actions);
  return {{"name", task.name},
          {"algo", task.algorithm},
          {"summary", task.summary},
          {"observation_dim", flatten_observations(task.observations, robot).dim},
          {"critic_dim", flatten_observations(task.critic, robot).dim},
          {"action_dim", robot.actions},
          {"tick_seconds", task.sim.tick_seconds},
          {"max_steps", task.max_steps},
          {"observations", describe_observations(task.observations, robot)},
          {"critic", describe_observations(task.critic, robot)},
          {"rewards", describe_uses(TermKind::kReward, task.rewards)},
          {"terminations", describe_uses(TermKind::kTermination, task.terminations)},
          {"events", describe_uses(TermKind::kEvent, task.events)},
          {"commands", describe_uses(TermKind::kCommand, task.commands)},
          {"curriculum", describe_uses(TermKind::kCurriculum, task.curricula)}};
}

}  // namespace

SimSpec sim_spec_of(const json& config, const std::string& resources_dir) {
  const TaskDefinition& definition = definition_of(config);
  SimSpec sim = definition.sim;
  sim.model_path = resources_dir + "/models/" + definition.model_file;
  if (const json* file = member(env_section(config), "model_file")) {
    if (!file->is_string()) {
      refuse("env.model_file", "expected a file name, got " + file->dump());
    }
    sim.model_path = file->get<std::string>();
  }
  return sim;
}

Task make_task(const json& config, const SimModel& model) {
  Task task = {};
  task.definition = configured(config);
  const TaskDefinition& definition = task.definition;
  const RobotSize robot =
      robot_size(definition, static_cast<int>(model.joint_names.size()), model.num_actions);
  UpdateParams& params = task.params;
  params.constants = flatten_constants(definition, model);
  params.observation = flatten_observations(definition.observations, robot);
  params.critic = flatten_observations(definition.critic, robot);
  params.max_steps = definition.max_steps;
  params.num_actions = model.num_actions;
  flatten_rewards(task, robot);
  flatten_terminations(task);
  flatten_events(task, model);
  flatten_commands(task, config, model);
  params.gait.enabled = definition.gait_frequency_hz > 0 ? 1 : 0;
  params.gait.phase_step = static_cast<float>(
      2 * 3.14159265358979323846 * definition.gait_frequency_hz * definition.sim.tick_seconds);
  task.penalty = flatten_curriculum(definition);
  task.layout = {params.observation.dim, params.num_actions, params.critic.dim};
  task.symmetry = build_symmetry(task, model);
  return task;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskDefinition& definition : definitions()) names.push_back(definition.name);
  return names;
}

json describe_tasks() {
  json tasks = json::array();
  for (const TaskDefinition& definition : definitions()) {
    tasks.push_back(describe_task(definition));
  }
  return tasks;
}

}  // namespace millrace
