#include "model_loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "model_files.h"
#include "status.h"

namespace millrace {

namespace {

std::atomic<uint64_t> warning_count{0};

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void throw_error(const char* message) {
  throw Failure(Code::kDevice, "MuJoCo: " + one_line(message));
}

void count_warning(const char*) { warning_count.fetch_add(1, std::memory_order_relaxed); }

bool is_scalar_joint(const mjModel& model, int joint) {
  return model.jnt_type[joint] == mjJNT_HINGE || model.jnt_type[joint] == mjJNT_SLIDE;
}

// Collects what a model lacks, so that all of it is reported together.
class Lookup {
 public:
  explicit Lookup(const mjModel& model) : model_(model) {}

  int find(mjtObj type, const char* kind, const std::string& name) {
    const int id = mj_name2id(&model_, type, name.c_str());
    if (id < 0) missing(std::string(kind) + " '" + name + "'");
    return id;
  }
  std::vector<int> find_all(mjtObj type, const char* kind, const std::vector<std::string>& names) {
    std::vector<int> ids;
    for (const std::string& name : names) ids.push_back(find(type, kind, name));
    return ids;
  }
  void missing(const std::string& what) { missing_ += (missing_.empty() ? "" : ", ") + what; }
  const std::string& all_missing() const { return missing_; }

 private:
  const mjModel& model_;
  std::string missing_;
};

// The driven joints in actuator order, then the other hinges and slides.
std::vector<int> order_joints(const mjModel& model, Lookup& lookup) {
  std::vector<int> joints;
  if (model.nu == 0) lookup.missing("an actuator");
  for (int actuator = 0; actuator < model.nu; ++actuator) {
    const int joint = model.actuator_trnid[2 * actuator];
    const bool drives_one = model.actuator_trntype[actuator] == mjTRN_JOINT &&
                            is_scalar_joint(model, joint) &&
                            std::find(joints.begin(), joints.end(), joint) == joints.end();
    if (drives_one) {
      joints.push_back(joint);
    } else {
      const char* name = mj_id2name(&model, mjOBJ_ACTUATOR, actuator);
      lookup.missing("a hinge or slide joint of its own for actuator '" +
                     (name ? std::string(name) : std::to_string(actuator)) + "'");
    }
  }
  for (int joint = 0; joint < model.njnt; ++joint) {
    if (is_scalar_joint(model, joint) &&
        std::find(joints.begin(), joints.end(), joint) == joints.end()) {
      joints.push_back(joint);
    }
  }
  return joints;
}

void find_legged_parts(const mjModel& model, const SimSpec& spec, Lookup& lookup,
                       ModelIndex& index) {
  if (model.njnt > 0 && model.jnt_type[0] == mjJNT_FREE) {
    index.root_body = model.jnt_bodyid[0];
  } else {
    lookup.missing("a free joint at the root");
  }
  index.torso_body = lookup.find(mjOBJ_BODY, "body", spec.torso_body);
  index.pelvis_site = lookup.find(mjOBJ_SITE, "site", spec.pelvis_imu_site);
  index.torso_site = lookup.find(mjOBJ_SITE, "site", spec.torso_imu_site);
  index.foot_sites = lookup.find_all(mjOBJ_SITE, "site", spec.foot_sites);
  for (const int site : index.foot_sites) {
    index.foot_bodies.push_back(site < 0 ? -1 : model.site_bodyid[site]);
  }
}

void check_timestep(const mjModel& model, const SimSpec& spec) {
  const double tick_seconds = model.opt.timestep * spec.substeps;
  if (std::abs(tick_seconds - spec.tick_seconds) > 1e-9) {
    throw Failure(Code::kInvalid,
                  "model file '" + spec.model_path + "': timestep " +
                      std::to_string(model.opt.timestep) + " s x " + std::to_string(spec.substeps) +
                      " substeps is not the tick of " + std::to_string(spec.tick_seconds) + " s");
  }
}

}  // namespace

void set_mujoco_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    mju_user_error = throw_error;
    mju_user_warning = count_warning;
  });
}

uint64_t mujoco_warning_count() { return warning_count.load(std::memory_order_relaxed); }

