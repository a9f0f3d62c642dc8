#include "preflight.h"

#include <algorithm>
#include <optional>

#include "backend.h"
#include "budget.h"
#include "device_choice.h"
#include "device_policy.h"
#include "graph_preflight.h"
#include "learner_facts.h"
#include "learner_place.h"
#include "learner_sac.h"
#include "model_loader.h"
#include "run_plan.h"
#include "sim_parts.h"
#include "update_facts.h"
#include "update_place.h"

namespace millrace {

namespace {

DeviceChoice resolve_device(const RunPlan& plan, std::vector<Finding>& findings) {
  DeviceChoice choice = choose_device(plan.device);
  if (choice.effective == "none") {
    findings.push_back({"DEVICE_UNAVAILABLE", Readiness::kRefused, "device",
                        plan.device + ": " + choice.reason,
                        "device: auto takes what is there; doctor lists it"});
  }
  return choice;
}

// Free memory where the ring goes; of the host if the device cannot be had.
uint64_t device_free_bytes(const DeviceChoice& choice, uint64_t host_free_bytes) {
  if (choice.effective == "none" || choice.effective == "cpu") return host_free_bytes;
  return Backend(backend_api(choice.effective)).memory_free_bytes();
}

// Where the learner runs; a place or precision that was named and cannot be had is a refusal.
LearnerPlace check_learner_place(const RunPlan& plan, DeviceChoice& choice,
                                 std::vector<Finding>& findings) {
  const bool is_missing = choice.effective == "none";
  LearnerPlace place =
      choose_learner_place(plan, is_missing ? backend_cpu() : backend_api(choice.effective));
  if (!place.is_on_device && !is_missing) choice.learner = "cpu";
  if (place.obstacle.empty()) return place;
  const bool is_precision = place.subject == "precision";
  findings.push_back({is_precision ? "PRECISION_UNAVAILABLE" : "LEARNER_UNAVAILABLE",
                      Readiness::kRefused, place.subject, place.obstacle,
                      is_precision ? "precision: auto or fp32" : "learner.place: auto"});
  return place;
}

GraphBackend graph_backend(const DeviceChoice& choice) {
  if (choice.effective == "none") return {choice.requested, false, choice.reason};
  Backend backend(backend_api(choice.effective));
  return graph_backend_of(backend);
}

nlohmann::json to_json(const std::vector<Finding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) list.push_back(to_json(finding));
  return list;
}

// A place that was named and cannot be had is a refusal.
void check_update_place(const RunPlan& plan, const DeviceChoice& choice,
                        std::vector<Finding>& findings) {
  if (plan.update != "device" || choice.effective == "none") return;
  const UpdatePlace place = choose_update_place(plan, backend_api(choice.effective));
  if (place.is_on_device) return;
  findings.push_back({"UPDATE_UNAVAILABLE", Readiness::kRefused, "collector.update",
                      "device was requested; " + place.reason, "collector.update: auto"});
}

// What the facts of the update step, the same on every device, cannot say.
void keep_on_host_if_one_queue(const RunPlan& plan, const DeviceChoice& choice,
                               ProgramFacts& program) {
  if (choice.effective == "none" || backend_api(choice.effective).has_one_submit_thread == 0)
    return;
  const UpdatePlace place = choose_update_place(plan, backend_api(choice.effective));
  program.ops.front().hazards.push_back(
      {Hazard::kOnHost, place.reason, place.subject, "graph: auto"});
}

// Of the update step; without a robot model there is no task, and only the backend can be judged.
void report_graphs(const RunPlan& plan, const DeviceChoice& choice, const Task* task,
                   nlohmann::json& report, std::vector<Finding>& findings) {
  const GraphBackend backend = graph_backend(choice);
  const GraphPolicy policy = graph_policy(plan.graph);
  nlohmann::json update = {{"requested", plan.graph}};
  std::vector<Finding> found;
  if (task != nullptr) {
    ProgramFacts program = update_facts(*task, plan, backend.name);
    keep_on_host_if_one_queue(plan, choice, program);
    found = check_graph(program, backend, policy);
    report["terms"] = term_table_of(program, found);
    update.update(to_json(program));
  } else {
    found = check_graph_backend(backend, policy);
  }
  update["findings"] = to_json(found);
  report["graphs"] = {{"update", std::move(update)}};
  // Why a device that is not here has no graphs, the finding that it is not here has said.
  const size_t said =
      choice.effective == "none" ? check_graph_backend(backend, policy).size() : size_t{0};
  findings.insert(findings.end(), found.begin() + static_cast<std::ptrdiff_t>(said), found.end());
}

// Of the learner's programs, wherever they run; what speaks against graphs of them counts on a
// device alone, and what speaks against every graph there has been said of the update step.
void report_learner_graphs(const RunPlan& plan, const DeviceChoice& choice,
                           const LearnerPlace& place, const RowLayout& layout,
                           nlohmann::json& report, std::vector<Finding>& findings) {
  const GraphBackend backend = graph_backend(choice);
  const GraphPolicy policy = graph_policy(plan.graph);
  const size_t said = check_graph_backend(backend, policy).size();
  for (const LearnerProgramFacts& each : learner_facts(plan.learner, layout, backend.name)) {
    std::vector<Finding> found;
    if (place.is_on_device) found = check_graph(each.program, backend, policy);
    nlohmann::json facts = to_json(each.program);
    facts["requested"] = plan.graph;
    facts["place"] = place.is_on_device ? "device" : "host";
    facts["findings"] = to_json(found);
    report["graphs"][each.graph] = std::move(facts);
    const size_t own = std::min(said, found.size());
    findings.insert(findings.end(), found.begin() + static_cast<std::ptrdiff_t>(own), found.end());
  }
}

ReplayPlan replay_plan(const RunPlan& plan, const DeviceChoice& choice, const LearnerPlace& place,
                       const RowLayout& layout) {
  ReplayPlan replay;
  replay.layout = layout;
  replay.num_envs = static_cast<uint64_t>(plan.num_envs);
  replay.capacity_rows = plan.capacity_rows;
  replay.ingress_depth = plan.ingress_depth < 0 ? 0 : static_cast<uint64_t>(plan.ingress_depth);
  replay.batch = static_cast<uint64_t>(plan.learner.batch);
  replay.updates_per_tick = static_cast<uint64_t>(plan.learner.updates_per_tick);
  replay.learning_starts = static_cast<uint64_t>(plan.learner.learning_starts);
  replay.symmetry = plan.learner.symmetry;
  replay.learner_bytes =
      place.is_on_device ? LearnerSac::device_bytes_needed(
                               plan.learner, layout, backend_api(choice.effective), place.precision)
                         : LearnerSac::bytes_needed(plan.learner, layout);
  if (place.is_on_device && graph_policy(plan.graph) == GraphPolicy::kAuto) {
    replay.learner_bytes += LearnerSac::profile_bytes_needed(plan.learner, layout, place.precision);
  }
  const PolicyShape shape = policy_shape_of(plan.learner, layout);
  replay.policy_bytes =
      place.is_policy_on_device
          ? DevicePolicy::bytes_needed(backend_api(choice.effective), shape, plan.num_envs)
          : HostPolicy::bytes_needed(shape, plan.num_envs);
  replay.is_device_host_memory = choice.effective == "cpu" || choice.effective == "none";
  replay.is_learner_on_device = choice.learner == choice.effective;
  replay.pipeline = plan.pipeline;
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
      findings.push_back(other_mujoco(failure));
      return std::nullopt;
    }
    if (failure.code() != Code::kInvalid) throw;
    unfit.reason = failure.what();
    findings.push_back(std::move(unfit));
    return std::nullopt;
  }
}

}  // namespace

