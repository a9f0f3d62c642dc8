#include "learner_sac.h"

#include <cmath>
#include <cstring>

#include "blas_threads.h"
#include "digest.h"
#include "graph_preflight.h"
#include "learning_rate.h"
#include "op_facts.h"
#include "program_cpu.h"

namespace millrace {
namespace {

constexpr uint32_t kStreamIndex = 3;  // replay, update step and policy have the first three

size_t bytes_of(const SacPrograms& programs, Workspace::Contents contents) {
  size_t total = programs.workspace.bytes(contents);
  if (programs.spec.observation_normalizer) {
    total += Normalizer(programs.layout.observation_dim).bytes() +
             Normalizer(programs.layout.critic_dim).bytes();
  }
  return total;
}

}  // namespace

LearnerSac::LearnerSac(std::unique_ptr<SacPrograms> programs, const RowMirror& mirror,
                       uint64_t seed)
    : LearnerSac(std::move(programs), mirror, seed, Workspace::Contents::kAll) {}

LearnerSac::LearnerSac(std::unique_ptr<SacPrograms> programs, const RowMirror& mirror,
                       uint64_t seed, Backend& backend, Stream& stream, Precision precision,
                       GraphPolicy graph, const SelectionSpec& selection, Trace* trace)
    : LearnerSac(std::move(programs), mirror, seed, Workspace::Contents::kState) {
  if (trace != nullptr) {
    stream_trace_ = std::make_unique<StreamTrace>(backend, stream, *trace, kStreamIndex);
  }
  device_ = std::make_unique<DeviceWorkspace>(backend, stream, programs_->workspace,
                                              programs_->all(), precision);
  device_->upload();
  const bool is_selecting = selection.cache != nullptr && graph == GraphPolicy::kAuto;
  if (is_selecting && backend.api().has_graphs != 0) {
    before_profile_ = std::make_unique<WorkspaceSnapshot>(backend, stream, *device_);
  }
  critic_update_ = update_program(backend, stream, graph, selection, false);
  whole_update_ = update_program(backend, stream, graph, selection, true);
}

std::unique_ptr<SelectedProgram> LearnerSac::update_program(Backend& backend, Stream& stream,
                                                            GraphPolicy graph,
                                                            const SelectionSpec& selection,
                                                            bool with_actor) {
  SelectionSpec of_this = selection;
  of_this.key.program = hexadecimal(
      digest_of(to_string(device_->precision()), programs_->program(with_actor).digest()));
  const GraphSpec spec = {with_actor ? "learner_critic_and_actor" : "learner_critic", graph,
                          obstacle_to_graph(backend, graph, with_actor)};
  return std::make_unique<SelectedProgram>(
      backend, stream, spec, of_this, [this, with_actor] { submit(with_actor); },
      ProfileState{[this] { before_profile_->save(); }, [this] { before_profile_->restore(); }});
}

// The first finding of preflight about the update's program.
std::string LearnerSac::obstacle_to_graph(Backend& backend, GraphPolicy graph,
                                          bool with_actor) const {
  const ProgramFacts facts =
      facts_of(programs_->program(with_actor), backend.name(), InputUse::kCopied);
  return first_reason(check_graph(facts, graph_backend_of(backend), graph));
}

// Device work that still uses the carriers or a graph ends first. A constructor that failed half
// way comes here, too.
LearnerSac::~LearnerSac() {
  for (const auto* program : {&critic_update_, &whole_update_}) {
    if (*program == nullptr) continue;
    try {
      (*program)->release();
    } catch (const Failure&) {
      // The device has failed: there is no work left to wait for.
    }
  }
}

LearnerSac::LearnerSac(std::unique_ptr<SacPrograms> programs, const RowMirror& mirror,
                       uint64_t seed, Workspace::Contents contents)
    : programs_(std::move(programs)), seed_(seed) {
  SacPrograms& p = *programs_;
  const LearnerSpec& spec = p.spec;
  if (spec.symmetry && spec.batch % 2 != 0) {
    throw Failure(Code::kInvalid,
                  "learner.batch: must be even with symmetry, got " + std::to_string(spec.batch));
  }
  p.workspace.allocate(contents);
  p.critic_statistics->clear();
  p.actor_statistics->clear();
  set_blas_threads(spec.threads);
  p.initialise(seed);
  *p.workspace.floats(p.log_alpha) = std::log(spec.alpha_init);
  if (spec.symmetry) {
    write_mirror(p.observation_mirror, mirror.observation, p.layout.observation_dim);
    write_mirror(p.critic_mirror, mirror.critic, p.layout.critic_dim);
    write_mirror(p.action_mirror, mirror.action, p.layout.action_dim);
  }
  if (spec.observation_normalizer) {
    observation_normalizer_.emplace(p.layout.observation_dim);
    critic_normalizer_.emplace(p.layout.critic_dim);
    write_normalizers();
  }
}

size_t LearnerSac::bytes_needed(const LearnerSpec& spec, const RowLayout& layout) {
  return bytes_of(*SacPrograms::make(spec, layout), Workspace::Contents::kAll);
}

uint64_t LearnerSac::device_bytes_needed(const LearnerSpec& spec, const RowLayout& layout,
                                         const BackendApi& api, Precision precision) {
  const std::unique_ptr<SacPrograms> programs = SacPrograms::make(spec, layout);
  return DeviceWorkspace::bytes_needed(api, programs->workspace, programs->all(), precision);
}

uint64_t LearnerSac::profile_bytes_needed(const LearnerSpec& spec, const RowLayout& layout,
                                          Precision precision) {
  return WorkspaceSnapshot::bytes_needed(SacPrograms::make(spec, layout)->workspace, precision);
}

void LearnerSac::write_mirror(const SacPrograms::Mirror& to, const MirrorColumns& from, int width) {
  MR_CHECK(from.source.size() == static_cast<size_t>(width) &&
               from.sign.size() == static_cast<size_t>(width),
           "a mirror map has the width of what it mirrors");
  for (int i = 0; i < width; ++i) {
    MR_CHECK(from.source[i] >= 0 && from.source[i] < width, "a mirror map stays inside its vector");
    programs_->workspace.integers(to.source)[i] = from.source[i];
    programs_->workspace.floats(to.sign)[i] = from.sign[i];
  }
}

void LearnerSac::write_normalizers() {
  const Workspace& workspace = programs_->workspace;
  observation_normalizer_->write(workspace.floats(programs_->observation_mean),
                                 workspace.floats(programs_->observation_scale));
  critic_normalizer_->write(workspace.floats(programs_->critic_mean),
                            workspace.floats(programs_->critic_scale));
}

Arguments LearnerSac::arguments(const float* rows, int row_stride, uint64_t update_index) const {
  const LearnerSpec& spec = programs_->spec;
  const uint64_t actor_steps = update_index / static_cast<uint64_t>(spec.policy_frequency);
  const auto rate = [&spec](float start, uint64_t step) {
    return LearningRateSchedule{start, spec.lr_decay_steps, spec.lr_final_share}.at(step);
  };
  Arguments arguments{};
  arguments.rows = rows;
  arguments.row_stride = row_stride;
  arguments.seed = seed_;
  arguments.tick = update_index;
  arguments.actor_learning_rate = rate(spec.actor_lr, actor_steps);
  arguments.critic_learning_rate = rate(spec.critic_lr, update_index);
  arguments.alpha_learning_rate =
      rate(spec.alpha_lr, programs_->steps_temperature_with_actor() ? actor_steps : update_index);
  arguments.target_rate = spec.tau;
  arguments.reward_scale = reward_scale_;
  return arguments;
}

void LearnerSac::update(const float* rows, int row_stride, uint64_t update_index) {
  const Arguments with = arguments(rows, row_stride, update_index);
  updates_ = update_index + 1;
  const bool with_actor = updates_ % programs_->spec.policy_frequency == 0;
  if (device_) {
    {
      StreamSpan span(stream_trace_.get(), span::kGpuLearner);
      (with_actor ? *whole_update_ : *critic_update_).run([&] { device_->set_arguments(with); });
    }
    if (stream_trace_ != nullptr) stream_trace_->collect(false);
    return;
  }
  run_on_cpu(programs_->program(with_actor), {programs_->workspace, with});
}

void LearnerSac::submit(bool with_actor) { device_->submit(programs_->program(with_actor)); }

void LearnerSac::normalise_from(const float* rows, uint64_t count, int row_stride) {
  if (!observation_normalizer_) return;
  observation_normalizer_->absorb(rows + programs_->layout.observation(), count, row_stride);
  critic_normalizer_->absorb(rows + programs_->layout.critic(), count, row_stride);
  write_normalizers();
  if (!device_) return;
  const auto observation_dim = static_cast<uint64_t>(programs_->layout.observation_dim);
  const auto critic_dim = static_cast<uint64_t>(programs_->layout.critic_dim);
  device_->upload(programs_->observation_mean, observation_dim);
  device_->upload(programs_->observation_scale, observation_dim);
  device_->upload(programs_->critic_mean, critic_dim);
  device_->upload(programs_->critic_scale, critic_dim);
}

const float* LearnerSac::policy_parameters() {
  if (device_) {
    device_->download(programs_->actor_state.parameters);
    completed();
  }
  return programs_->workspace.floats(programs_->actor_state.parameters);
}

void LearnerSac::copy_policy_to(float* parameters) {
  const Operand from = programs_->actor_state.parameters;
  if (device_) {
    device_->copy_to(parameters, from, policy_parameter_count());
    completed();
  } else {
    std::memcpy(parameters, programs_->workspace.floats(from),
                policy_parameter_count() * sizeof(float));
  }
}

void LearnerSac::completed() {
  critic_update_->completed();
  whole_update_->completed();
}

size_t LearnerSac::policy_parameter_count() const { return programs_->policy_parameter_count(); }

nlohmann::json LearnerSac::take_statistics() {
  nlohmann::json statistics = nlohmann::json::object();
  uint64_t left_out = 0;
  for (LearnerStatistics* part :
       {programs_->critic_statistics.get(), programs_->actor_statistics.get()}) {
    if (device_) device_->download(part->totals());
    left_out += part->left_out();
    part->take(statistics);
    if (device_) device_->upload(part->totals());
  }
  statistics["learner/nonfinite_updates"] = left_out;
  if (programs_->spec.reward_scaling != RewardScaling::kOff) {
    statistics["learner/reward_scale"] = reward_scale_;
  }
  return statistics;
}

nlohmann::json LearnerSac::describe() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Program* program : programs_->all()) {
    nlohmann::json ops = nlohmann::json::array();
    for (const Program::Record& record : program->records()) {
      ops.push_back(
          {{"kind", kind_of(record.op)}, {"file", record.site.file}, {"line", record.site.line}});
    }
    list.push_back({{"name", program->name()}, {"ops", std::move(ops)}});
  }
  return {{"programs", std::move(list)}};
}

