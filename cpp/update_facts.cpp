#include "update_facts.h"

#include <algorithm>
#include <cstdio>

#include "motion_clip.h"
#include "sim_fields.h"
#include "update.h"
#include "update_launch.h"

namespace millrace {

namespace {

// 32-bit words that the functions of update_body.h take; the test counts them there.
constexpr int kCommandDraws = 5;          // draw_command
constexpr int kPushTimerDraws = 1;        // restart_push_timer
constexpr int kPushDraws = 6;             // push_when_due, before it restarts the timer
constexpr int kGaitDraws = 1;             // begin_episode
constexpr int kIndependentGaitDraws = 2;  // begin_episode, a phase for each foot

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// ---- carriers ----

struct Use {
  bool is_read, is_written;
};

// What a tick does to a field; everything else of the field's life is the reset's or the policy's.
Use use_of(EpisodeField field) {
  switch (field) {
    case kAction:
      return {true, false};
    case kPushVelocity:
    case kReward:
      return {false, true};
    default:
      return {true, true};
  }
}

Use use_of(CounterField field) {
  switch (field) {
    case kEpisode:
    case kDesynchronised:
      return {false, false};
    case kDone:
    case kTruncated:
    case kEndReason:
      return {false, true};
    default:
      return {true, true};
  }
}

// Lists the carriers of `op`, the only one of `program`.
class CarrierList {
 public:
  CarrierList(const Task& task, const RunPlan& plan, ProgramFacts& program, OpFacts& op)
      : task_(task), plan_(plan), program_(program), op_(op) {}

  void add_inputs();
  void add_fields();
  void add_outputs();

 private:
  uint64_t envs() const { return static_cast<uint64_t>(plan_.num_envs); }
  void add(const std::string& name, const char* owner, uint64_t bytes, Use use);

