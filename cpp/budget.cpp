#include "budget.h"

#if defined(__APPLE__)
#include <mach/mach.h>
#include <mach/mach_host.h>
#endif

#include <algorithm>
#include <fstream>
#include <sstream>

#include "status.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxDepth = 16;

uint64_t product(uint64_t a, uint64_t b) {
  uint64_t result;
  return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

uint64_t sum(uint64_t a, uint64_t b) {
  uint64_t result;
  return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

// "10 x 512 = 5,120"
std::string times(uint64_t a, uint64_t b) {
  return grouped(a) + " x " + grouped(b) + " = " + grouped(product(a, b));
}

// A capacity in the words of its reader: in ticks of rows where it is a whole number of them.
std::string capacity_text(const ReplayPlan& plan) {
  if (plan.num_envs == 0 || plan.capacity_rows % plan.num_envs != 0) {
    return grouped(plan.capacity_rows);
  }
  return times(plan.capacity_rows / plan.num_envs, plan.num_envs);
}

std::string read_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// The number that follows `key` on its own line; 0 when it is not there.
uint64_t read_field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return 0;
}

struct GroupFiles {
  std::string mount, limit, usage, cache;
};

const GroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                              "memory.usage_in_bytes", "total_inactive_file"};
const GroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// What one group leaves; UINT64_MAX without a limit.
uint64_t left_in_group(const std::string& folder, const GroupFiles& files) {
  const std::string limit_text = read_word(folder + "/" + files.limit);
  std::istringstream number(limit_text);
  uint64_t limit = 0;
  if (!(number >> limit)) return UINT64_MAX;  // no such file, or "max"
  std::istringstream usage_text(read_word(folder + "/" + files.usage));
  uint64_t usage = 0;
  usage_text >> usage;
  const uint64_t cache = read_field(folder + "/memory.stat", files.cache);
  usage -= std::min(usage, cache);
  return limit - std::min(limit, usage);
}

// The least that any group from this one up to the mount leaves.
uint64_t left_in_path(const std::string& root, std::string path, const GroupFiles& files) {
  uint64_t least = UINT64_MAX;
  for (;;) {
    least = std::min(least, left_in_group(root + files.mount + path, files));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path.empty()) return least;
    path.erase(slash);
  }
}

uint64_t left_in_control_groups(const std::string& root) {
  uint64_t least = UINT64_MAX;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least, left_in_path(root, path, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, left_in_path(root, path, kVersion1));
    }
  }
  return least;
}

Finding refused(const char* id, const char* subject, std::string reason, std::string hint) {
  return {id, Readiness::kRefused, subject, std::move(reason), std::move(hint)};
}

std::string budget_reason(const Budget& budget, const char* memory) {
  std::string text;
  for (const BudgetLine& line : budget.lines) {
    text += (text.empty() ? "" : " + ") + line.name + " " + grouped(line.bytes) + " B (" +
            line.formula + ")";
  }
  return text + " = " + grouped(budget.total_bytes()) + " B > " + grouped(budget.limit_bytes()) +
         " B = 0.8 x " + grouped(budget.free_bytes) + " B of available " + memory + " memory";
}

void check_sizes(const ReplayPlan& plan, std::vector<Finding>* findings) {
  if (plan.ingress_depth < 1 || plan.ingress_depth > kMaxDepth) {
    findings->push_back(refused(
        "INGRESS_DEPTH", "replay.ingress_depth",
        "ingress depth " + grouped(plan.ingress_depth) + " is outside 1.." + grouped(kMaxDepth),
        "set replay.ingress_depth to 2"));
  }
  const uint64_t threshold = plan.threshold_rows();
  if (threshold > plan.capacity_rows) {
    const uint64_t warm_up = product(plan.learning_starts, plan.num_envs);
    const bool is_warm_up = warm_up >= plan.batch;
    const std::string needed =
        is_warm_up ? times(plan.learning_starts, plan.num_envs) : "batch " + grouped(plan.batch);
    findings->push_back(
        refused("REPLAY_CAN_NEVER_START", "replay.capacity_rows",
                "learning starts at " + needed + " > " + capacity_text(plan) + " rows of capacity",
                "raise replay.capacity_rows to " + grouped(threshold) + " or more, or lower " +
                    (is_warm_up ? "learner.learning_starts" : "learner.batch")));
  }
  const uint64_t in_flight = product(sum(plan.ingress_depth, 1), plan.num_envs);
  if (plan.capacity_rows < in_flight) {
    findings->push_back(refused(
        "REPLAY_CAPACITY_BELOW_IN_FLIGHT", "replay.capacity_rows",
        "(" + grouped(plan.ingress_depth) + " + 1) x " + grouped(plan.num_envs) + " = " +
            grouped(in_flight) + " rows in flight > " + capacity_text(plan) + " rows of capacity",
        "raise replay.capacity_rows to " + grouped(in_flight) +
            " or more, or lower replay.ingress_depth"));
  }
  if (plan.symmetry && plan.batch % 2 != 0) {
    findings->push_back(
        refused("BATCH_ODD_WITH_SYMMETRY", "learner.batch",
                "symmetry mirrors half of the batch, but " + grouped(plan.batch) + " is odd",
                "set learner.batch to " + grouped(plan.batch + 1)));
  }
}

}  // namespace

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

uint64_t Budget::total_bytes() const {
  uint64_t total = 0;
  for (const BudgetLine& line : lines) total = sum(total, line.bytes);
  return total;
}

void require_fits(const Budget& budget, const char* memory) {
  if (!budget.fits()) throw Failure(Code::kResource, budget_reason(budget, memory));
}

