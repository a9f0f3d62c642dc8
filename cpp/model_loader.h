// ModelLoader: from a robot file and a SimSpec to a checked mjModel, and the only place where
// MuJoCo's global error and warning handlers are set.
//
// MuJoCo's own fatal handler ends the process; ours throws Failure through libmujoco's C frames
// (they carry unwind tables) to our caller. A broken or unfit model is one Failure(kInvalid) line;
// everything that is missing is named at once. Loading happens on the thread that opens the run;
// the models are read-only afterwards unless a worker owns its copy.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim_backend.h"

namespace millrace {

struct MujocoDeleter {
  void operator()(mjModel* model) const { mj_deleteModel(model); }
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using ModelPtr = std::unique_ptr<mjModel, MujocoDeleter>;
using DataPtr = std::unique_ptr<mjData, MujocoDeleter>;

// Idempotent; every function below that calls MuJoCo has done it.
void set_mujoco_handlers();
// MuJoCo warnings so far in this process, of every kind.
uint64_t mujoco_warning_count();
// Throws Failure(kUnavailable) with both numbers unless they are equal.
void require_mujoco_version(int compiled, int loaded);

// Confined (model_files.h), parsed and compiled, not yet checked against a task.
ModelPtr load_model(const std::string& model_path);
ModelPtr copy_model(const mjModel& model);
DataPtr make_data(const mjModel& model);

// Where the names of a SimSpec are in a model; ids are -1 where the task does not use the thing.
struct ModelIndex {
  int root_body = -1;
  int torso_body = -1;
  int pelvis_site = -1;
  int torso_site = -1;
  std::vector<int> foot_sites;
  std::vector<int> foot_bodies;
  std::vector<int> bodies;
  std::vector<int> joints;  // hinge and slide: the driven ones in actuator order, then the others
};

// Throws Failure(kInvalid) that lists everything the task needs and the model lacks, or whose
// timestep x substeps is not the tick.
ModelIndex index_model(const mjModel& model, const SimSpec& spec);
SimModel describe_model(const mjModel& model, const ModelIndex& index);

// True for a position servo: force = kp (control - position) - kd velocity.
bool is_servo(const mjModel& model, int actuator);
// What a servo is asked for in the default pose; 0 for other actuators.
std::vector<double> default_controls(const mjModel& model, const SimModel& description);

}  // namespace millrace
