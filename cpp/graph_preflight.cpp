#include "graph_preflight.h"

#include <algorithm>
#include <set>

#include "status.h"

namespace millrace {

namespace {

// The first driver interface with memory statistics of graphs, which the allocator proof asks for.
constexpr int kLeastDriverVersion = 11040;

struct HazardText {
  const char* id;
  const char* reason;  // before what it is
  const char* hint;
};

HazardText text_of(Hazard hazard) {
  switch (hazard) {
    case Hazard::kHostSync:
      return {"HOST_SYNC", "makes the host wait: ", "wait after the program, by its receipt"};
    case Hazard::kHostRead:
      return {"HOST_READ",
              "is read by the host: ", "keep the value in a carrier and read it after the program"};
    case Hazard::kAllocation:
      return {"ALLOC_IN_WINDOW", "allocates: ", "allocate when the run is opened"};
    case Hazard::kPageableHost:
      return {"UNPINNED_HOST",
              "copies pageable host memory: ", "stage it in pinned memory that the program owns"};
    case Hazard::kColdLibrary:
      return {"LIB_NOT_WARM",
              "uses a library that is not warm: ", "run the program twice before it is captured"};
    case Hazard::kUnloadedModule:
      return {"MODULE_NOT_LOADED", "launches a kernel that is not loaded: ",
              "load all kernels when the device is opened"};
    case Hazard::kCollective:
      return {"COLLECTIVE", "waits for other devices: ", "keep collectives outside of programs"};
    case Hazard::kManyBindings:
      return {"TOO_MANY_BINDINGS", "binds more than the 31 buffers of a command: ",
              "pass addresses in one argument struct"};
    case Hazard::kFarOffset:
      return {"OFFSET_TOO_FAR",
              "binds beyond 4 GiB of a buffer: ", "pass an address, which has 64 bits"};
    case Hazard::kIndirectGrid:
      return {"INDIRECT_DISPATCH", "takes its grid from the device's memory: ",
              "launch the largest grid and let threads return"};
    case Hazard::kEdited:
      return {"EDIT_IN_FLIGHT",
              "edits commands that may be in flight: ", "read what varies from the argument block"};
    case Hazard::kOnHost:
      return {"UPDATE_ON_HOST", "runs on the host: ", "let it run on the device"};
  }
  throw Failure(Code::kBug, "a hazard without a text");
}

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// Collects what blocks one program; says how bad that is.
class Checker {
 public:
  Checker(const GraphBackend& backend, GraphPolicy policy) : backend_(backend), policy_(policy) {}

  void check_backend();
  void check_program(const ProgramFacts& program, int least_ops);
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  void add(const char* id, std::string subject, std::string reason, std::string hint);
  void check_op(const ProgramFacts& program, const OpFacts& op);
  void check_carrier(const ProgramFacts& program, const OpFacts& op, const std::string& name);
  void check_term(const TermFacts& term);

