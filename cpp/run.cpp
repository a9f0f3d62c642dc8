#include "run.h"

#include <algorithm>
#include <ctime>

#include "blas_threads.h"
#include "device_choice.h"
#include "device_policy.h"
#include "digest.h"
#include "learner_sac.h"
#include "preflight.h"
#include "row_mirror.h"
#include "update_facts.h"

namespace millrace {

namespace {

constexpr uint64_t kTraceBytesMax = uint64_t{256} << 20;
// Which numbers are drawn for what; another version makes other runs.
constexpr int kDrawVersion = 1;
// Of carriers and argument blocks: another one makes what was selected before worthless.
constexpr int kLayoutVersion = 1;

double milliseconds_per_tick(uint64_t ns, uint64_t ticks) {
  return ticks == 0 ? 0.0 : static_cast<double>(ns) * 1e-6 / static_cast<double>(ticks);
}

const BackendApi& backend_of(const std::string& requested) {
  const DeviceChoice choice = choose_device(requested);
  if (choice.effective == "none") {
    throw Failure(Code::kUnavailable, "device: " + requested + ": " + choice.reason);
  }
  return backend_api(choice.effective);
}

}  // namespace

Run::Run(const nlohmann::json& config) : Run(config, backend_of(parse_plan(config).device)) {}

Run::Run(const nlohmann::json& config, const BackendApi& backend)
    : plan_(parse_plan(config)),
      backend_(backend),
      update_place_(choose_update_place(plan_, backend)),
      learner_place_(choose_learner_place(plan_, backend)),
      sim_(config, plan_.num_envs, plan_.threads, plan_.seed,
           update_place_.is_on_device || learner_place_.is_on_device ? &backend_ : nullptr) {
  set_blas_threads(plan_.learner.threads);
  if (config.contains("trace_path")) {
    trace_ =
        std::make_unique<Trace>(config["trace_path"].get<std::string>(), kTraceBytesMax, error_);
    trace_->name_thread("learner");
  }
  if (config.contains("selection_path")) {
    selections_ = std::make_unique<SelectionCache>(config["selection_path"].get<std::string>(),
                                                   std::time(nullptr));
  }
  const Task& task = *sim_.task;
  if (plan_.learner.symmetry && !task.symmetry.available) {
    throw Failure(Code::kInvalid, "learner.symmetry: " + plan_.task + " has no mirror image");
  }
  if (plan_.update == "device" && !update_place_.is_on_device) {
    throw Failure(Code::kInvalid,
                  "collector.update: device was requested; " + update_place_.reason);
  }
  if (!learner_place_.obstacle.empty()) {
    throw Failure(Code::kInvalid, learner_place_.subject + ": " + learner_place_.obstacle);
  }
  make_learner();
  if (plan_.learner.reward_scaling != RewardScaling::kOff) {
    reward_scale_ = std::make_unique<RewardScale>(plan_.learner, plan_.num_envs);
  }
  if (plan_.learner.noise_repeat_max > 1) {
    noise_repetition_ = std::make_unique<NoiseRepetition>(
        plan_.num_envs, plan_.learner.noise_repeat_max, plan_.seed);
  }
  const auto place = [](bool is_on_device) { return is_on_device ? Place::kDevice : Place::kHost; };
  replay_ =
      std::make_unique<Replay>(backend_,
                               plan_.replay_spec(task.layout, place(update_place_.is_on_device),
                                                 place(learner_place_.is_on_device)),
                               error_, trace_.get());
  sim_.update->start_episodes(*sim_.physics, true);
  register_state();
  if (update_place_.is_on_device) {
    const UpdateStep& update = *sim_.update;
    device_update_ = std::make_unique<SubmittedUpdate>(
        backend_, task,
        HostState{update.state(), sim_.physics->state_memory(), update.memory(), update.outcomes()},
        plan_.num_envs,
        GraphSpec{"update", graph_policy(plan_.graph), graph_obstacle(task, plan_, backend_)},
        replay_->doorbell(), trace_.get(), selection_spec());
  }
  collector_ = std::make_unique<Collector>(CollectorParts{
      *sim_.physics, *sim_.update, *sim_.pool, *policy_, *replay_, error_, trace_.get(),
      plan_.num_envs, device_update_.get(), noise_repetition_.get(), reward_scale_.get()});
}

// And the policy that acts, which follows it.
void Run::make_learner() {
  const RowMirror mirror = row_mirror_of(*sim_.task);
  std::unique_ptr<SacPrograms> programs = SacPrograms::make(plan_.learner, sim_.task->layout);
  if (!learner_place_.is_on_device) {
    learner_ = std::make_unique<LearnerSac>(std::move(programs), mirror, plan_.seed);
    policy_ = std::make_unique<HostPolicy>(learner_->policy_shape(), plan_.num_envs, plan_.seed);
    return;
  }
  const GraphPolicy graph = graph_policy(plan_.graph);
  const bool repeats_noise = plan_.learner.noise_repeat_max > 1;
  learner_stream_ = std::make_unique<Stream>(backend_);
  learner_ = std::make_unique<LearnerSac>(std::move(programs), mirror, plan_.seed, backend_,
                                          *learner_stream_, learner_place_.precision, graph,
                                          selection_spec(), trace_.get());
  if (!learner_place_.is_policy_on_device) {
    policy_ = std::make_unique<HostPolicy>(
        learner_->policy_shape(), plan_.num_envs, plan_.seed,
        "the device's one submit thread is the learner's, and the collector's acts");
    return;
  }
  policy_ = std::make_unique<DevicePolicy>(
      backend_, learner_->policy_shape(), plan_.num_envs, plan_.seed,
      repeats_noise ? Noise::kOfEachRow : Noise::kOfTheTick, graph, trace_.get());
}

Run::~Run() {
  replay_->close();
  collector_->stop();
  submit_thread_.reset();
}

void Run::register_state() {
  registry_.add("run/counters", DType::kU64, {kCounterCount}, counters_);
  sim_.physics->register_state(registry_);
  sim_.update->register_state(registry_);
  learner_->register_state(registry_);
  if (noise_repetition_ != nullptr) noise_repetition_->register_state(registry_);
  if (reward_scale_ != nullptr) reward_scale_->register_state(registry_);
  replay_->register_state(registry_);
  for (const StateTensor& tensor : registry_.tensors()) {
    const std::string owner = tensor.name.substr(0, tensor.name.find('/'));
    carriers_.add(tensor.name, owner, tensor.dtype, tensor.shape, backend_.name(), tensor.data);
  }
  carriers_.seal();
}

void Run::restored(bool with_replay) {
  MR_CHECK(!is_started_, "restored() after the first tick");
  sim_.physics->state_restored();
  sim_.update->state_restored();
  learner_->state_restored();
  if (reward_scale_ != nullptr) reward_scale_->state_restored();
  // With the rows, the batch that was asked for is gathered again before the first tick takes it.
  // Without them the ring is empty: nothing is prefetched, and its row count starts again.
  replay_->restored(with_replay);
  if (!with_replay) counters_[kHasBatch] = 0;
}

nlohmann::json Run::advance(uint64_t ticks) {
  error_.check();
  if (!is_started_) {
    if (wants_submit_thread()) {
      submit_thread_ =
          std::make_unique<SubmitThread>(*replay_, device_update_.get(), error_, trace_.get());
    }
    collector_->start(counters_[kCollectorTick]);
    is_started_ = true;
  }
  const uint64_t start_ns = now_ns();
  const uint64_t updates_before = counters_[kUpdates];
  uint64_t done = 0;
  try {
    TraceSpan trace(trace_.get(), span::kTraining);
    settle();
    while (done < ticks && !stop_requested_.load(std::memory_order_relaxed)) {
      if (plan_.synchronous) {
        tick_synchronous();
      } else {
        tick_asynchronous();
      }
      ++done;
    }
    come_to_rest();
  } catch (const Failure& failure) {
    fail(failure.code(), failure.what());
  } catch (const std::exception& error) {
    fail(Code::kBug, error.what());
  }
  return report(done, counters_[kUpdates] - updates_before, now_ns() - start_ns);
}

// The collector ends before the caller hears of it, so that facts() and tensors may still be read.
void Run::fail(Code code, const std::string& message) {
  error_.set({"learner.tick", counters_[kTick], "learner", code, message});
  replay_->close();
  collector_->stop();
  error_.check();
}

// Before the collector goes on: its reward scale would change while a synchronous tick reads it.
void Run::exchange_with_collector() {
  policy_->publish(*learner_);
  if (reward_scale_ != nullptr) learner_->set_reward_scale(reward_scale_->factor());
}

void Run::tick_synchronous() {
  const uint64_t tick = counters_[kTick];
  exchange_with_collector();
  const bool has_batch = counters_[kHasBatch] != 0;
  const float* batch = has_batch ? take_batch(tick) : nullptr;
  counters_[kHasBatch] = replay_->request(tick + 1) ? 1 : 0;
  collector_->release(tick + 1);
  if (has_batch) learn(batch);
  wait_for_collector(tick + 1);
  finish_tick();
}

void Run::tick_asynchronous() {
  const uint64_t tick = counters_[kTick];
  exchange_with_collector();
  collector_->release(tick + plan_.max_lead_ticks);
  wait_for_collector(tick + 1);
  settle();
  if (replay_->request_newest(tick)) {
    settle();
    learn(take_batch(tick));
  }
  finish_tick();
}

void Run::wait_for_collector(uint64_t tick) {
  TraceSpan trace(trace_.get(), span::kWaitForData);
  PhaseTimer timer(times_.boundary_ns);
  collector_->wait_finished(tick);
}

const float* Run::take_batch(uint64_t tick) {
  TraceSpan trace(trace_.get(), span::kReplaySample);
  return replay_->take(tick);
}

void Run::learn(const float* batch) {
  TraceSpan window(trace_.get(), span::kUpdateWindow);
  const int stride = replay_->batch_stride();
  const size_t rows = static_cast<size_t>(plan_.learner.gathered_rows());
  for (int k = 0; k < plan_.learner.updates_per_tick; ++k) {
    {
      TraceSpan trace(trace_.get(), span::kUpdateCritic);
      PhaseTimer timer(times_.learn_ns);
      learner_->update(batch + static_cast<size_t>(k) * rows * static_cast<size_t>(stride), stride,
                       counters_[kUpdates]);
    }
    counters_[kUpdates] += 1;
    if (has_submit_thread()) continue;
    PhaseTimer timer(times_.replay_ns);
    replay_->progress(false);
  }
}

// Everything published is committed and the batch that was asked for is there.
void Run::settle() {
  TraceSpan trace(trace_.get(), span::kWaitForReplayBatch);
  PhaseTimer timer(times_.replay_ns);
  if (has_submit_thread()) {
    replay_->wait_settled();
  } else {
    replay_->progress(true);
  }
  error_.check();
}

void Run::finish_tick() {
  settle();
  if (plan_.learner.observation_normalizer) normalise();
  counters_[kTick] += 1;
  if (trace_ == nullptr) return;
  trace_->counter(trace_counter::kPolicyVersion, static_cast<double>(counters_[kTick]));
  trace_->counter(trace_counter::kReplaySize, static_cast<double>(replay_->counters().size));
}

// Every committed row once, in order; the collector may be ahead, so by what is committed now.
void Run::normalise() {
  TraceSpan trace(trace_.get(), span::kUpdateRewardStatistics);
  const int width = sim_.task->layout.width();
  while (const float* rows = replay_->next_committed()) {
    learner_->normalise_from(rows, static_cast<uint64_t>(plan_.num_envs), width);
    replay_->finish_read();
  }
}

// Afterwards the collector rests and everything published is committed, so that statistics and
// checkpoint tensors may be read.
void Run::come_to_rest() {
  collector_->recall();
  settle();
  if (plan_.learner.observation_normalizer) normalise();  // a tick may wait for the slot
  counters_[kCollectorTick] = collector_->pause();
  settle();
  if (plan_.learner.observation_normalizer) normalise();
  learner_->fetch_state();
}

nlohmann::json Run::report(uint64_t ticks, uint64_t updates, uint64_t elapsed_ns) {
  nlohmann::json metrics = sim_.update->take_statistics();
  metrics.update(learner_->take_statistics());
  const double seconds = static_cast<double>(elapsed_ns) * 1e-9;
  refuse_divergence(metrics, updates);
  times_ += collector_->take_times();
  const PhaseTimes spent = times_;
  times_ = PhaseTimes();
  if (ticks > 0) {
    metrics["env_steps_per_s"] = static_cast<double>(ticks) * plan_.num_envs / seconds;
    metrics["updates_per_s"] = static_cast<double>(updates) / seconds;
  }
  metrics["time/tick_ms"] = milliseconds_per_tick(elapsed_ns, ticks);
  metrics["time/act_ms"] = milliseconds_per_tick(spent.act_ns, ticks);
  metrics["time/physics_ms"] = milliseconds_per_tick(spent.physics_ns, ticks);
  metrics["time/update_ms"] = milliseconds_per_tick(spent.update_ns, ticks);
  metrics["time/publish_ms"] = milliseconds_per_tick(spent.publish_ns, ticks);
  metrics["time/reset_ms"] = milliseconds_per_tick(spent.reset_ns, ticks);
  metrics["time/backpressure_ms"] = milliseconds_per_tick(spent.claim_ns, ticks);
  metrics["time/collector_idle_ms"] = milliseconds_per_tick(spent.idle_ns, ticks);
  metrics["time/learn_ms"] = milliseconds_per_tick(spent.learn_ns, ticks);
  metrics["time/replay_ms"] = milliseconds_per_tick(spent.replay_ns, ticks);
  metrics["time/learner_wait_ms"] = milliseconds_per_tick(spent.boundary_ns, ticks);
  const ReplayCounters rows = replay_->counters();
  metrics["replay/size"] = rows.size;
  return {{"tick", counters_[kTick]},
          {"env_steps", counters_[kCollectorTick] * static_cast<uint64_t>(plan_.num_envs)},
          {"updates", counters_[kUpdates]},
          {"stopped", stop_requested_.load(std::memory_order_relaxed)},
          {"finished", false},
          {"metrics", std::move(metrics)},
          {"first_bad", sim_.update->statistics().describe_first_bad()},
          {"replay", replay_counters()}};
}

// A step that is not finite changes nothing and is counted; when there are as many of them as
// updates, training has ended without saying so.
void Run::refuse_divergence(const nlohmann::json& metrics, uint64_t updates) {
  const double lost = metrics.value("learner/nonfinite_updates", 0.0);
  if (updates == 0 || lost < static_cast<double>(updates)) return;
  fail(Code::kDevice, "training diverged: in the last " + std::to_string(updates) + " updates " +
                          std::to_string(static_cast<uint64_t>(lost)) +
                          " critic or actor steps were not finite and were left out");
}

nlohmann::json Run::replay_counters() const {
  const ReplayCounters rows = replay_->counters();
  return {{"published", rows.published},
          {"submitted", rows.submitted},
          {"committed", rows.committed},
          {"size", rows.size},
          {"ring_wraps", rows.wraps},
          {"backpressure_waits", rows.backpressure_waits},
          {"backpressure_wait_ns", rows.backpressure_wait_ns},
          {"in_flight_at_close", rows.in_flight_at_close}};
}

nlohmann::json Run::facts() const {
  const RowLayout& layout = sim_.task->layout;
  nlohmann::json replay = replay_counters();
  replay.update({{"pipeline", to_string(plan_.pipeline)},
                 {"capacity_rows", plan_.capacity_rows},
                 {"row_width", layout.width()},
                 {"row_bytes", layout.row_bytes()},
                 {"row_stride_bytes", layout.row_stride_bytes()},
                 {"ingress_depth", plan_.ingress_depth},
                 {"slot_rows", plan_.num_envs},
                 {"host_bytes", replay_->host_bytes()},
                 {"device_bytes", replay_->device_bytes()},
                 {"threshold_rows", replay_->threshold_rows()},
                 {"host_batch_bytes", replay_->host_batch_bytes()},
                 {"submit_thread", wants_submit_thread() ? "submit" : "learner"}});
  return {{"carriers",
           {{"digest", hexadecimal(carriers_.digest())},
            {"total_bytes", carriers_.total_bytes()},
            {"list", carriers_.describe()}}},
          {"rng",
           {{"algorithm", "philox4x32-10"},
            {"seed", plan_.seed},
            {"draw_version", kDrawVersion},
            {"counter", "{draw / 4, environment, tick low 32, stream << 24 | tick high 24}"}}},
          {"replay", std::move(replay)},
          {"physics", sim_.describe()},
          {"threads",
           {{"workers", sim_.pool->workers()},
            {"choice", sim_.thread_choice},
            {"blas", blas_threads()},
            {"blas_kernels", blas_kernels()}}},
          {"learner", learner_facts()},
          {"policy", policy_->facts()},
          {"graphs", graph_facts()},
          {"selection", selection_facts()}};
}

nlohmann::json Run::learner_facts() const {
  nlohmann::json facts = learner_->describe();
  const bool is_on_device = learner_place_.is_on_device;
  facts["place"] = is_on_device ? "device" : "host";
  facts["precision"] = to_string(learner_place_.precision);
  facts["products"] = is_on_device ? std::string(backend_.facts().products)
                                   : "OpenBLAS, kernels for " + blas_kernels();
  return facts;
}

// The update step is one program; the learner puts the digest of each of its own there.
SelectionSpec Run::selection_spec() const {
  SelectionSpec spec;
  spec.cache = selections_.get();
  if (selections_ == nullptr) return spec;
  const auto place = [](bool is_on_device) { return is_on_device ? "device" : "host"; };
  spec.key = selection_key_of(backend_);
  spec.key.program =
      hexadecimal(digest_of(to_json(update_facts(*sim_.task, plan_, backend_.name())).dump()));
  spec.key.shapes =
      "batch " + std::to_string(plan_.learner.batch) + ", envs " + std::to_string(plan_.num_envs);
  spec.key.layout = std::to_string(kLayoutVersion);
  spec.key.concurrency = std::string("update on ") + place(update_place_.is_on_device) +
                         ", learner on " + place(learner_place_.is_on_device) +
                         (plan_.synchronous ? ", in turn" : ", ahead");
  return spec;
}

nlohmann::json Run::selection_facts() const {
  nlohmann::json facts = learner_->selection_facts();
  if (device_update_ == nullptr) return facts;
  nlohmann::json update = device_update_->selection_facts();
  if (!update.is_null()) facts["update"] = std::move(update);
  return facts;
}

nlohmann::json Run::graph_facts() const {
  const auto disabled = [this](const char* place, const std::string& reason) {
    return nlohmann::json{{"requested", plan_.graph},
                          {"effective", "off"},
                          {"place", place},
                          {"state", to_string(GraphState::kDisabled)},
                          {"reason", plan_.graph == "off" ? "graph: off was requested" : reason},
                          {"captures", 0},
                          {"replays", 0}};
  };
  nlohmann::json update = device_update_ != nullptr
                              ? device_update_->facts()
                              : disabled("host", update_place_.id + ": " + update_place_.reason);
  const ProgramFacts program = update_facts(*sim_.task, plan_, backend_.name());
  int draws = 0;
  for (const TermFacts& term : program.terms) draws += term.draws_per_tick;
  update["identity"] = hexadecimal(digest_of(to_json(program).dump()));
  update["rng"] = {{"algorithm", "philox4x32-10"},
                   {"draw_version", kDrawVersion},
                   {"key", "seed, in the argument block"},
                   {"base_counter", "tick, in the argument block"},
                   {"draws_per_run", draws * plan_.num_envs}};
  nlohmann::json facts = learner_->graph_facts();
  if (learner_place_.is_on_device) {
    facts["policy"] = policy_->graph_facts();
  } else {
    facts["learner"] = disabled("host", "the learner runs on the cpu, which launches eagerly");
    facts["policy"] = disabled("host", "the policy acts on the cpu, which launches eagerly");
  }
  facts["update"] = std::move(update);
  return facts;
}

}  // namespace millrace