Finding other_mujoco(const Failure& failure) {
  return {"MUJOCO_VERSION", Readiness::kRefused, "physics", failure.what(),
          "install the MuJoCo that this build was compiled against"};
}

std::string graph_obstacle(const Task& task, const RunPlan& plan, Backend& backend) {
  return first_reason(check_graph(update_facts(task, plan, backend.name()),
                                  graph_backend_of(backend), graph_policy(plan.graph)));
}

nlohmann::json run_preflight(const nlohmann::json& config) {
  const RunPlan plan = parse_plan(config);
  std::vector<Finding> findings;
  nlohmann::json report;
  DeviceChoice device = resolve_device(plan, findings);
  const LearnerPlace learner = check_learner_place(plan, device, findings);
  report["device"] = to_json(device);
  check_update_place(plan, device, findings);
  const std::optional<SimModel> model =
      check_model(sim_spec_of(config, resources_dir_of(config)), findings);
  if (!model) {
    report_graphs(plan, device, nullptr, report, findings);
  } else {
    const Task task = make_task(config, *model);
    report_graphs(plan, device, &task, report, findings);
    report_learner_graphs(plan, device, learner, task.layout, report, findings);
    if (plan.learner.symmetry && !task.symmetry.available) {
      findings.push_back({"SYMMETRY_UNAVAILABLE", Readiness::kRefused, "learner.symmetry",
                          plan.task + " has no mirror image", "learner.symmetry: false"});
    }
    const ReplayPlan replay = replay_plan(plan, device, learner, task.layout);
    const uint64_t host_free = available_host_memory().bytes;
    const uint64_t device_free = device_free_bytes(device, host_free);
    for (Finding& finding : check_replay(replay, host_free, device_free)) {
      findings.push_back(std::move(finding));
    }
    report["budget"] = {{"host", to_json(replay_host_budget(replay, host_free))},
                        {"device", to_json(replay_device_budget(replay, device_free))},
                        {"memory_source", available_host_memory().source}};
    report["task"] = {{"name", plan.task},
                      {"observation_dim", task.layout.observation_dim},
                      {"critic_dim", task.layout.critic_dim},
                      {"action_dim", task.layout.action_dim},
                      {"row_width", task.layout.width()}};
  }
  report["findings"] = to_json(findings);
  return report;
}

}  // namespace millrace
