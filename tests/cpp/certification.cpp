#include "certification.h"

#include <set>

#include "expression.h"
#include "host_block.h"
#include "lane_team.h"
#include "motion_clip.h"
#include "run_fixture.h"
#include "sim_parts.h"
#include "update_fixture.h"

namespace millrace {

namespace {

constexpr int kEnvs = 6;
constexpr uint64_t kTicks = 16, kSeedChange = 8, kParamsChange = 11;
constexpr int kFrames = 80;
constexpr int kLanes = 3;
constexpr uint64_t kTeamTicks = 3;
constexpr ExpressionScope kScope = {29, 29, 14, true, true, true};

// ---- the robot ----

// The first frames of a motion, as a motion of its own: what a rollout comes past.
MotionClip start_of(MotionClip clip) {
  clip.frames = kFrames;
  for (auto* array :
       {&clip.joint_position, &clip.joint_velocity, &clip.body_position, &clip.body_quaternion,
        &clip.body_linear_velocity, &clip.body_angular_velocity}) {
    array->resize(array->size() / clip.clip_end.size() * kFrames);
  }
  clip.clip_end.assign(kFrames, kFrames);
  return clip;
}

const Task& tracking_task() {
  static const Task task = [] {
    Task made = *SimParts(motion_config(), 1, 1, 1).task;
    made.motion = std::make_shared<const MotionClip>(start_of(*made.motion));
    return made;
  }();
  return task;
}

int dim_of(int dim) {
  const MotionView motion = tracking_task().motion->view();
  switch (dim) {
    case kPerJoint:
    case kPerAction:
      return motion.joints;
    case kThreePerBody:
      return 3 * motion.bodies;
    case kSixPerBody:
      return 6 * motion.bodies;
  }
  return dim;
}

// A robot with every field there is, in memory of its own.
class MadeUpRobots {
 public:
  explicit MadeUpRobots(const UpdateParams& p) {
    const int joints = dim_of(kPerJoint), bodies = dim_of(kThreePerBody) / 3;
    const int sim[kSimFieldCount] = {3, 4, 3, 3,          joints,     joints,     3,          3, 3,
                                     6, 8, 2, 3 * bodies, 4 * bodies, 3 * bodies, 3 * bodies, 1};
    const int episode[kEpisodeFieldCount] = {
        p.num_actions, p.num_actions, 5, 2, 1, 6, 2, p.observation.dim, p.critic.dim, 1,
        p.reward_count};
    HostBlockLayout sim_layout, carrier_layout;
    std::vector<uint64_t> offsets;
    for (const int dim : sim) offsets.push_back(sim_layout.add(bytes_of(dim)));
    for (const int dim : episode) offsets.push_back(carrier_layout.add(bytes_of(dim)));
    for (int i = 0; i < kCounterFieldCount; ++i) {
      offsets.push_back(carrier_layout.add(kEnvs * sizeof(int)));
    }
    const uint64_t outcomes = carrier_layout.add(kEnvs * sizeof(UpdateOutcome));
    sim_ = std::make_unique<HostBlock>(sim_layout, nullptr);
    carriers_ = std::make_unique<HostBlock>(carrier_layout, nullptr);
    auto offset = offsets.begin();
    for (int i = 0; i < kSimFieldCount; ++i) host.view.sim[i] = field(*sim_, *offset++, sim[i]);
    for (int i = 0; i < kEpisodeFieldCount; ++i) {
      host.view.episode[i] = field(*carriers_, *offset++, episode[i]);
    }
    for (CounterView& counter : host.view.counter) {
      counter = {reinterpret_cast<int*>(carriers_->at(*offset++)), 1};
    }
    host.view.motion = tracking_task().motion->view();
    host.sim = sim_->range();
    host.carriers = carriers_->range();
    host.outcomes = reinterpret_cast<UpdateOutcome*>(carriers_->at(outcomes));
  }

  HostState host = {};

 private:
  static uint64_t bytes_of(int dim) { return static_cast<uint64_t>(dim * kEnvs) * sizeof(float); }
  static FieldView field(const HostBlock& block, uint64_t offset, int dim) {
    return {reinterpret_cast<float*>(block.at(offset)), dim, 1, dim};
  }