  const Task& task_;
  const RunPlan& plan_;
  ProgramFacts& program_;
  OpFacts& op_;
};

void CarrierList::add(const std::string& name, const char* owner, uint64_t bytes, Use use) {
  CarrierFacts carrier;
  carrier.name = name;
  carrier.owner = owner;
  carrier.device = op_.device;
  carrier.bytes = bytes;
  carrier.is_sealed = true;  // allocated once, before the first tick
  program_.carriers.push_back(std::move(carrier));
  if (use.is_read) op_.reads.push_back(name);
  if (use.is_written) op_.writes.push_back(name);
}

void CarrierList::add_inputs() {
  add("update/argument_block", "submit thread", sizeof(UpdateBlock), {true, false});
  add("update/parameters", "task", sizeof(UpdateParams), {true, false});
  if (task_.motion) {
    const MotionView motion = task_.motion->view();
    const int joints_and_bodies = 2 * motion.joints + (3 + 4 + 3 + 3) * motion.bodies;
    const uint64_t frame_bytes =
        static_cast<uint64_t>(joints_and_bodies) * sizeof(float) + sizeof(int);
    add("task/motion", "task", static_cast<uint64_t>(motion.frames) * frame_bytes, {true, false});
  }
  const auto dims = sim_field_dims(task_.definition.sim, task_.params.constants.num_joints);
  for (int field = 0; field < kSimFieldCount; ++field) {
    const auto dim = static_cast<uint64_t>(dims[static_cast<size_t>(field)]);
    if (dim == 0) continue;
    add(std::string("physics/field/") + sim_field_name(static_cast<SimField>(field)), "physics",
        envs() * dim * sizeof(float), {true, false});
  }
}

void CarrierList::add_fields() {
  for (const EpisodeFieldInfo& info : episode_fields(task_.params)) {
    if (info.dim == 0) continue;
    add(std::string("update/") + info.name, info.field == kAction ? "policy" : "update",
        envs() * static_cast<uint64_t>(info.dim) * sizeof(float), use_of(info.field));
  }
  for (int i = 0; i < kCounterFieldCount; ++i) {
    const auto field = static_cast<CounterField>(i);
    const Use use = use_of(field);
    if (!use.is_read && !use.is_written) continue;
    add(std::string("update/") + counter_name(field), "update", envs() * sizeof(int), use);
  }
}

void CarrierList::add_outputs() {
  add("update/outcomes", "update", envs() * sizeof(UpdateOutcome), {false, true});
  add("update/echo", "update", sizeof(u64), {false, true});
  add("replay/slots", "ingress",
      static_cast<uint64_t>(std::max(plan_.ingress_depth, 0)) * envs() * task_.layout.row_bytes(),
      {false, true});
}

// ---- terms ----

TermFacts term(std::string kind, std::string name, TermClass term_class, std::string detail = "") {
  TermFacts facts;
  facts.kind = std::move(kind);
  facts.name = std::move(name);
  facts.detail = std::move(detail);
  facts.term_class = term_class;
  // Terms of terms.h are compiled from one source for every backend, expressions interpreted by
  // one.
  facts.is_certified = true;
  return facts;
}

TermFacts drawing(TermFacts facts, RandomStream stream, int per_tick, int per_reset) {
  if (per_tick + per_reset == 0) return facts;
  facts.stream = stream;
  facts.draws_per_tick = per_tick;
  facts.draws_per_reset = per_reset;
  return facts;
}

TermFacts switched_off(TermFacts facts) {
  facts.detail = "off";
  return facts;
}

void add_observations(const char* kind, const std::vector<ObservationUse>& uses,
                      const ObservationLayout& layout, std::vector<TermFacts>& terms) {
  for (size_t i = 0; i < uses.size(); ++i) {
    const ObservationSlot& slot = layout.slot[i];
    const bool is_noisy = slot.noise > 0.0f;
    const int draws = is_noisy ? slot.dim : 0;
    terms.push_back(drawing(
        term(kind, uses[i].term, TermClass::kPure, is_noisy ? "noise " + shown(slot.noise) : ""),
        kStreamObservationNoise, draws, draws));
  }
}

void add_rewards(const Task& task, std::vector<TermFacts>& terms) {
  for (size_t k = 0; k < task.reward_names.size(); ++k) {
    const RewardSlot& slot = task.params.reward[k];
    const char* kind = slot.expression.count > 0 ? ", expression" : "";
    terms.push_back(term("reward", task.reward_names[k], TermClass::kPure,
                         "weight " + shown(slot.weight) + kind));
  }
}

void add_terminations(const Task& task, std::vector<TermFacts>& terms) {
  for (size_t k = 0; k < task.termination_names.size(); ++k) {
    terms.push_back(term("termination", task.termination_names[k], TermClass::kPure,
                         task.params.termination[k].truncates ? "truncates" : ""));
  }
}

TermFacts command_term(const TermUse& use, const Task& task) {
  TermFacts facts = term("command", use.term, TermClass::kInterval);
  if (use.term == "motion") {
    facts.detail = "a frame each tick";
    return drawing(std::move(facts), kStreamReset, 0, motion_start_draws(task.motion_reset));
  }
  const int ticks = task.params.command.resample_ticks;
  facts.detail = ticks > 0 ? "every " + std::to_string(ticks) + " ticks" : "at resets";
  return drawing(std::move(facts), kStreamCommand, ticks > 0 ? kCommandDraws : 0, kCommandDraws);
}

TermFacts event_term(const TermUse& use, const Task& task) {
  if (use.term == "gains") {
    TermFacts facts = term("event", use.term, TermClass::kResetOwned, "at resets");
    if (!use.enabled) return switched_off(std::move(facts));
    return drawing(std::move(facts), kStreamGainRandomisation, 0, gain_draws(task.reset));
  }
  const PushParams& push = task.params.push;
  TermFacts facts = term("event", use.term, TermClass::kInterval,
                         "every " + std::to_string(push.interval_ticks_low) + " to " +
                             std::to_string(push.interval_ticks_high) + " ticks");
  if (!push.enabled) return switched_off(std::move(facts));
  return drawing(std::move(facts), kStreamEvent, kPushDraws + kPushTimerDraws, kPushTimerDraws);
}

TermFacts gait_term(const GaitParams& gait) {
  return drawing(
      term("gait", "phase", TermClass::kInterval, shown(gait.phase_step) + " rad each tick"),
      kStreamReset, 0, gait.independent ? kIndependentGaitDraws : kGaitDraws);
}

TermFacts curriculum_term(const TermUse& use, const Task& task) {
  TermFacts facts = term("curriculum", use.term, TermClass::kResetOwned);
  if (use.term == "frame_sampler") {
    const FrameMode mode = task.frame_sampler.mode;
    facts.detail = frame_mode_names()[static_cast<size_t>(mode)];
    return drawing(std::move(facts), kStreamFrameSampler, 0, frame_draws(mode));
  }
  if (!use.enabled) return switched_off(std::move(facts));
  facts.detail = "scale in the argument block";
  facts.value_read_each_tick = "the penalty scale";
  facts.is_value_in_block = true;  // UpdateArguments::penalty_scale
  return facts;
}

std::vector<TermFacts> terms_of(const Task& task) {
  const TaskDefinition& definition = task.definition;
  std::vector<TermFacts> terms;
  add_rewards(task, terms);
  add_observations("observation", definition.observations, task.params.observation, terms);
  add_observations("critic", definition.critic, task.params.critic, terms);
  add_terminations(task, terms);
  for (const TermUse& use : definition.commands) terms.push_back(command_term(use, task));
  for (const TermUse& use : definition.events) terms.push_back(event_term(use, task));
  if (task.params.gait.enabled) terms.push_back(gait_term(task.params.gait));
  for (const TermUse& use : definition.curricula) terms.push_back(curriculum_term(use, task));
  return terms;
}

// Whatever keeps the update step on the host; the device's slots cannot be read there.
std::vector<HazardFacts> hazards_of(const RunPlan& plan) {
  std::vector<HazardFacts> hazards;
  if (plan.update == "host") {
    hazards.push_back({Hazard::kOnHost, "collector.update: host was requested", "collector.update",
                       "collector.update: auto"});
  }
  if (plan.pipeline == Pipeline::kCpuPinnedDoubleBuffer) {
    hazards.push_back({Hazard::kHostRead, "every row, for the ring in host memory",
                       "replay.pipeline", "replay.pipeline: device_resident"});
  }
  if (plan.learner.observation_normalizer) {
    hazards.push_back({Hazard::kHostRead, "every row, by the observation normaliser",
                       "learner.observation_normalizer", "learner.observation_normalizer: false"});
  }
  return hazards;
}

}  // namespace

ProgramFacts update_facts(const Task& task, const RunPlan& plan, const std::string& device) {
  ProgramFacts program;
  program.name = "update";
  OpFacts op;
  op.name = "update";
  op.site = "update_body.h, update_environment";
  op.device = device;
  op.context = 1;
  op.is_on_legacy_stream = false;
  op.parts = {"1 advance the episode (advance_episode)",
              "2 terminations (check_terminations)",
              "3 rewards (sum_rewards)",
              "4 commands and interval events (advance_commands_and_events)",
              "5 observations (observe)",
              "6 pack the row (copy_row, neutralise_row)",
              "7 publish carriers and outcome (publish)"};
  op.scalars = {{"the addresses of its carriers", false}, {"num_envs", false}};
  op.hazards = hazards_of(plan);
  CarrierList carriers(task, plan, program, op);
  carriers.add_inputs();
  carriers.add_fields();
  carriers.add_outputs();
  program.ops.push_back(std::move(op));
  program.terms = terms_of(task);
  return program;
}

}  // namespace millrace
