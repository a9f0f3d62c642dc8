#include "task.h"

#include <cmath>

#include "expression.h"
#include "status.h"
#include "task_cartpole_swingup.h"
#include "task_g1_walk_flat.h"

namespace millrace {

namespace {

using nlohmann::json;

std::vector<TaskDefinition> build_definitions() { return {cartpole_swingup(), g1_walk_flat()}; }

const std::vector<TaskDefinition>& definitions() {
  static const std::vector<TaskDefinition> all = build_definitions();
  return all;
}

// ---- reading the configuration ----

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Failure(Code::kInvalid, path + ": " + problem);
}

std::string shown(double value) { return json(value).dump(); }

// The member, or null when it is absent or null.
const json* member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const json* section(const json& object, const char* key, const std::string& path) {
  const json* found = member(object, key);
  if (found && !found->is_object()) refuse(path, "expected a mapping, got " + found->dump());
  return found;
}

double number(const json& value, const std::string& path, double min, double max) {
  if (!value.is_number()) refuse(path, "expected a number, got " + value.dump());
  const double result = value.get<double>();
  if (!(result >= min && result <= max)) {
    refuse(path, shown(result) + " is outside of [" + shown(min) + ", " + shown(max) + "]");
  }
  return result;
}

bool flag(const json& value, const std::string& path) {
  if (!value.is_boolean()) refuse(path, "expected true or false, got " + value.dump());
  return value.get<bool>();
}

std::vector<std::string> names_of(const std::vector<TermUse>& uses) {
  std::vector<std::string> names;
  for (const TermUse& use : uses) names.push_back(use.term);
  return names;
}

TermUse& find_use(std::vector<TermUse>& uses, const std::string& name, const std::string& path,
                  const char* what) {
  for (TermUse& use : uses) {
    if (use.term == name) return use;
  }
  refuse_unknown(path, what, name, names_of(uses));
}

void set_parameter(const TermInfo& info, const std::string& name, const json& value,
                   const std::string& path, TermUse& use) {
  std::vector<std::string> allowed;
  for (const TermParameter& parameter : info.parameters) {
    if (name == parameter.name) {
      use.parameters[name] = number(value, path + "." + name, parameter.min, parameter.max);
      return;
    }
    allowed.push_back(parameter.name);
  }
  refuse_unknown(path, "parameter", name, allowed);
}

void set_parameters(const TermInfo& info, const json& parameters, const std::string& path,
                    TermUse& use) {
  for (const auto& [name, value] : parameters.items()) {
    set_parameter(info, name, value, path, use);
  }
}

// A reward that no table has: `<name>: {weight, expr}`. Its name becomes a column of the metrics.
TermUse expression_use(const std::string& name, const json& settings, const std::string& path) {
  for (const TermInfo& info : term_table()) {
    if (info.kind == TermKind::kReward && name == info.name) {
      refuse(path + ".expr", name + " is a term of its own; call the expression something else");
    }
  }
  const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (name.empty() || name.size() > 64 || name.find_first_not_of(allowed) != std::string::npos) {
    refuse(path, "a name has 1 to 64 letters, digits and _");
  }
  TermUse use = {name};
  for (const auto& [word, setting] : settings.items()) {
    const std::string at = path + "." + word;
    if (word == "weight") {
      use.weight = number(setting, at, -1e6, 1e6);
    } else if (word == "expr") {
      if (!setting.is_string() || setting == "") {
        refuse(at, "expected a text, got " + setting.dump());
      }
      use.expression = setting.get<std::string>();
    } else if (word != "params") {
      refuse_unknown(path, "key", word, {"weight", "expr"});
    } else if (!setting.is_null() && !setting.empty()) {
      refuse(at, "an expression has no parameters: write their values into it");
    }
  }
  return use;
}

// One section of terms: `<term>: {weight, enabled, params}`; the first two where they apply.
void configure_terms(const json& config, const char* key, TermKind kind,
                     std::vector<TermUse>& uses) {
  const json* terms = section(config, key, key);
  if (!terms) return;
  for (const auto& [name, value] : terms->items()) {
    const std::string path = std::string(key) + "." + name;
    if (kind == TermKind::kReward && value.is_object() && member(value, "expr")) {
      uses.push_back(expression_use(name, value, path));
      continue;
    }
    TermUse& use = find_use(uses, name, key, to_string(kind));
    if (value.is_null()) continue;
    if (!value.is_object()) refuse(path, "expected a mapping, got " + value.dump());
    for (const auto& [word, setting] : value.items()) {
      const std::string at = path + "." + word;
      if (word == "weight" && kind == TermKind::kReward) {
        use.weight = number(setting, at, -1e6, 1e6);
      } else if (word == "enabled" && kind == TermKind::kEvent) {
        use.enabled = flag(setting, at);
      } else if (word == "params") {
        if (setting.is_null()) continue;
        if (!setting.is_object()) refuse(at, "expected a mapping, got " + setting.dump());
        set_parameters(term_info(kind, name), setting, at, use);
      } else {
        std::vector<std::string> allowed = {"params"};
        if (kind == TermKind::kReward) allowed.push_back("weight");
        if (kind == TermKind::kEvent) allowed.push_back("enabled");
        refuse_unknown(path, "key", word, allowed);
      }
    }
  }
}

void configure_curricula(const json& config, std::vector<TermUse>& uses) {
  const json* curricula = section(config, "curriculum", "curriculum");
  if (!curricula) return;
  for (const auto& [name, settings] : curricula->items()) {
    const std::string path = "curriculum." + name;
    if (settings.is_null()) continue;
    if (!settings.is_object()) refuse(path, "expected a mapping, got " + settings.dump());
    const json* enabled = member(settings, "enabled");
    if (enabled && !flag(*enabled, path + ".enabled")) {
      // Switching off what a task does not have is no error.
      for (TermUse& use : uses) {
        if (use.term == name) use.enabled = false;
      }
      continue;
    }
    TermUse& use = find_use(uses, name, "curriculum", "curriculum");
    json parameters = settings;
    parameters.erase("enabled");
    set_parameters(term_info(TermKind::kCurriculum, name), parameters, path, use);
  }
}

// env.events: one switch for all, or one per event.
void switch_events(const json& env, std::vector<TermUse>& uses) {
  const json* events = member(env, "events");
  if (!events) return;
  if (events->is_object()) {
    for (const auto& [name, value] : events->items()) {
      find_use(uses, name, "env.events", "event").enabled = flag(value, "env.events." + name);
    }
    return;
  }
  const bool on = flag(*events, "env.events");
  for (TermUse& use : uses) use.enabled = use.enabled && on;
}

// env.noise: a switch, or the level that scales every noise.
double noise_level(const json& env) {
  const json* noise = member(env, "noise");
  if (!noise) return 1.0;
  if (noise->is_boolean()) return noise->get<bool>() ? 1.0 : 0.0;
  return number(*noise, "env.noise", 0, 100);
}

const json& env_section(const json& config) {
  static const json none = json::object();
  const json* env = section(config, "env", "env");
  return env ? *env : none;
}

const TaskDefinition& definition_of(const json& config) {
  const json* name = member(config, "task");
  if (!name || !name->is_string()) refuse("task", "expected the name of a task");
  for (const TaskDefinition& definition : definitions()) {
    if (definition.name == name->get<std::string>()) return definition;
  }
  refuse_unknown("task", "task", name->get<std::string>(), task_names());
}

TaskDefinition configured(const json& config) {
  TaskDefinition task = definition_of(config);
  configure_terms(config, "rewards", TermKind::kReward, task.rewards);
  configure_terms(config, "terminations", TermKind::kTermination, task.terminations);
  configure_terms(config, "commands", TermKind::kCommand, task.commands);
  configure_terms(config, "events", TermKind::kEvent, task.events);
  configure_curricula(config, task.curricula);
  const json& env = env_section(config);
  switch_events(env, task.events);
  const double level = noise_level(env);
  for (ObservationUse& use : task.observations) use.noise *= level;
  return task;
}

// ---- flattening ----

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
  int joints, actions;
};