  std::unique_ptr<HostBlock> sim_, carriers_;
};

ObservationLayout single_observation(const std::string& term, float noise) {
  const TermInfo& info = term_info(TermKind::kObservation, term);
  ObservationLayout layout = {};
  layout.count = 1;
  layout.dim = dim_of(info.dim);
  layout.slot[0] = {info.id, 0, layout.dim, 1.5f, noise};
  return layout;
}

TermParams default_params(const TermInfo& info) {
  TermParams params = {};
  for (size_t i = 0; i < info.parameters.size() && i < kMaxTermParams; ++i) {
    params.value[i] = static_cast<float>(info.parameters[i].default_value);
  }
  return params;
}

RewardSlot reward_slot(const std::string& term, float weight) {
  const TermInfo& info = term_info(TermKind::kReward, term);
  return {info.id, weight, default_params(info), {0, 0}};
}

void set_terminations(UpdateParams& p, const std::string& first) {
  p.termination_count = 0;
  for (const std::string& name : {first, std::string("clip_end"), std::string("physics_unstable"),
                                  std::string("non_finite")}) {
    const TermInfo& info = term_info(TermKind::kTermination, name);
    if (p.termination_count > 0 && name == first) continue;
    const bool truncates = name == "time_out" || name == "clip_end";
    p.termination[p.termination_count++] = {info.id, truncates ? 1 : 0, default_params(info)};
    if (name == "physics_unstable") p.unstable_reason = p.termination_count;
    if (name == "non_finite") p.non_finite_reason = p.termination_count;
  }
}

// What draws nothing: the row's term comes on top.
Task plain_task() {
  Task task = tracking_task();
  UpdateParams& p = task.params;
  for (int j = 0; j < kMaxJoints; ++j) {
    p.constants.pose_weight[j] = 1.0f + static_cast<float>(j % 5);
    p.constants.upper_body_weight[j] = static_cast<float>(j % 2);
  }
  p.observation = single_observation("gyro", 0.0f);
  p.critic = single_observation("projected_gravity", 0.0f);
  p.reward[0] = reward_slot("alive", 1.0f);
  p.reward_count = 1;
  set_terminations(p, "clip_end");
  p.command = {1, 0, -0.5f, 1.0f, -0.5f, 0.5f, -1.0f, 1.0f, 0.1f, 0.1f, 0, 0.5f, 2.0f};
  p.push = {0, 2, 4, {0.5f, 0.5f, 0.25f, 0.125f, 0.125f, 0.75f}};
  p.gait = {1, 0.25f, 0};
  return task;
}

void use_reward(Task& task, const TermRow& row) {
  RewardSlot& slot = task.params.reward[0];
  if (row.expression.empty()) {
    slot = reward_slot(row.name, -1.0f);
    return;
  }
  slot.weight = -1.0f;
  slot.expression = append_expression(compile_expression(row.expression, kScope, row.name),
                                      row.name, task.params.expressions);
}

Task task_of(const TermRow& row, bool is_random) {
  Task task = plain_task();
  UpdateParams& p = task.params;
  switch (row.kind) {
    case TermKind::kObservation:
      p.observation = single_observation(row.name, is_random ? 0.125f : 0.0f);
      p.critic = single_observation(row.name, 0.0f);
      break;
    case TermKind::kReward:
      use_reward(task, row);
      break;
    case TermKind::kTermination:
      set_terminations(p, row.name);
      break;
    case TermKind::kCommand:
      p.observation =
          single_observation(row.name == "motion" ? "motion_joint_position" : "command", 0.0f);
      p.command.resample_ticks = row.name == "velocity" && is_random ? 3 : 0;
      p.command.heading_mode = row.steers_to_heading ? 1 : 0;
      break;
    case TermKind::kEvent:
      p.push.enabled = row.name == "push" && is_random ? 1 : 0;
      break;
    case TermKind::kCurriculum:
      p.reward[0] = reward_slot("lin_vel_z", -1.0f);
      break;
  }
  task.layout = {p.observation.dim, p.num_actions, p.critic.dim};
  return task;
}

UpdateParams changed(const UpdateParams& params) {
  UpdateParams other = params;
  other.command.linear_x_low *= 0.5f;
  other.command.linear_x_high *= 0.5f;
  other.command.linear_y_high *= 2.0f;
  for (float& velocity : other.push.velocity) velocity *= 2.0f;
  other.reward[0].weight *= 1.5f;
  other.reward[0].params.value[0] *= 1.25f;
  other.observation.slot[0].noise *= 1.5f;
  return other;
}

// ---- the states ----

void normalise(const FieldView& field, int env, int first, int count) {
  float norm = 0;
  for (int i = first; i < first + count; ++i) norm += squared(component(field, env, i));
  for (int i = first; i < first + count; ++i) component(field, env, i) /= mr_sqrt(norm);
}

// Numbers in [-1, 1): a function of field, environment and tick.
void scatter(const FieldView& field, int number, int env, uint64_t tick) {
  const RandomSource source = random_source(static_cast<u64>(number) + 100, kStreamExploration,
                                            static_cast<u32>(env), tick);
  for (int i = 0; i < field.dim; ++i) {
    component(field, env, i) = random_uniform(source, static_cast<u32>(i), -1.0f, 1.0f);
  }
}

// Near the reference, the farther the higher the environment's number.
void near_reference(const StateView& state, SimField field, const float* reference, int env) {
  const FieldView& view = state.sim[field];
  const int frame = counter_of(state.counter[kFrame], env);
  const float size = 0.2f * static_cast<float>(env + 1);
  const float* wanted = reference + static_cast<u64>(frame) * static_cast<u64>(view.dim);
  for (int i = 0; i < view.dim; ++i) {
    component(view, env, i) = wanted[i] + size * component(view, env, i);
  }
}

// What physics and policy would bring. Reads the frame.
void make_inputs(const StateView& state, int env, uint64_t tick) {
  for (int i = 0; i < kSimFieldCount; ++i) scatter(state.sim[i], i, env, tick);
  scatter(state.episode[kAction], kSimFieldCount, env, tick);
  const MotionView& motion = state.motion;
  near_reference(state, kJointPosition, motion.joint_position, env);
  near_reference(state, kJointVelocity, motion.joint_velocity, env);
  near_reference(state, kBodyPosition, motion.body_position, env);
  near_reference(state, kBodyQuaternion, motion.body_quaternion, env);
  near_reference(state, kBodyLinearVelocity, motion.body_linear_velocity, env);
  near_reference(state, kBodyAngularVelocity, motion.body_angular_velocity, env);
  for (int body = 0; body < motion.bodies; ++body) {
    normalise(state.sim[kBodyQuaternion], env, 4 * body, 4);
  }
  normalise(state.sim[kRootQuaternion], env, 0, 4);
  normalise(state.sim[kProjectedGravity], env, 0, 3);
  component(state.sim[kRootPosition], env, 2) *= 0.5f;
  for (int foot = 0; foot < 2; ++foot) {
    normalise(state.sim[kFootQuaternion], env, 4 * foot, 4);
    for (int i = 0; i < 3; ++i) component(state.sim[kFootPosition], env, 3 * foot + i) *= 0.1f;
    float& contact = component(state.sim[kFootContact], env, foot);
    contact = contact > 0.0f ? 1.0f : 0.0f;
  }
  component(state.sim[kUnstable], env, 0) = env == 1 && tick == 5 ? 1.0f : 0.0f;
  if (env == 2 && tick == 6) component(state.episode[kAction], env, 3) = std::nanf("");
}

void make_start(const StateView& state, int max_steps) {
  for (int env = 0; env < kEnvs; ++env) {
    for (EpisodeField field : {kLastAction, kCommand, kObservation, kCritic}) {
      scatter(state.episode[field], kSimFieldCount + 1 + field, env, 0);
    }
    component(state.episode[kCommand], env, 4) = 0.0f;
    for (int foot = 0; foot < 2; ++foot) {
      component(state.episode[kGaitPhase], env, foot) = 0.5f * static_cast<float>(env + foot);
      component(state.episode[kFootAirTime], env, foot) = 0.1f * static_cast<float>(env);
    }
    counter_of(state.counter[kStep], env) = max_steps - 2 - 3 * env;
    counter_of(state.counter[kCommandTimer], env) = 1 + env;
    counter_of(state.counter[kPushTimer], env) = 1 + env;
    counter_of(state.counter[kFrame], env) = env == 0 ? state.motion.clip_end[0] - 6 : 10 * env;
  }
}

UpdateArguments arguments_of(uint64_t seed, uint64_t tick) {
  return {tick < kSeedChange ? seed : seed + 1, tick, 0.5f + 0.03125f * static_cast<float>(tick)};
}

// ---- the checks ----

// A term's task, its start and the inputs of each tick, for any number of steps side by side.
struct Rollout {
  explicit Rollout(const TermRow& row, bool is_random = true)
      : task(task_of(row, is_random)), start(task.params), inputs(task.params) {
    make_start(start.host.view, task.params.max_steps);
  }

