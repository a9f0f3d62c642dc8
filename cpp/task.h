// A task is data: which terms, with which weights and parameters, on which robot. `TaskDefinition`
// is what the built-in tasks are written in; `Task` is that, with a run's configuration and a robot
// model applied, in the forms that the physics, the update step and the learner take.
// Built on the thread that opens a run; immutable afterwards.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "curriculum.h"
#include "frame_sampler.h"
#include "layout.h"
#include "reset.h"
#include "sim_backend.h"
#include "symmetry.h"
#include "term_table.h"
#include "update_body.h"

namespace millrace {

struct MotionClip;

struct ObservationUse {
  std::string term;
  double scale = 1;
  double noise = 0;  // half-width at noise level 1, before the scale
  int dim = 0;       // 0 = what the term table says
};

// A reward (with a weight), termination, command, event or curriculum and its parameters; those
// not named here have the term table's defaults.
struct TermUse {
  std::string term;
  double weight = 0;
  bool enabled = true;
  bool truncates = false;  // of a termination
  std::map<std::string, double> parameters = {};
  std::string expression = {};  // of a reward that a configuration brings
};

struct TaskDefinition {
  std::string name, algorithm, summary;
  std::string model_file;               // below resources/models
  SimSpec sim;                          // without the model's path
  int nominal_joints, nominal_actions;  // of the built-in model, for descriptions only
  int max_steps;
  double gait_frequency_hz;  // 0 = no gait
  bool has_mirror;
  std::vector<ObservationUse> observations, critic;
  std::vector<TermUse> rewards, terminations, commands, events, curricula;
  // Of a task with the command `motion`; the first of sim.body_names is then the root.
  std::string anchor_body;
  std::vector<std::string> end_effectors;
  ResetSpec reset;  // ranges; for tasks without a free root, qpos is added to the default
};

struct Task {
  TaskDefinition definition;  // with the configuration applied
  RowLayout layout;
  UpdateParams params;
  ResetSpec reset;
  PenaltyCurriculumSpec penalty;
  std::shared_ptr<const MotionClip> motion;  // null without the command `motion`
  FrameSamplerSpec frame_sampler;
  MotionResetSpec motion_reset;
  Symmetry symmetry;
  std::vector<std::string> reward_names;       // of the slots of params.reward
  std::vector<std::string> termination_names;  // index = end reason - 1
};

// All of these throw Failure(kInvalid) with the key's path, what is allowed and the nearest name.
// `config` is a run's resolved configuration; a task with a motion reads `resources_dir`, too.
SimSpec sim_spec_of(const nlohmann::json& config, const std::string& resources_dir);
Task make_task(const nlohmann::json& config, const SimModel& model);

std::vector<std::string> task_names();
nlohmann::json describe_tasks();

}  // namespace millrace