int observation_dim(const ObservationUse& use, RobotSize robot) {
  if (use.dim) return use.dim;
  const int dim = term_info(TermKind::kObservation, use.term).dim;
  return dim == kPerJoint ? robot.joints : dim == kPerAction ? robot.actions : dim;
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
    for (const TermUse& use : task.rewards) {
      if (use.term == "pose") constants.pose_weight[j] = pose_weight(use, joint);
    }
    const bool leg = has(joint, "hip") || has(joint, "knee") || has(joint, "ankle");
    constants.upper_body_weight[j] = leg ? 0.0f : 1.0f;
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
  push.velocity = static_cast<float>(parameter(TermKind::kEvent, use, "velocity"));
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

void flatten_rewards(Task& task, RobotSize robot) {
  UpdateParams& params = task.params;
  const ExpressionScope scope = expression_scope(task.definition, robot);
  for (const TermUse& use : task.definition.rewards) {
    const bool is_table_term = use.expression.empty();
    const std::string path = "rewards." + use.term;
    std::vector<ExpressionInstruction> instructions;
    if (!is_table_term) {
      instructions = compile_expression(use.expression, scope, path + ".expr");
    }
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
      slot.expression = append_expression(instructions, path + ".expr", params.expressions);
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
  const RobotSize robot = {task.nominal_joints, task.nominal_actions};
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
  const RobotSize robot = {static_cast<int>(model.joint_names.size()), model.num_actions};
  UpdateParams& params = task.params;
  params.constants = flatten_constants(definition, model);
  params.observation = flatten_observations(definition.observations, robot);
  params.critic = flatten_observations(definition.critic, robot);
  params.max_steps = definition.max_steps;
  params.num_actions = model.num_actions;
  flatten_rewards(task, robot);
  flatten_terminations(task);
  flatten_events(task, model);
  for (const TermUse& use : definition.commands) {
    params.command = flatten_command(use, definition.sim.tick_seconds);
  }
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