  // `frames`: of the environments, as the last tick left them.
  const HostState& inputs_of(uint64_t tick, const StateView& frames) {
    const StateView& view = inputs.host.view;
    for (int env = 0; env < kEnvs; ++env) {
      counter_of(view.counter[kFrame], env) = counter_of(frames.counter[kFrame], env);
      make_inputs(view, env, tick);
    }
    return inputs.host;
  }

  const Task task;
  MadeUpRobots start, inputs;
};

}  // namespace

std::vector<std::string> certify_bits(const TermRow& row, const BackendApi& api,
                                      FakeCuda::Kernel replayed) {
  Rollout rollout(row);
  Backend backend(api);
  Stream stream(backend);
  if (replayed != nullptr) FakeCuda::of(backend).replay_with(replayed);
  TickOnHost host(rollout.task, rollout.start.host, kEnvs);
  TickOnDevice eager(backend, stream, rollout.task, rollout.start.host, kEnvs, GraphPolicy::kOff);
  TickOnDevice graph(backend, stream, rollout.task, rollout.start.host, kEnvs, GraphPolicy::kOn);
  std::string eager_failure, graph_failure;
  const StateView* frames = &rollout.start.host.view;
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    if (tick == kParamsChange) {
      host.set_params(changed(rollout.task.params));
      eager.update().set_params(changed(rollout.task.params));
      graph.update().set_params(changed(rollout.task.params));
    }
    const HostState& inputs = rollout.inputs_of(tick, *frames);
    const UpdateArguments arguments = arguments_of(5, tick);
    const TickResult& expected = host.run(arguments, inputs);
    frames = &expected.state.host.view;
    const bool is_direct = tick % 4 == 0 || tick % 4 == 3;  // e g g e
    const auto note = [&](std::string& failure, const TickResult& found, const char* what) {
      const std::string difference = expected.difference_from(found);
      if (failure.empty() && !difference.empty()) {
        failure = std::string("host: ") + what + ", tick " + std::to_string(tick) + ": " +
                  difference + " differs";
      }
    };
    note(eager_failure, eager.run(arguments, inputs), "eager");
    note(graph_failure, graph.run(arguments, inputs, is_direct), "graph");
  }
  if (graph.program().replays() == 0) graph_failure = "host: graph never replayed";
  graph.program().release();
  std::vector<std::string> failures;
  for (const std::string& failure : {eager_failure, graph_failure}) {
    if (!failure.empty()) failures.push_back(failure);
  }
  return failures;
}

