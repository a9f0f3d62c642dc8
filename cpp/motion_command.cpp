#include "motion_command.h"

#include <algorithm>
#include <cmath>

#include "motion_clip.h"
#include "status.h"
#include "task.h"

namespace millrace {

namespace {

using nlohmann::json;

std::string text_of(const json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end() || found->is_null()) return "";
  return found->get<std::string>();
}

// Joints that leave their limits, the worst first: a robot could not follow there.
json joints_outside(const MotionClip& clip, const SimModel& model) {
  json list = json::array();
  for (size_t j = 0; j < model.joint_names.size(); ++j) {
    double worst = 0;
    int frames = 0;
    for (size_t at = j; at < clip.joint_position.size(); at += model.joint_names.size()) {
      const double q = clip.joint_position[at];
      const double outside = std::max(model.joint_lower[j] - q, q - model.joint_upper[j]);
      worst = std::max(worst, outside);
      frames += outside > 0 ? 1 : 0;
    }
    if (frames == 0) continue;
    list.push_back({{"joint", model.joint_names[j]}, {"frames", frames}, {"worst_rad", worst}});
  }
  std::sort(list.begin(), list.end(), [](const json& a, const json& b) {
    return a.at("worst_rad").get<double>() > b.at("worst_rad").get<double>();
  });
  return list;
}

json fastest_joint(const MotionClip& clip, const SimModel& model) {
  const auto slower = [](float a, float b) { return std::abs(a) < std::abs(b); };
  const auto& speeds = clip.joint_velocity;
  const auto fastest = std::max_element(speeds.begin(), speeds.end(), slower);
  const auto joint = static_cast<size_t>(fastest - speeds.begin()) % model.joint_names.size();
  return {{"joint", model.joint_names[joint]}, {"rad_per_s", std::abs(*fastest)}};
}

json root_range(const MotionClip& clip) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  const auto stride = 3 * static_cast<size_t>(clip.bodies);
  for (size_t at = 2; at < clip.body_position.size(); at += stride) {
    low = std::min<double>(low, clip.body_position[at]);
    high = std::max<double>(high, clip.body_position[at]);
  }
  return {{"lowest_m", low}, {"highest_m", high}};
}

double lowest_body(const MotionClip& clip) {
  double low = HUGE_VAL;
  for (size_t at = 2; at < clip.body_position.size(); at += 3) {
    low = std::min<double>(low, clip.body_position[at]);
  }
  return low;
}

json report_on(const MotionClip& clip, const SimModel& model) {
  json report = clip.describe();
  report["root_height"] = root_range(clip);
  report["lowest_body_m"] = lowest_body(clip);
  report["fastest_joint"] = fastest_joint(clip, model);
  report["joints_outside_limits"] = joints_outside(clip, model);
  return report;
}

}  // namespace

json run_motion(const json& request) {
  const std::string kind = text_of(request, "kind");
  const std::string file = text_of(request, "file");
  const std::string out = text_of(request, "out");
  if (kind != "info" && kind != "convert" && kind != "make") {
    throw Failure(Code::kInvalid, "motion: '" + kind + "' is not one of info, convert, make");
  }
  if (kind == "convert" && file.empty()) {
    throw Failure(Code::kInvalid, "motion convert: a file to convert is needed");
  }
  if (kind != "info" && out.size() <= 4) {
    throw Failure(Code::kInvalid, "motion " + kind + ": a .npz file to write is needed");
  }
  const json config = {{"task", "g1_motion_tracking"},
                       {"env", {{"model_file", request.value("model_file", json())}}}};
  const SimSpec spec = sim_spec_of(config, text_of(request, "resources_dir"));
  MotionRobot robot(spec);
  const MotionClip clip = load_motion(kind == "make" ? "" : file, robot, 1 / spec.tick_seconds);
  json report = report_on(clip, robot.model());
  if (kind == "info") return report;
  if (out.compare(out.size() - 4, 4, ".npz") != 0) {
    throw Failure(Code::kInvalid, "motion " + kind + ": '" + out + "' does not end in .npz");
  }
  if (report.at("clips") != 1) {
    throw Failure(Code::kInvalid, "motion convert: '" + file + "' holds several recordings");
  }
  write_motion(out, clip);
  report["written"] = out;
  return report;
}

}  // namespace millrace
