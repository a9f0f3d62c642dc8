#include "captured_program.h"

#include <chrono>
#include <utility>

#include "status.h"

namespace millrace {

namespace {

// The driver's counters cost tens of microseconds: looked at around the first replays and then
// every so often.
constexpr uint64_t kProofInterval = 1000;
constexpr uint64_t kProofsAtFirst = 10;

constexpr const char* kPolicyNames[] = {"off", "auto", "on"};

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

GraphPolicy graph_policy(const std::string& text) {
  for (int i = 0; i < 3; ++i) {
    if (text == kPolicyNames[i]) return static_cast<GraphPolicy>(i);
  }
  throw Failure(Code::kInvalid, "graph: '" + text + "' is not one of off, auto, on");
}

const char* to_string(GraphPolicy policy) { return kPolicyNames[static_cast<int>(policy)]; }

const char* to_string(GraphState state) {
  static constexpr const char* kNames[] = {"DISABLED", "ELIGIBLE",  "WARM",
                                           "CAPTURED", "REPLAYING", "INVALID"};
  return kNames[static_cast<int>(state)];
}

CapturedProgram::CapturedProgram(Backend& backend, Stream& stream, GraphSpec spec,
                                 std::function<void()> body)
    : backend_(backend),
      stream_(stream),
      spec_(std::move(spec)),
      body_(std::move(body)),
      state_(GraphState::kEligible),
      proof_(backend) {
  if (spec_.policy == GraphPolicy::kOff) {
    enter(GraphState::kDisabled, "graph: off was requested");
  } else if (backend.api().has_graphs == 0) {
    enter(GraphState::kDisabled,
          std::string("BACKEND_HAS_NO_GRAPHS: the ") + backend.name() + " backend has no graphs");
  } else if (!spec_.obstacle.empty()) {
    enter(GraphState::kDisabled, spec_.obstacle);
  } else {
    enter(GraphState::kEligible, "");
  }
}

void CapturedProgram::enter(GraphState state, std::string reason) {
  state_ = state;
  reason_ = std::move(reason);
  history_.push_back({state_, runs(), reason_});
}

void CapturedProgram::end(const std::string& reason) {
  enter(GraphState::kInvalid, reason);
  if (spec_.policy != GraphPolicy::kOn) return;
  throw Failure(Code::kDevice, "graph: on, but the graph of '" + spec_.program +
                                   "' cannot be replayed any more: " + reason);
}

void CapturedProgram::run() {
  std::lock_guard<std::mutex> lock(mutex_);
  switch (state_) {
    case GraphState::kDisabled:
    case GraphState::kInvalid:
      return run_eagerly();
    case GraphState::kEligible:
      proof_.begin();
      enter(GraphState::kWarm, "");
      return run_eagerly();
    case GraphState::kWarm:
      if (eager_runs_ >= kWarmRuns) capture();
      break;
    case GraphState::kCaptured:
    case GraphState::kReplaying:
      break;
  }
  if (graph_ == nullptr || state_ == GraphState::kInvalid) return run_eagerly();
  replay();
}

void CapturedProgram::run_eagerly() {
  body_();
  ++eager_runs_;
}

void CapturedProgram::capture() {
  if (const auto obstacle = obstacle_to_graph()) return end(*obstacle);
  const auto begin = std::chrono::steady_clock::now();
  std::string failure;
  try {
    graph_ = std::make_unique<Graph>(backend_, stream_, body_);
    ++captures_;
    nodes_ = graph_->nodes();
    capture_ms_ = milliseconds_since(begin);
  } catch (const Failure& error) {
    failure = error.what();
    ++failed_captures_;
  }
  // An allocation may be why a capture failed, and then it is the better reason: it has a site.
  if (const auto obstacle = obstacle_to_graph()) return end(*obstacle);
  if (failure.empty()) {
    if (nodes_.allocations == 0) return enter(GraphState::kCaptured, "");
    return end("ALLOC_IN_WINDOW: " + std::to_string(nodes_.allocations) +
               " nodes of the graph allocate or free");
  }
  if (failed_captures_ < kCapturesTried) return enter(GraphState::kWarm, failure);
  end("the capture failed " + std::to_string(failed_captures_) +
      " times, the last time: " + failure);
}

std::optional<std::string> CapturedProgram::obstacle_to_graph() {
  {
    std::lock_guard<std::mutex> lock(invalidation_mutex_);
    if (!invalidation_.empty()) return invalidation_;
  }
  return proof_.check_own();
}

bool CapturedProgram::is_proof_due() const {
  return replays_ < kProofsAtFirst || replays_ % kProofInterval == 0;
}

void CapturedProgram::replay() {
  std::optional<std::string> obstacle = obstacle_to_graph();
  if (!obstacle) {
    try {
      is_proving_ = is_proof_due();
      if (is_proving_) proof_.before_run();
      stream_.launch(*graph_);
      ++replays_;
      if (state_ == GraphState::kCaptured) enter(GraphState::kReplaying, "");
      return;
    } catch (const Failure& error) {
      is_proving_ = false;
      backend_.forget_error();
      obstacle = error.what();
    }
  }
  end(*obstacle);
  run_eagerly();
}

void CapturedProgram::completed() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!is_proving_) return;
  is_proving_ = false;
  if (const auto allocated = proof_.after_run()) end(*allocated);
}