namespace {

void check_team(const TermRow& row, std::vector<std::string>& failures) {
  Rollout rollout(row);
  TickOnHost one(rollout.task, rollout.start.host, kEnvs);
  TickOnHost many(rollout.task, rollout.start.host, kEnvs, [](const UpdateLaunch& launch, int env) {
    run_team(kLanes, [&](const LaneTeam& team) { update_robot(team, launch, env); });
  });
  const StateView* frames = &rollout.start.host.view;
  for (uint64_t tick = 5; tick < 5 + kTeamTicks; ++tick) {  // with the two broken ones
    const HostState& inputs = rollout.inputs_of(tick, *frames);
    const TickResult& expected = one.run(arguments_of(5, tick), inputs);
    frames = &expected.state.host.view;
    const std::string difference =
        expected.difference_from(many.run(arguments_of(5, tick), inputs));
    if (difference.empty()) continue;
    failures.push_back("team: tick " + std::to_string(tick) + ": " + difference + " differs");
    return;
  }
}

uint64_t digest_of_run(const TermRow& row, bool is_random, uint64_t seed) {
  Rollout rollout(row, is_random);
  TickOnHost host(rollout.task, rollout.start.host, kEnvs);
  const StateView* frames = &rollout.start.host.view;
  uint64_t digest = 1;
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    const TickResult& found = host.run(arguments_of(seed, tick), rollout.inputs_of(tick, *frames));
    frames = &found.state.host.view;
    digest = found.digest(digest);
  }
  return digest;
}