uint64_t Budget::limit_bytes() const { return free_bytes / 5 * 4; }

nlohmann::json to_json(const Budget& budget) {
  nlohmann::json items = nlohmann::json::array();
  for (const BudgetLine& line : budget.lines) {
    items.push_back({{"name", line.name}, {"bytes", line.bytes}, {"formula", line.formula}});
  }
  return {{"items", items},
          {"total_bytes", budget.total_bytes()},
          {"free_bytes", budget.free_bytes},
          {"limit_bytes", budget.limit_bytes()}};
}

#if defined(__APPLE__)

// What the system can give without writing anything out.
HostMemory available_host_memory(const std::string&) {
  vm_statistics64_data_t pages = {};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const host_t host = mach_host_self();
  if (host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) !=
      KERN_SUCCESS) {
    throw Failure(Code::kResource, "host_statistics64 does not say how much memory is free");
  }
  const uint64_t available = uint64_t{pages.free_count} + pages.inactive_count;
  return {product(available, vm_kernel_page_size), "host_statistics64"};
}

#else

HostMemory available_host_memory(const std::string& root) {
  const uint64_t machine = product(read_field(root + "/proc/meminfo", "MemAvailable:"), 1024);
  const uint64_t group = left_in_control_groups(root);
  if (group < machine) return {group, "cgroup limit"};
  return {machine, "MemAvailable"};
}

#endif

uint64_t ReplayPlan::threshold_rows() const {
  return std::max(batch, product(learning_starts, num_envs));
}

uint64_t ReplayPlan::sample_rows() const {
  return product(symmetry ? batch / 2 : batch, updates_per_tick);
}

namespace {

BudgetLine ring_line(const ReplayPlan& plan) {
  const uint64_t stride_bytes = plan.layout.row_stride_bytes();
  return {"ring", product(plan.capacity_rows, stride_bytes),
          grouped(plan.capacity_rows) + " rows x " + grouped(stride_bytes) + " B"};
}

BudgetLine batches_line(const ReplayPlan& plan, const char* name) {
  const uint64_t stride_bytes = plan.layout.row_stride_bytes();
  return {name, product(2, product(plan.sample_rows(), stride_bytes)),
          "2 x " + grouped(plan.sample_rows()) + " rows x " + grouped(stride_bytes) + " B"};
}

BudgetLine learner_line(const ReplayPlan& plan) {
  return {"learner", plan.learner_bytes, "networks, optimizers and activations"};
}

BudgetLine policy_line(const ReplayPlan& plan) {
  return {"policy", plan.policy_bytes,
          "snapshots and activations for " + grouped(plan.num_envs) + " robots"};
}

bool is_ring_on_device(const ReplayPlan& plan) {
  return plan.pipeline == Pipeline::kDeviceResident;
}

}  // namespace

Budget replay_host_budget(const ReplayPlan& plan, uint64_t free_bytes) {
  const uint64_t rows = product(plan.ingress_depth, plan.num_envs);
  Budget budget{{{"ingress slots", product(rows, plan.layout.row_bytes()),
                  grouped(plan.ingress_depth) + " x " + grouped(plan.num_envs) + " rows x " +
                      grouped(plan.layout.row_bytes()) + " B"}},
                free_bytes};
  if (plan.is_device_host_memory) return budget;
  if (!is_ring_on_device(plan)) budget.lines.push_back(ring_line(plan));
  if (!is_ring_on_device(plan) || !plan.is_learner_on_device) {
    budget.lines.push_back(batches_line(plan, "pinned batches"));
  }
  if (!plan.is_learner_on_device) {
    budget.lines.push_back(learner_line(plan));
    budget.lines.push_back(policy_line(plan));
  }
  return budget;
}

Budget replay_device_budget(const ReplayPlan& plan, uint64_t free_bytes) {
  Budget budget{{}, free_bytes};
  if (is_ring_on_device(plan) || plan.is_device_host_memory) {
    budget.lines.push_back(ring_line(plan));
  }
  if (is_ring_on_device(plan) || plan.is_device_host_memory || plan.is_learner_on_device) {
    budget.lines.push_back(batches_line(plan, "batches"));
  }
  if (plan.is_learner_on_device || plan.is_device_host_memory) {
    budget.lines.push_back(learner_line(plan));
    budget.lines.push_back(policy_line(plan));
  }
  return budget;
}

std::vector<Finding> check_replay(const ReplayPlan& plan, uint64_t host_free_bytes,
                                  uint64_t device_free_bytes) {
  std::vector<Finding> findings;
  check_sizes(plan, &findings);
  const Budget host = replay_host_budget(plan, host_free_bytes);
  if (!host.fits()) {
    findings.push_back(refused("BUDGET_HOST", "replay.ingress_depth", budget_reason(host, "host"),
                               "lower env.num_envs or replay.ingress_depth"));
  }
  Budget device = replay_device_budget(plan, device_free_bytes);
  if (plan.is_device_host_memory) {  // the slots come out of the same memory
    device.lines.insert(device.lines.end(), host.lines.begin(), host.lines.end());
  }
  if (!device.fits()) {
    findings.push_back(
        refused("BUDGET_DEVICE", "replay.capacity_rows",
                budget_reason(device, plan.is_device_host_memory ? "host" : "device"),
                "lower replay.capacity_rows or learner.batch"));
  }
  return findings;
}

std::vector<Finding> check_replay(const ReplayPlan& plan) {
  const uint64_t free_bytes = available_host_memory().bytes;
  return check_replay(plan, free_bytes, free_bytes);
}

}  // namespace millrace
