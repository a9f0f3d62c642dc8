#include "task_config.h"

#include "status.h"
#include "task_cartpole_swingup.h"
#include "task_g1_motion_tracking.h"
#include "task_g1_walk_flat.h"

namespace millrace {

namespace {

using nlohmann::json;

std::vector<TaskDefinition> build_definitions() {
  return {cartpole_swingup(), g1_walk_flat(), g1_motion_tracking()};
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

}  // namespace

const std::vector<TaskDefinition>& definitions() {
  static const std::vector<TaskDefinition> all = build_definitions();
  return all;
}

void refuse(const std::string& path, const std::string& problem) {
  throw Failure(Code::kInvalid, path + ": " + problem);
}

std::string shown(double value) { return json(value).dump(); }

const json* member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::vector<std::string> names_of(const std::vector<TermUse>& uses) {
  std::vector<std::string> names;
  for (const TermUse& use : uses) names.push_back(use.term);
  return names;
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

}  // namespace millrace
