#include "run_plan.h"

#include <algorithm>

#include "worker_pool.h"

namespace millrace {

namespace {

const nlohmann::json& value_at(const nlohmann::json& config, const std::string& path) {
  const nlohmann::json* node = &config;
  size_t start = 0;
  for (;;) {
    const size_t dot = path.find('.', start);
    const std::string key = path.substr(start, dot - start);
    if (!node->is_object() || !node->contains(key)) {
      throw Failure(Code::kInvalid, path + ": is missing");
    }
    node = &(*node)[key];
    if (dot == std::string::npos) return *node;
    start = dot + 1;
  }
}

int64_t integer_at(const nlohmann::json& config, const std::string& path, int64_t least,
                   int64_t most) {
  const nlohmann::json& value = value_at(config, path);
  if (!value.is_number_integer()) throw Failure(Code::kInvalid, path + ": expected an integer");
  // Above 2^63 - 1 the library's conversion would wrap.
  const bool is_huge =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (is_huge || value.get<int64_t>() < least || value.get<int64_t>() > most) {
    throw Failure(Code::kInvalid, path + ": " + value.dump() + " is not between " +
                                      std::to_string(least) + " and " + std::to_string(most));
  }
  return value.get<int64_t>();
}

std::string choice_at(const nlohmann::json& config, const std::string& path,
                      const std::vector<std::string>& allowed) {
  const nlohmann::json& value = value_at(config, path);
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  std::string names;
  for (const std::string& name : allowed) names += (names.empty() ? "" : ", ") + name;
  throw Failure(Code::kInvalid, path + ": '" + text + "' is not one of " + names);
}

bool flag_at(const nlohmann::json& config, const std::string& path) {
  const nlohmann::json& value = value_at(config, path);
  if (!value.is_boolean()) throw Failure(Code::kInvalid, path + ": expected true or false");
  return value.get<bool>();
}

int threads_at(const nlohmann::json& config) {
  const nlohmann::json& value = value_at(config, "env.threads");
  if (value == "auto") return 0;
  return static_cast<int>(integer_at(config, "env.threads", 1, WorkerPool::kMostWorkers));
}

// What other algorithms have no use for.
void refuse_fastsac_settings(const LearnerSpec& learner) {
  if (learner.network != NetworkBody::kFastSac) {
    throw Failure(Code::kInvalid, "learner.network: plain is for algo fastsac alone; here auto");
  }
  if (learner.critic != CriticKind::kC51) {
    throw Failure(Code::kInvalid, "learner.critic: scalar is for algo fastsac alone; here c51");
  }
}

}  // namespace

uint64_t RunPlan::gathered_rows_per_tick() const {
  return static_cast<uint64_t>(learner.gathered_rows()) *
         static_cast<uint64_t>(learner.updates_per_tick);
}

uint64_t RunPlan::threshold_rows() const {
  return std::max<uint64_t>(
      static_cast<uint64_t>(learner.batch),
      static_cast<uint64_t>(learner.learning_starts) * static_cast<uint64_t>(num_envs));
}

ReplaySpec RunPlan::replay_spec(const RowLayout& layout, Place slots, Place batches) const {
  ReplaySpec spec;
  spec.layout = layout;
  spec.num_envs = static_cast<uint64_t>(num_envs);
  spec.capacity_rows = capacity_rows;
  spec.depth = ingress_depth;
  spec.sample_rows = gathered_rows_per_tick();
  spec.seed = seed;
  spec.threshold_rows = threshold_rows();
  spec.pipeline = pipeline;
  spec.batch_place = batches;
  spec.has_reader = learner.observation_normalizer;
  spec.slots = slots;
  return spec;
}

RunPlan parse_plan(const nlohmann::json& config) {
  RunPlan plan;
  const nlohmann::json& task = value_at(config, "task");
  if (!task.is_string()) throw Failure(Code::kInvalid, "task: expected a name");
  plan.task = task.get<std::string>();
  plan.seed = static_cast<uint64_t>(integer_at(config, "seed", 0, INT64_MAX));
  plan.device = choice_at(config, "device", {"auto", "cpu", "cuda", "metal"});
  plan.graph = choice_at(config, "graph", {"off", "auto", "on"});
  plan.precision = choice_at(config, "precision", {"auto", "fp32", "tf32", "bf16"});
  const std::string algorithm = choice_at(config, "algo", {"fastsac", "flashsac"});
  plan.num_envs = static_cast<int>(integer_at(config, "env.num_envs", 1, 1 << 20));
  plan.threads = threads_at(config);
  plan.synchronous = flag_at(config, "collector.sync");
  plan.max_lead_ticks =
      static_cast<uint64_t>(integer_at(config, "collector.max_lead_ticks", 1, 1 << 20));
  plan.update = choice_at(config, "collector.update", {"auto", "host", "device"});
  plan.pipeline = pipeline(choice_at(
      config, "replay.pipeline",
      {to_string(Pipeline::kDeviceResident), to_string(Pipeline::kCpuPinnedDoubleBuffer)}));
  plan.capacity_rows =
      static_cast<uint64_t>(integer_at(config, "replay.capacity_rows", 1, int64_t{1} << 40));
  // 0 and below are preflight's to refuse, with the other findings.
  plan.ingress_depth = static_cast<int>(integer_at(config, "replay.ingress_depth", -1024, 1024));
  plan.learner = parse_learner(value_at(config, "learner"));
  plan.learner.algorithm = algorithm_named(algorithm);
  if (plan.learner.algorithm != Algorithm::kFastSac) refuse_fastsac_settings(plan.learner);
  return plan;
}

}  // namespace millrace