  const GraphBackend& backend_;
  const GraphPolicy policy_;
  std::vector<Finding> findings_;
  std::set<std::string> seen_carriers_;
};

void Checker::add(const char* id, std::string subject, std::string reason, std::string hint) {
  const Readiness verdict =
      policy_ == GraphPolicy::kOn ? Readiness::kRefused : Readiness::kEagerOnly;
  findings_.push_back({id, verdict, std::move(subject), std::move(reason), std::move(hint)});
}

void Checker::check_backend() {
  if (!backend_.has_graphs) {
    add("BACKEND_HAS_NO_GRAPHS", "device", backend_.name + ": " + backend_.without_graphs,
        "graph: auto or off; or a device that has graphs");
    return;
  }
  // A driver serves runtimes of its own major version and older ones.
  const DeviceFacts& device = backend_.device;
  const int least = std::max(kLeastDriverVersion, device.runtime_version / 1000 * 1000);
  if (device.driver_version < least) {
    add("DRIVER_TOO_OLD", "device",
        backend_.name + ": the driver is for version " + version(device.driver_version) +
            ", graphs need " + version(least),
        "a newer driver; or graph: off");
  }
  if (device.is_profiled) {
    add("PROFILER_ACTIVE", "device",
        backend_.name + ": a profiler is loaded into this process, which can spoil replays",
        "start without the profiler; or graph: off while profiling");
  }
}

void Checker::check_program(const ProgramFacts& program, int least_ops) {
  if (!program.active_recorder.empty()) {
    add("FOREIGN_CAPTURE_ACTIVE", program.name,
        "program " + program.active_recorder + " is being captured",
        "capture one program at a time");
  }
  if (static_cast<int>(program.ops.size()) < least_ops) {
    add("TOO_SMALL", program.name,
        std::to_string(program.ops.size()) + " ops, at least " + std::to_string(least_ops) +
            " are worth a graph",
        "graph: off");
  }
  std::set<int> contexts;
  for (const OpFacts& op : program.ops) contexts.insert(op.context);
  if (contexts.size() > 1) {
    add("MULTI_CONTEXT", program.name,
        "its ops run in " + std::to_string(contexts.size()) + " contexts of the device",
        "open the device once and record all ops there");
  }
  for (const OpFacts& op : program.ops) check_op(program, op);
  for (const TermFacts& term : program.terms) check_term(term);
}

void Checker::check_op(const ProgramFacts& program, const OpFacts& op) {
  const std::string subject = program.name + "." + op.name;
  const std::string at = "op " + op.name + " (" + op.site + ") ";
  if (op.is_on_legacy_stream) {
    add("LEGACY_STREAM", subject, at + "is submitted to the legacy default stream",
        "submit it to the program's own stream");
  }
  if (op.device != backend_.name) {
    add("WRONG_DEVICE", subject, at + "runs on " + op.device + ", the program on " + backend_.name,
        "record the op on the program's device");
  }
  for (const ByValueScalar& scalar : op.scalars) {
    if (!scalar.varies) continue;
    add("BY_VALUE_VARYING", subject,
        at + "takes " + scalar.name + " by value, and it differs from run to run",
        "put it into the argument block");
  }
  for (const std::string& name : op.reads) check_carrier(program, op, name);
  for (const std::string& name : op.writes) check_carrier(program, op, name);
  for (const HazardFacts& each : op.hazards) {
    const HazardText text = text_of(each.hazard);
    add(text.id, each.setting.empty() ? subject : each.setting, at + text.reason + each.what,
        each.hint.empty() ? text.hint : each.hint);
  }
}

// Once for each carrier, naming the first op that touches it.
void Checker::check_carrier(const ProgramFacts& program, const OpFacts& op,
                            const std::string& name) {
  if (!seen_carriers_.insert(name).second) return;
  const auto is_named = [&](const CarrierFacts& carrier) { return carrier.name == name; };
  const auto carrier = std::find_if(program.carriers.begin(), program.carriers.end(), is_named);
  const std::string at = "op " + op.name + " (" + op.site + ") uses carrier " + name + ", which ";
  const bool is_listed = carrier != program.carriers.end();
  if (!is_listed || !carrier->is_sealed) {
    add("UNSTABLE_CARRIER", name,
        at + (is_listed ? "may still move" : "is no carrier of the program"),
        "register it and seal the carriers before the first capture");
  }
  if (is_listed && carrier->device != op.device) {
    add("WRONG_DEVICE", name, at + "lies on " + carrier->device + "; the op runs on " + op.device,
        "keep the carrier on the program's device");
  }
}

void Checker::check_term(const TermFacts& term) {
  const std::string subject = term.subject();
  if (!term.is_certified) {
    add("OWNER_NOT_CERTIFIED", subject, "it is not proven equal on all executors",
        "a term of terms.h or an expression is certified by construction");
  }
  if (term.term_class == TermClass::kGlobal) {
    add("OWNER_NOT_CERTIFIED", subject, "anyone may change what it depends on at any time",
        "let the reset own it, or pass its value in the argument block");
  }
  if (term.term_class == TermClass::kHostEvent) {
    add("OWNER_NOT_CERTIFIED", subject, "the host decides in the middle of a tick when it happens",
        "keep its timer in a carrier of the program");
  }
  if (!term.value_read_each_tick.empty() && !term.is_value_in_block) {
    add("BY_VALUE_VARYING", subject,
        "the program reads " + term.value_read_each_tick +
            " in every tick, but it is not in the argument block",
        "put it into the argument block");
  }
  if (term.draws_per_tick + term.draws_per_reset > 0 && !term.stream) {
    add("UNREGISTERED_RNG", subject, "it draws from no stream of philox.h",
        "draw by (seed, stream, environment, tick) from a stream with a number of its own");
  }
}

}  // namespace

GraphBackend graph_backend_of(Backend& backend) {
  const bool has_graphs = backend.api().has_graphs != 0;
  return {backend.name(), has_graphs, has_graphs ? "" : "it launches programs eagerly",
          backend.facts()};
}

std::vector<Finding> check_graph_backend(const GraphBackend& backend, GraphPolicy policy) {
  if (policy == GraphPolicy::kOff) return {};
  Checker checker(backend, policy);
  checker.check_backend();
  return checker.take();
}

std::vector<Finding> check_graph(const ProgramFacts& program, const GraphBackend& backend,
                                 GraphPolicy policy, int least_ops) {
  if (policy == GraphPolicy::kOff) return {};
  Checker checker(backend, policy);
  checker.check_backend();
  checker.check_program(program, least_ops);
  return checker.take();
}

nlohmann::json term_table_of(const ProgramFacts& program, const std::vector<Finding>& findings) {
  nlohmann::json rows = nlohmann::json::array();
  for (const TermFacts& term : program.terms) {
    const auto is_about = [&](const Finding& each) { return each.subject == term.subject(); };
    const auto found = std::find_if(findings.begin(), findings.end(), is_about);
    const bool is_ready = found == findings.end();
    rows.push_back({{"kind", term.kind},
                    {"term", term.name},
                    {"detail", term.detail},
                    {"stream", term.stream ? to_string(*term.stream) : "none"},
                    {"draws_per_tick", term.draws_per_tick},
                    {"draws_per_reset", term.draws_per_reset},
                    {"class", to_string(term.term_class)},
                    {"verdict", to_string(is_ready ? Readiness::kReady : found->verdict)},
                    {"reason", is_ready ? "" : found->reason},
                    {"hint", is_ready ? "" : found->hint}});
  }
  return rows;
}

}  // namespace millrace