void require_mujoco_version(int compiled, int loaded) {
  if (compiled == loaded) return;
  throw Failure(Code::kUnavailable, "MuJoCo version " + std::to_string(loaded) +
                                        " is loaded, but this library was compiled against " +
                                        std::to_string(compiled));
}

ModelPtr load_model(const std::string& model_path) {
  set_mujoco_handlers();
  require_mujoco_version(mjVERSION_HEADER, mj_version());
  confine_model_files(model_path);
  char error[1000] = "";
  ModelPtr model;
  try {
    model.reset(mj_loadXML(model_path.c_str(), nullptr, error, sizeof error));
  } catch (const std::exception& failed) {
    throw Failure(Code::kInvalid, "model file '" + model_path + "': " + failed.what());
  }
  if (!model) throw Failure(Code::kInvalid, "model file '" + model_path + "': " + one_line(error));
  return model;
}

ModelPtr copy_model(const mjModel& model) {
  ModelPtr copy(mj_copyModel(nullptr, &model));
  if (!copy) throw Failure(Code::kResource, "no memory for a copy of the model");
  return copy;
}

DataPtr make_data(const mjModel& model) {
  DataPtr data(mj_makeData(&model));
  if (!data) throw Failure(Code::kResource, "no memory for the simulation data of the model");
  return data;
}

ModelIndex index_model(const mjModel& model, const SimSpec& spec) {
  Lookup lookup(model);
  ModelIndex index;
  index.joints = order_joints(model, lookup);
  lookup.find_all(mjOBJ_JOINT, "joint", spec.joint_names);
  if (spec.is_legged) find_legged_parts(model, spec, lookup, index);
  index.bodies = lookup.find_all(mjOBJ_BODY, "body", spec.body_names);
  if (!lookup.all_missing().empty()) {
    throw Failure(Code::kInvalid,
                  "model file '" + spec.model_path + "' lacks " + lookup.all_missing());
  }
  check_timestep(model, spec);
  return index;
}

SimModel describe_model(const mjModel& model, const ModelIndex& index) {
  SimModel description;
  description.nq = model.nq;
  description.nv = model.nv;
  description.num_actions = model.nu;
  description.mujoco_version = mj_versionString();
  const int stand = mj_name2id(&model, mjOBJ_KEY, "stand");
  const mjtNum* pose = stand < 0 ? model.qpos0 : model.key_qpos + stand * model.nq;
  description.default_qpos.assign(pose, pose + model.nq);
  for (const int joint : index.joints) {
    const char* name = mj_id2name(&model, mjOBJ_JOINT, joint);
    const bool is_limited = model.jnt_limited[joint] != 0;
    const int qpos_address = model.jnt_qposadr[joint];
    description.joint_names.push_back(name ? name : "");
    description.joint_qpos_address.push_back(qpos_address);
    description.joint_dof_address.push_back(model.jnt_dofadr[joint]);
    description.default_joint_position.push_back(pose[qpos_address]);
    description.joint_lower.push_back(is_limited ? model.jnt_range[2 * joint] : -mjMAXVAL);
    description.joint_upper.push_back(is_limited ? model.jnt_range[2 * joint + 1] : mjMAXVAL);
  }
  return description;
}

bool is_servo(const mjModel& model, int actuator) {
  const mjtNum gain = model.actuator_gainprm[actuator * mjNGAIN];
  return model.actuator_gaintype[actuator] == mjGAIN_FIXED &&
         model.actuator_biastype[actuator] == mjBIAS_AFFINE && gain != 0 &&
         model.actuator_biasprm[actuator * mjNBIAS + 1] == -gain;
}

std::vector<double> default_controls(const mjModel& model, const SimModel& description) {
  std::vector<double> controls(static_cast<size_t>(model.nu), 0.0);
  for (int actuator = 0; actuator < model.nu; ++actuator) {
    if (is_servo(model, actuator)) {
      controls[static_cast<size_t>(actuator)] =
          model.actuator_gear[6 * actuator] *
          description.default_joint_position[static_cast<size_t>(actuator)];
    }
  }
  return controls;
}

}  // namespace millrace