bool CapturedProgram::try_graph() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (state_ != GraphState::kCaptured && state_ != GraphState::kReplaying) return false;
  if (const auto obstacle = obstacle_to_graph()) {
    end(*obstacle);
    return false;
  }
  stream_.launch(*graph_);
  return true;
}

void CapturedProgram::set_graph_aside(const std::string& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == GraphState::kDisabled || state_ == GraphState::kInvalid) return;
  is_set_aside_ = true;
  enter(GraphState::kDisabled, reason);
}

void CapturedProgram::take_graph_up() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!is_set_aside_ || state_ != GraphState::kDisabled) return;
  is_set_aside_ = false;
  enter(graph_ != nullptr ? GraphState::kCaptured : GraphState::kEligible, "");
}

void CapturedProgram::release() {
  std::unique_ptr<Graph> graph;  // destroyed last, and after a device that failed to wait, too
  {
    std::lock_guard<std::mutex> lock(mutex_);
    graph = std::move(graph_);
  }
  Event passed(backend_);
  stream_.record(passed);
  passed.wait();
}

void CapturedProgram::invalidate(const std::string& reason) {
  std::lock_guard<std::mutex> lock(invalidation_mutex_);
  if (invalidation_.empty()) invalidation_ = reason;
}

GraphState CapturedProgram::state() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

std::string CapturedProgram::reason() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

uint64_t CapturedProgram::replays() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return replays_;
}

nlohmann::json CapturedProgram::describe() const {
  std::lock_guard<std::mutex> lock(mutex_);
  nlohmann::json history = nlohmann::json::array();
  for (const Change& change : history_) {
    history.push_back(
        {{"state", to_string(change.state)}, {"run", change.run}, {"reason", change.reason}});
  }
  const uint64_t warm_runs = static_cast<uint64_t>(kWarmRuns);
  const uint64_t steady = runs() > warm_runs ? runs() - warm_runs : 0;
  return {
      {"identity", spec_.program + "@" + backend_.name()},
      {"requested", to_string(spec_.policy)},
      {"effective", replays_ > 0 ? "graph" : "eager"},
      {"state", to_string(state_)},
      {"reason", reason_},
      {"nodes",
       {{"kernels", nodes_.kernels},
        {"copies", nodes_.copies},
        {"allocations", nodes_.allocations},
        {"others", nodes_.others}}},
      {"captures", captures_},
      {"failed_captures", failed_captures_},
      {"capture_ms", capture_ms_},
      {"replays", replays_},
      {"eager_runs", eager_runs_},
      {"coverage", steady == 0 ? 0.0 : static_cast<double>(replays_) / static_cast<double>(steady)},
      {"alloc_proof", proof_.describe()},
      {"history", std::move(history)}};
}

}  // namespace millrace
