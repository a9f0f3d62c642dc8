#include "selected_program.h"

namespace millrace {

namespace {

constexpr uint64_t kTimedRuns = 16;  // every so many runs one is timed
constexpr const char* kEager = "eager";
constexpr const char* kGraph = "graph";

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

SelectionKey selection_key_of(const Backend& backend) {
  SelectionKey key;
  const DeviceFacts facts = backend.facts();
  key.device = backend.name();
  for (const BackendInfo& info : backends()) {
    if (info.name == backend.name() && !info.device.empty()) key.device = info.device;
  }
  key.driver = version(facts.driver_version) + ", runtime " + version(facts.runtime_version);
  key.sharing = facts.is_shared != 0 ? "shared with other processes" : "exclusive";
  return key;
}

SelectedProgram::SelectedProgram(Backend& backend, Stream& stream, const GraphSpec& graph,
                                 const SelectionSpec& selection, std::function<void()> body,
                                 ProfileState state)
    : stream_(stream),
      policy_(graph.policy),
      spec_(selection),
      state_(std::move(state)),
      program_(backend, stream, graph, std::move(body)),
      settled_(backend),
      timed_begin_(backend, true),
      timed_end_(backend, true) {}

void SelectedProgram::run(const std::function<void()>& set_arguments) {
  if (is_selecting() && phase_ != Phase::kDecided) decide(set_arguments);
  const bool is_timed = phase_ == Phase::kDecided && !is_timing_ && runs_ % kTimedRuns == 0;
  if (is_timed) stream_.record(timed_begin_);
  set_arguments();
  program_.run();
  if (is_timed) stream_.record(timed_end_);
  is_timing_ = is_timing_ || is_timed;
  ++runs_;
}

void SelectedProgram::completed() {
  program_.completed();
  if (!is_timing_ || !timed_end_.is_complete()) return;
  is_timing_ = false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!drift_.observe(timed_end_.elapsed_ns_since(timed_begin_) * 1e-3)) return;
  phase_ = Phase::kWaitingForGraph;
  program_.take_graph_up();
}

void SelectedProgram::decide(const std::function<void()>& set_arguments) {
  if (phase_ == Phase::kNotAsked) look_up();
  if (phase_ != Phase::kWaitingForGraph) return;
  const GraphState state = program_.state();
  if (state == GraphState::kDisabled || state == GraphState::kInvalid) {
    Selection only;
    only.way = kEager;
    only.reason = program_.reason();
    return take(only, "none");
  }
  if (state == GraphState::kCaptured || state == GraphState::kReplaying) measure(set_arguments);
}

void SelectedProgram::look_up() {
  phase_ = Phase::kWaitingForGraph;
  if (program_.state() == GraphState::kDisabled) return;
  const SelectionCache::Lookup lookup = spec_.cache->find(program_.name(), spec_.key);
  if (lookup.found) return take(*lookup.found, "cache");
  std::lock_guard<std::mutex> lock(mutex_);
  not_cached_ = lookup.why_not;
}

// The current way comes first: eager, or what an earlier profile took.
void SelectedProgram::measure(const std::function<void()>& set_arguments) {
  const auto wait_for_all = [this] { wait(); };
  const std::vector<ProfiledWay> ways = {{kEager,
                                          [&] {
                                            set_arguments();
                                            program_.try_eagerly();
                                          },
                                          wait_for_all},
                                         {kGraph,
                                          [&] {
                                            set_arguments();
                                            program_.try_graph();
                                          },
                                          wait_for_all}};
  state_.save();
  const Profile found = profile(ways, spec_.limits, spec_.clock);
  state_.restore();
  wait();
  const bool is_graph_current = selection_ && selection_->way == kGraph;
  Selection selected = select(found.times, is_graph_current ? 1 : 0);
  selected.profile_ms = found.took_ms;
  spec_.cache->put(program_.name(), spec_.key, selected);
  take(selected, "measured");
}

void SelectedProgram::take(const Selection& selection, const char* source) {
  if (selection.way == kEager) {
    program_.set_graph_aside("eager was selected: " + selection.reason);
  }
  phase_ = Phase::kDecided;
  std::lock_guard<std::mutex> lock(mutex_);
  selection_ = selection;
  source_ = source;
  if (source_ == "measured") ++profiles_;
  drift_.selected_again();
}

void SelectedProgram::wait() {
  stream_.record(settled_);
  settled_.wait();
}

nlohmann::json SelectedProgram::describe() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!is_selecting()) return nullptr;
  nlohmann::json facts = selection_ ? to_json(*selection_)
                                    : nlohmann::json{{"way", kEager},
                                                     {"reason", "no run has been made yet"},
                                                     {"profile_ms", 0.0},
                                                     {"measured", nlohmann::json::array()}};
  facts.update({{"source", source_},
                {"not_cached", not_cached_},
                {"profiles", profiles_},
                {"key", to_json(spec_.key)},
                {"drift", {{"windows", drift_.windows()}, {"reason", drift_.reason()}}},
                {"cache_file", spec_.cache->path()}});
  return facts;
}

}  // namespace millrace