// What the owner of resets draws for one environment.
uint64_t digest_of_start(const TermRow& row, bool is_random, uint64_t seed, int env,
                         uint64_t digest) {
  const Task& task = tracking_task();
  const MotionView motion = task.motion->view();
  if (row.name == "frame_sampler") {
    FrameSamplerSpec spec = task.frame_sampler;
    spec.mode = is_random ? FrameMode::kAdaptive : FrameMode::kStart;
    const int frame = FrameSampler(spec, motion).draw(seed, 7, env);
    return digest_of(&frame, sizeof(frame), digest);
  }
  ResetSpec spec = task.reset;
  spec.randomise_gains = row.name == "gains" && is_random;
  spec.gain_low = 0.9;
  spec.gain_high = 1.1;
  MotionResetSpec noise = task.motion_reset;
  if (row.name != "motion" || !is_random) {
    std::fill(noise.root_pose, noise.root_pose + 6, 0.0);
    std::fill(noise.root_velocity, noise.root_velocity + 6, 0.0);
    noise.joint_position = 0;
  }
  std::vector<double> qpos(spec.qpos.size()), qvel(static_cast<size_t>(spec.nv)), gains(2);
  draw_motion_start(spec, noise, motion, 3, seed, 7, env, qpos.data(), qvel.data(), gains.data());
  for (const auto* values : {&qpos, &qvel, &gains}) {
    digest = digest_of(values->data(), values->size() * sizeof(double), digest);
  }
  return digest;
}

uint64_t digest_of_starts(const TermRow& row, bool is_random, uint64_t seed) {
  uint64_t digest = 1;
  for (int env = 0; env < kEnvs; ++env) digest = digest_of_start(row, is_random, seed, env, digest);
  return digest;
}

// `run(is_random, seed)` gives a digest of all that the term can change.
template <class Run>
void check_draws(bool draws, const char* where, const Run& run,
                 std::vector<std::string>& failures) {
  const uint64_t on = run(true, 5), other_seed = run(true, 50);
  const uint64_t off = run(false, 5), off_other_seed = run(false, 50);
  const std::string prefix = std::string("draws: ") + where + ": ";
  if (run(true, 5) != on) failures.push_back(prefix + "not a function of the seed");
  if ((on != other_seed) != draws) {
    failures.push_back(prefix + (draws ? "the seed does not matter" : "the seed matters"));
  }
  if ((on != off) != draws) {
    failures.push_back(prefix +
                       (draws ? "switched off nothing changes" : "it can be switched off"));
  }
  if (off != off_other_seed) failures.push_back(prefix + "switched off it still draws");
}

// That the rollout shows the term at work: values that differ, an end that comes and does not come.
void check_vacuous(const TermRow& row, std::vector<std::string>& failures) {
  Rollout rollout(row);
  TickOnHost host(rollout.task, rollout.start.host, kEnvs);
  const StateView* frames = &rollout.start.host.view;
  const UpdateParams& p = rollout.task.params;
  const int reason = row.name == "physics_unstable" ? p.unstable_reason
                     : row.name == "non_finite"     ? p.non_finite_reason
                                                    : 1;
  std::set<float> rewards, observed;
  int ends = 0;
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    const UpdateArguments arguments = {5, tick, 1.0f};  // another scale alone changes rewards
    const TickResult& found = host.run(arguments, rollout.inputs_of(tick, *frames));
    frames = &found.state.host.view;
    for (int env = 0; env < kEnvs; ++env) {
      ends += counter_of(frames->counter[kEndReason], env) == reason ? 1 : 0;
      if (found.state.host.outcomes[env].kind != kVerdictGood) continue;  // rewards are 0 there
      rewards.insert(component(frames->episode[kTermReward], env, 0));
      observed.insert(component(frames->episode[kObservation], env, 0));
    }
  }
  const bool is_reward = row.kind == TermKind::kReward && row.name != "alive";
  const bool is_end = row.kind == TermKind::kTermination;
  if (is_reward && rewards.size() < 2) failures.push_back("vacuous: the reward never changes");
  if (row.kind == TermKind::kObservation && observed.size() < 2) {
    failures.push_back("vacuous: the observation never changes");
  }
  if (is_end && (ends == 0 || ends == kEnvs * static_cast<int>(kTicks))) {
    failures.push_back("vacuous: the end comes " + std::to_string(ends) + " times");
  }
}

}  // namespace

