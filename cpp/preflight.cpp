#include "preflight.h"

#include <optional>

#include "backend.h"
#include "budget.h"
#include "learner_fastsac.h"
#include "model_loader.h"
#include "run_plan.h"
#include "sim_parts.h"

namespace millrace {

namespace {

BackendInfo backend_named(const std::string& name) {
  for (const BackendInfo& info : backends()) {
    if (info.name == name) return info;
  }
  throw Failure(Code::kBug, "no backend is called " + name);
}

// Why a run cannot use a backend; empty if it can.
std::string why_not(const BackendInfo& info) {
  if (info.name == "cpu") return "";
  return info.available ? "training on the device is not built yet; bench replay runs there"
                        : info.reason;
}

// `auto` resolves once, here, and says what it found.
nlohmann::json resolve_device(const RunPlan& plan, std::vector<Finding>& findings) {
  const std::string wanted = plan.device == "auto" ? "cuda" : plan.device;
  const std::string reason = why_not(backend_named(wanted));
  if (plan.device == "auto") {
    return {{"requested", "auto"},
            {"effective", "cpu"},
            {"reason", "cuda: " + reason + "; metal: " + why_not(backend_named("metal"))}};
  }
  if (!reason.empty()) {
    findings.push_back({"DEVICE_UNAVAILABLE", Readiness::kRefused, "device", wanted + ": " + reason,
                        "device: auto takes what is there; doctor lists it"});
  }
  return {{"requested", plan.device},
          {"effective", reason.empty() ? wanted : "none"},
          {"reason", reason.empty() ? "requested" : reason}};
}

void check_graph_and_precision(const RunPlan& plan, std::vector<Finding>& findings) {
  if (plan.graph == "on") {
    findings.push_back({"GRAPH_UNAVAILABLE", Readiness::kRefused, "graph",
                        "the cpu backend launches programs eagerly; it has no graphs",
                        "graph: auto or off"});
  }
  if (plan.precision == "tf32" || plan.precision == "bf16") {
    findings.push_back({"PRECISION_UNAVAILABLE", Readiness::kRefused, "precision",
                        "the cpu backend computes in fp32, not " + plan.precision,
                        "precision: auto or fp32"});
  }
}

ReplayPlan replay_plan(const RunPlan& plan, const RowLayout& layout) {
  ReplayPlan replay;
  replay.layout = layout;
  replay.num_envs = static_cast<uint64_t>(plan.num_envs);
  replay.capacity_rows = plan.capacity_rows;
  replay.ingress_depth = plan.ingress_depth < 0 ? 0 : static_cast<uint64_t>(plan.ingress_depth);
  replay.batch = static_cast<uint64_t>(plan.learner.batch);
  replay.updates_per_tick = static_cast<uint64_t>(plan.learner.updates_per_tick);
  replay.learning_starts = static_cast<uint64_t>(plan.learner.learning_starts);
  replay.symmetry = plan.learner.symmetry;
  replay.learner_bytes = LearnerFastSac::bytes_needed(plan.learner, layout);
  replay.is_device_host_memory = true;
  return replay;
}

// The model, its names and its version; each failure is a finding, not an exception.
std::optional<SimModel> check_model(const SimSpec& spec, std::vector<Finding>& findings) {
  Finding unfit = {"MODEL_UNREADABLE", Readiness::kRefused, "env.model_file", "",
                   "env.model_file: null takes the built-in robot"};
  try {
    const ModelPtr model = load_model(spec.model_path);
    unfit.id = "MODEL_MISSING_NAME";
    unfit.hint = "tasks prints what the task needs";
    return describe_model(*model, index_model(*model, spec));
  } catch (const Failure& failure) {
    if (failure.code() == Code::kUnavailable) {
      findings.push_back({"MUJOCO_VERSION", Readiness::kRefused, "physics", failure.what(),
                          "install the MuJoCo that this build was compiled against"});
      return std::nullopt;
    }
    if (failure.code() != Code::kInvalid) throw;
    unfit.reason = failure.what();
    findings.push_back(std::move(unfit));
    return std::nullopt;
  }
}

}  // namespace

nlohmann::json run_preflight(const nlohmann::json& config) {
  const RunPlan plan = parse_plan(config);
  std::vector<Finding> findings;
  nlohmann::json report;
  report["device"] = resolve_device(plan, findings);
  check_graph_and_precision(plan, findings);
  const std::optional<SimModel> model =
      check_model(sim_spec_of(config, resources_dir_of(config)), findings);
  if (model) {
    const Task task = make_task(config, *model);
    if (plan.learner.symmetry && !task.symmetry.available) {
      findings.push_back({"SYMMETRY_UNAVAILABLE", Readiness::kRefused, "learner.symmetry",
                          plan.task + " has no mirror image", "learner.symmetry: false"});
    }
    const ReplayPlan replay = replay_plan(plan, task.layout);
    const uint64_t free_bytes = available_host_memory().bytes;
    for (Finding& finding : check_replay(replay, free_bytes, free_bytes)) {
      findings.push_back(std::move(finding));
    }
    report["budget"] = {{"host", to_json(replay_host_budget(replay, free_bytes))},
                        {"device", to_json(replay_device_budget(replay, free_bytes))},
                        {"memory_source", available_host_memory().source}};
    report["task"] = {{"name", plan.task},
                      {"observation_dim", task.layout.observation_dim},
                      {"critic_dim", task.layout.critic_dim},
                      {"action_dim", task.layout.action_dim},
                      {"row_width", task.layout.width()}};
  }
  report["findings"] = nlohmann::json::array();
  for (const Finding& finding : findings) report["findings"].push_back(to_json(finding));
  return report;
}

}  // namespace millrace