nlohmann::json LearnerSac::graph_facts() const {
  if (!device_) return nlohmann::json::object();
  nlohmann::json facts;
  for (const SelectedProgram* program : {critic_update_.get(), whole_update_.get()}) {
    nlohmann::json& entry = facts[program->name()] = program->program().describe();
    entry["place"] = "device";
    entry["copied_bytes_per_run"] = device_->block_bytes();
  }
  return facts;
}

nlohmann::json LearnerSac::selection_facts() const {
  nlohmann::json facts = nlohmann::json::object();
  if (!device_) return facts;
  for (const SelectedProgram* program : {critic_update_.get(), whole_update_.get()}) {
    nlohmann::json entry = program->describe();
    if (!entry.is_null()) facts[program->name()] = std::move(entry);
  }
  return facts;
}

void LearnerSac::register_state(StateRegistry& registry) {
  const SacPrograms& p = *programs_;
  const auto add_network = [&](const std::vector<NetworkTensor>& tensors, int groups,
                               const std::string& name, Operand parameters) {
    register_tensors(registry, tensors, groups, name, "", p.workspace.floats(parameters));
  };
  const auto add_moments = [&](const std::vector<NetworkTensor>& tensors, int groups,
                               const std::string& name, const SacPrograms::Trained& trained) {
    register_tensors(registry, tensors, groups, "adam/" + name, "/m",
                     p.workspace.floats(trained.first_moment), true);
    register_tensors(registry, tensors, groups, "adam/" + name, "/v",
                     p.workspace.floats(trained.second_moment), true);
    registry.add("adam/" + name + "/step", DType::kU64, {1}, p.workspace.counters(trained.step));
  };
  add_network(p.actor_tensors(), 1, "actor", p.actor_state.parameters);
  add_network(p.critic_tensors(), SacPrograms::kCritics, "critic", p.critic_state.parameters);
  add_network(p.critic_tensors(), SacPrograms::kCritics, "target", p.target);
  add_moments(p.actor_tensors(), 1, "actor", p.actor_state);
  add_moments(p.critic_tensors(), SacPrograms::kCritics, "critic", p.critic_state);
  registry.add("alpha/log", DType::kF32, {1}, p.workspace.floats(p.log_alpha));
  registry.add("adam/alpha/log/m", DType::kF32, {1}, p.workspace.floats(p.alpha_first_moment));
  registry.add("adam/alpha/log/v", DType::kF32, {1}, p.workspace.floats(p.alpha_second_moment));
  registry.add("adam/alpha/step", DType::kU64, {1}, p.workspace.counters(p.alpha_step));
  p.critic_statistics->register_state(registry, "learner/critic_totals");
  p.actor_statistics->register_state(registry, "learner/actor_totals");
  registry.add("learner/updates", DType::kU64, {1}, &updates_);
  if (observation_normalizer_) {
    observation_normalizer_->register_state(registry, "normalizer/observation");
    critic_normalizer_->register_state(registry, "normalizer/critic");
  }
}

void LearnerSac::fetch_state() {
  if (stream_trace_ != nullptr) stream_trace_->collect(true);
  if (device_) device_->download();
}

void LearnerSac::state_restored() {
  if (observation_normalizer_) write_normalizers();
  if (device_) device_->upload();
}

size_t LearnerSac::bytes() const {
  return bytes_of(*programs_, device_ ? Workspace::Contents::kState : Workspace::Contents::kAll);
}

}  // namespace millrace