const std::vector<TermRow>& certification_table() {
  constexpr TermKind kObserve = TermKind::kObservation, kReward = TermKind::kReward;
  constexpr TermKind kEnd = TermKind::kTermination;
  constexpr Draws kNoise = Draws::kInUpdate, kNever = Draws::kNever;
  static const std::vector<TermRow> table = {
      {kObserve, "gyro", kNoise},
      {kObserve, "projected_gravity", kNoise},
      {kObserve, "joint_position", kNoise},
      {kObserve, "joint_velocity", kNoise},
      {kObserve, "last_action", kNoise},
      {kObserve, "command", kNoise},
      {kObserve, "gait_phase", kNoise},
      {kObserve, "local_linear_velocity", kNoise},
      {kObserve, "pole_direction", kNoise},
      {kObserve, "pole_velocity", kNoise},
      {kObserve, "motion_joint_position", kNoise},
      {kObserve, "motion_joint_velocity", kNoise},
      {kObserve, "anchor_position", kNoise},
      {kObserve, "anchor_orientation", kNoise},
      {kObserve, "body_position", kNoise},
      {kObserve, "body_orientation", kNoise},
      {kReward, "tracking_lin_vel"},
      {kReward, "tracking_ang_vel"},
      {kReward, "penalty_ang_vel_xy"},
      {kReward, "penalty_orientation"},
      {kReward, "penalty_action_rate"},
      {kReward, "pose"},
      {kReward, "penalty_feet_ori"},
      {kReward, "feet_phase"},
      {kReward, "alive"},
      {kReward, "upright"},
      {kReward, "forward_progress"},
      {kReward, "under_speed"},
      {kReward, "lin_vel_z"},
      {kReward, "base_height"},
      {kReward, "upper_body_pose"},
      {kReward, "penalty_close_feet_xy"},
      {kReward, "feet_phase_contrast"},
      {kReward, "feet_phase_contact"},
      {kReward, "feet_double_stance"},
      {kReward, "feet_air_time"},
      {kReward, "motion_global_root_pos"},
      {kReward, "motion_global_root_ori"},
      {kReward, "motion_body_pos"},
      {kReward, "motion_body_ori"},
      {kReward, "motion_body_lin_vel"},
      {kReward, "motion_body_ang_vel"},
      {kReward, "motion_joint_pos"},
      {kReward, "motion_joint_vel"},
      {kReward, "action_rate_l2"},
      {kReward, "joint_limit"},
      {kReward, "undesired_contacts"},
      {kReward, "my_tracking", kNever, "exp(-norm2(cmd.xy - base_lin_vel.xy) / 0.25)"},
      {kReward, "my_joints", kNever, "sum(abs(joint_pos) * square(joint_vel)) / 29"},
      {kReward, "my_bodies", kNever, "sum(body_pos * body_lin_vel) - sum(body_quat)"},
      {kReward, "my_functions", kNever,
       "sqrt(abs(root_pos.x)) + log(2 + cmd.x) * sin(gait_phase[0]) + cos(cmd.y)"},
      {kReward, "my_conditions", kNever,
       "(cmd.x > 0) * min(cmd.x, 0.5) + (cmd.x <= 0) * max(-cmd.x, 0.25) + (cmd.y != cmd.z)"},
      {kReward, "my_actions", kNever, "-norm2(action - last_action) * (sum(foot_contact) >= 1)"},
      {kEnd, "tilt"},
      {kEnd, "low_root"},
      {kEnd, "time_out"},
      {kEnd, "physics_unstable"},
      {kEnd, "non_finite"},
      {kEnd, "anchor_height"},
      {kEnd, "anchor_tilt"},
      {kEnd, "end_effector_height"},
      {kEnd, "clip_end"},
      {TermKind::kCommand, "velocity", Draws::kInUpdate},
      {TermKind::kCommand, "velocity", Draws::kInUpdate, "", true},
      {TermKind::kCommand, "motion", Draws::kAtReset},
      {TermKind::kEvent, "push", Draws::kInUpdate},
      {TermKind::kEvent, "gains", Draws::kAtReset},
      {TermKind::kCurriculum, "penalty"},
      {TermKind::kCurriculum, "frame_sampler", Draws::kAtReset},
  };
  return table;
}

std::vector<std::string> certify(const TermRow& row, const BackendApi& api) {
  std::vector<std::string> failures = certify_bits(row, api);
  check_team(row, failures);
  check_draws(
      row.draws == Draws::kInUpdate, "in the update step",
      [&](bool is_random, uint64_t seed) { return digest_of_run(row, is_random, seed); }, failures);
  if (row.draws == Draws::kAtReset) {
    check_draws(
        true, "at a reset",
        [&](bool is_random, uint64_t seed) { return digest_of_starts(row, is_random, seed); },
        failures);
  }
  check_vacuous(row, failures);
  return failures;
}

}  // namespace millrace
