// One environment's tick after physics: seven stages in a fixed order, one source for every
// backend.
//
//   1 advance the episode   2 terminations   3 rewards   4 commands, interval events
//   5 observations          6 pack the row   7 publish carriers and the outcome
//
// The row is packed before any reset, so its next_observation is the true last one of an episode.
// A row is always finite: an unstable or non-finite tick becomes {next := current, reward 0, done
// 1, truncated 0}. A done environment draws no command and no push: its reset does. Reads the sim
// fields; owns the episode and counter fields. Environments are independent: any thread may run any
// of them, each once per tick. A team of lanes shares one environment (team.h); all lanes make the
// same calls. Freestanding C++14, no double.
#pragma once

#include "expression_body.h"
#include "philox.h"
#include "portable.h"
#include "state.h"
#include "team.h"
#include "terms.h"
#include "verdict.h"

namespace millrace {

enum { kMaxObservationSlots = 16, kMaxRewardSlots = 24, kMaxTerminationSlots = 8 };

struct ObservationSlot {
  int term;
  int offset;  // first component in the vector
  int dim;
  float scale;
  float noise;  // half-width, added before the scale; 0 = clean
};

struct ObservationLayout {
  ObservationSlot slot[kMaxObservationSlots];
  int count;
  int dim;
};

struct RewardSlot {
  int term;
  float weight;
  TermParams params;
  ExpressionRange expression;  // instead of the term, if it has instructions
};

struct TerminationSlot {
  int term;
  int truncates;
  TermParams params;
};

struct CommandParams {
  int enabled;
  int resample_ticks;  // 0 = only at reset
  float linear_x_low, linear_x_high;
  float linear_y_low, linear_y_high;
  float angular_low, angular_high;
  float minimum_speed;       // m/s, slower linear commands become 0
  float standing_share;      // of commands that ask to stand still
  int heading_mode;          // the yaw rate steers towards a drawn heading
  float heading_stiffness;   // 1/s
  float heading_rate_limit;  // rad/s
};

struct PushParams {
  int enabled;
  int interval_ticks_low, interval_ticks_high;
  float velocity[6];  // m/s and rad/s, half-widths in world axes
};

struct GaitParams {
  int enabled;
  float phase_step;  // rad per tick
  int independent;   // feet start at independent phases instead of half a cycle apart
};

// A task as a device program takes it: no pointers, fixed for a run.
struct UpdateParams {
  TermConstants constants;
  ObservationLayout observation;
  ObservationLayout critic;
  RewardSlot reward[kMaxRewardSlots];
  int reward_count;
  ExpressionCode expressions;
  TerminationSlot termination[kMaxTerminationSlots];
  int termination_count;
  int unstable_reason, non_finite_reason;  // termination index + 1
  int max_steps;
  int num_actions;
  CommandParams command;
  PushParams push;
  GaitParams gait;
};

// What differs from tick to tick.
struct UpdateArguments {
  u64 seed;
  u64 tick;
  float penalty_scale;  // of every negative reward weight
};

// The verdict on one environment's tick.
struct UpdateOutcome {
  int kind;             // VerdictKind
  int term;             // as Verdict says: a component, or a slot of the rewards
  float command_error;  // m/s, commanded minus actual horizontal velocity, during the tick
};

struct EpisodeEnd {
  int done, truncated, reason;
};

// Offsets in the packed row (layout.h gives the order and the reason).
struct RowOffsets {
  int next_observation, action, reward, done, truncated, critic, next_critic;
};

MR_FN RowOffsets row_offsets(MR_CONSTANT const UpdateParams& p) {
  RowOffsets at;
  at.next_observation = p.observation.dim;
  at.action = 2 * p.observation.dim;
  at.reward = at.action + p.num_actions;
  at.done = at.reward + 1;
  at.truncated = at.reward + 2;
  at.critic = at.reward + 3;
  at.next_critic = at.critic + p.critic.dim;
  return at;
}

// ---- commands ----

// The signed angle from the root's heading to the target, in [-pi, pi].
MR_FN float heading_error(FieldView root_quaternion, int env, float target) {
  const float w = component(root_quaternion, env, 0);
  const float x = component(root_quaternion, env, 1);
  const float y = component(root_quaternion, env, 2);
  const float z = component(root_quaternion, env, 3);
  const float forward_x = 1.0f - 2.0f * (y * y + z * z);
  const float forward_y = 2.0f * (x * y + w * z);
  const float length = mr_sqrt(forward_x * forward_x + forward_y * forward_y);
  if (length < 1e-6f) {
    return 0.0f;
  }
  const float cosine = (forward_x * mr_cos(target) + forward_y * mr_sin(target)) / length;
  const float sine = forward_x * mr_sin(target) - forward_y * mr_cos(target);
  const float angle = mr_acos(clamped(cosine, -1.0f, 1.0f));
  return sine < 0.0f ? -angle : angle;
}

MR_FN void steer_to_heading(MR_CONSTANT const CommandParams& p, MR_CONSTANT const StateView& state,
                            int env) {
  const FieldView command = state.episode[kCommand];
  const float error = heading_error(state.sim[kRootQuaternion], env, component(command, env, 3));
  const float rate =
      clamped(p.heading_stiffness * error, -p.heading_rate_limit, p.heading_rate_limit);
  component(command, env, 2) = component(command, env, 4) > 0.5f ? 0.0f : rate;
}

MR_FN void draw_command(MR_CONSTANT const CommandParams& p,
                        MR_CONSTANT const UpdateArguments& arguments,
                        MR_CONSTANT const StateView& state, int env) {
  const RandomSource source =
      random_source(arguments.seed, kStreamCommand, (u32)env, arguments.tick);
  const FieldView command = state.episode[kCommand];
  float x = random_uniform(source, 0, p.linear_x_low, p.linear_x_high);
  float y = random_uniform(source, 1, p.linear_y_low, p.linear_y_high);
  float rate = random_uniform(source, 2, p.angular_low, p.angular_high);
  const bool stand = random_uniform(source, 4, 0.0f, 1.0f) < p.standing_share;
  if (stand || x * x + y * y <= squared(p.minimum_speed)) {
    x = 0.0f;
    y = 0.0f;
  }
  if (stand) {
    rate = 0.0f;
  }
  component(command, env, 0) = x;
  component(command, env, 1) = y;
  component(command, env, 2) = rate;
  component(command, env, 3) = random_uniform(source, 3, -3.14159265358979f, 3.14159265358979f);
  component(command, env, 4) = stand ? 1.0f : 0.0f;
  counter_of(state.counter[kCommandTimer], env) = p.resample_ticks;
}

MR_FN float command_error(MR_CONSTANT const StateView& state, int env) {
  const FieldView velocity = state.sim[kLocalLinearVelocity];
  const FieldView command = state.episode[kCommand];
  return mr_sqrt(squared(component(command, env, 0) - component(velocity, env, 0)) +
                 squared(component(command, env, 1) - component(velocity, env, 1)));
}

// ---- interval events ----

MR_FN void restart_push_timer(MR_CONSTANT const PushParams& p, RandomSource source,
                              MR_CONSTANT const StateView& state, int env) {
  const u32 span = (u32)(p.interval_ticks_high - p.interval_ticks_low + 1);
  counter_of(state.counter[kPushTimer], env) =
      p.interval_ticks_low + (int)random_index(source, 2, span);
}

// Leaves a world-frame velocity change, to be applied before the next physics step.
MR_FN void push_when_due(MR_CONSTANT const PushParams& p,
                         MR_CONSTANT const UpdateArguments& arguments,
                         MR_CONSTANT const StateView& state, int env) {
  MR_DEVICE int& timer = counter_of(state.counter[kPushTimer], env);
  timer -= 1;
  if (timer > 0) {
    return;
  }
  const RandomSource source = random_source(arguments.seed, kStreamEvent, (u32)env, arguments.tick);
  for (u32 i = 0; i < 6; ++i) {
    const u32 draw = i < 2 ? i : i + 1;  // draw 2 is the timer's
    component(state.episode[kPushVelocity], env, (int)i) =
        random_uniform(source, draw, -p.velocity[i], p.velocity[i]);
  }
  restart_push_timer(p, source, state, env);
}

MR_FN void clear_push(MR_CONSTANT const StateView& state, int env) {
  const FieldView push = state.episode[kPushVelocity];
  for (int i = 0; i < push.dim; ++i) {
    component(push, env, i) = 0.0f;
  }
}

// ---- observations ----

// The first component of a slot that is this lane's, so that lanes go on across slots.
template <class Team>
MR_FN int first_of(MR_THREAD const Team& team, int offset) {
  const int ahead = (team.lane() - offset) % team.size();
  return ahead < 0 ? ahead + team.size() : ahead;
}

// Writes a whole vector to `out`. Component i takes draw first_draw + i of the noise stream, so
// which components are noisy never moves the others' noise. first_draw is a multiple of 4.
template <class Team>
MR_FN void observe(MR_THREAD const Team& team, MR_CONSTANT const ObservationLayout& layout,
                   MR_CONSTANT const TermConstants& constants, MR_CONSTANT const StateView& state,
                   MR_CONSTANT const UpdateArguments& arguments, int env, u32 first_draw,
                   FieldView out) {
  const RandomSource source =
      random_source(arguments.seed, kStreamObservationNoise, (u32)env, arguments.tick);
  Philox4 block = {{0, 0, 0, 0}};
  u32 block_index = ~0u;
  for (int k = 0; k < layout.count; ++k) {
    const ObservationSlot slot = layout.slot[k];
    for (int i = first_of(team, slot.offset); i < slot.dim; i += team.size()) {
      float value = observation_term(slot.term, constants, state, env, i);
      if (slot.noise > 0.0f) {
        const u32 draw = first_draw + (u32)(slot.offset + i);
        if (draw >> 2 != block_index) {
          block_index = draw >> 2;
          block = random_block(source, block_index);
        }
        value += slot.noise * (2.0f * unit_float(block.word[draw & 3u]) - 1.0f);
      }
      component(out, env, slot.offset + i) = value * slot.scale;
    }
  }
}

// A view on `dim` floats at `data`, for one environment whatever its index.
MR_FN FieldView single_row(MR_DEVICE float* data, int dim) {
  FieldView view;
  view.data = data;
  view.dim = dim;
  view.component_stride = 1;
  view.env_stride = 0;
  return view;
}

template <class Team>
MR_FN void copy_row(MR_THREAD const Team& team, FieldView from, FieldView to, int env) {
  for (int i = team.lane(); i < from.dim; i += team.size()) {
    component(to, env, i) = component(from, env, i);
  }
}

// The first non-finite component, or -1.
template <class Team>
MR_FN int first_non_finite(MR_THREAD const Team& team, FieldView values, int env) {
  int first = values.dim;
  for (int i = team.lane(); i < values.dim && first == values.dim; i += team.size()) {
    if (!mr_isfinite(component(values, env, i))) {
      first = i;
    }
  }
  first = team.minimum(first);
  return first < values.dim ? first : -1;
}

// ---- stages ----

MR_FN void advance_episode(MR_CONSTANT const UpdateParams& p, MR_CONSTANT const StateView& state,
                           int env) {
  counter_of(state.counter[kStep], env) += 1;
  counter_of(state.counter[kTicksLived], env) += 1;
  clear_push(state, env);  // the physics step took it
  if (p.gait.enabled) {
    for (int foot = 0; foot < 2; ++foot) {
      MR_DEVICE float& phase = component(state.episode[kGaitPhase], env, foot);
      phase += p.gait.phase_step;
      phase = phase >= 6.28318530717958f ? phase - 6.28318530717958f : phase;
    }
  }
}

MR_FN EpisodeEnd check_terminations(MR_CONSTANT const UpdateParams& p,
                                    MR_CONSTANT const StateView& state, int env) {
  EpisodeEnd end = {0, 0, 0};
  for (int k = 0; k < p.termination_count; ++k) {
    MR_CONSTANT const TerminationSlot& slot = p.termination[k];
    if (!termination_term(slot.term, slot.params, p.constants, state, env, p.max_steps)) {
      continue;
    }
    // A true end outranks a time limit: the row's value must not be bootstrapped.
    const bool outranks = end.done && end.truncated && !slot.truncates;
    if (!end.done || outranks) {
      end.done = 1;
      end.truncated = slot.truncates;
      end.reason = k + 1;
    }
  }
  return end;
}

MR_FN float reward_value(MR_CONSTANT const UpdateParams& p, MR_CONSTANT const RewardSlot& slot,
                         MR_CONSTANT const StateView& state, int env) {
  return slot.expression.count > 0
             ? evaluate_expression(p.expressions, slot.expression, p.constants, state, env)
             : reward_term(slot.term, slot.params, p.constants, state, env);
}

// Each lane computes whole terms; all of them add up. Returns the tick's reward; `bad_slot` is the
// first non-finite term, or -1.
template <class Team>
MR_FN float sum_rewards(MR_THREAD const Team& team, MR_CONSTANT const UpdateParams& p,
                        MR_CONSTANT const UpdateArguments& arguments,
                        MR_CONSTANT const StateView& state, int env, MR_THREAD int& bad_slot) {
  for (int k = team.lane(); k < p.reward_count; k += team.size()) {
    MR_CONSTANT const RewardSlot& slot = p.reward[k];
    const float scale = slot.weight < 0.0f ? arguments.penalty_scale : 1.0f;
    const float value =
        slot.weight * scale * p.constants.tick_seconds * reward_value(p, slot, state, env);
    component(state.episode[kTermReward], env, k) = value;
  }
  team.sync();
  float sum = 0.0f;
  bad_slot = -1;
  for (int k = 0; k < p.reward_count; ++k) {
    sum += component(state.episode[kTermReward], env, k);
    if (bad_slot < 0 && !mr_isfinite(sum)) {
      bad_slot = k;
    }
  }
  return sum;
}

MR_FN void advance_commands_and_events(MR_CONSTANT const UpdateParams& p,
                                       MR_CONSTANT const UpdateArguments& arguments,
                                       MR_CONSTANT const StateView& state, int env) {
  if (p.command.enabled) {
    if (p.command.resample_ticks > 0) {
      MR_DEVICE int& timer = counter_of(state.counter[kCommandTimer], env);
      timer -= 1;
      if (timer <= 0) {
        draw_command(p.command, arguments, state, env);
      }
    }
    if (p.command.heading_mode) {
      steer_to_heading(p.command, state, env);
    }
  }
  if (p.push.enabled) {
    push_when_due(p.push, arguments, state, env);
  }
}

// A row that may be learnt from although its tick went wrong.
template <class Team>
MR_FN void neutralise_row(MR_THREAD const Team& team, MR_CONSTANT const UpdateParams& p,
                          MR_CONSTANT const StateView& state, int env, MR_DEVICE float* row) {
  const RowOffsets at = row_offsets(p);
  copy_row(team, state.episode[kObservation],
           single_row(row + at.next_observation, p.observation.dim), env);
  copy_row(team, state.episode[kCritic], single_row(row + at.next_critic, p.critic.dim), env);
  for (int i = team.lane(); i < p.num_actions; i += team.size()) {
    MR_DEVICE float& action = row[at.action + i];
    action = mr_isfinite(action) ? action : 0.0f;
  }
  for (int k = team.lane(); k < p.reward_count; k += team.size()) {
    component(state.episode[kTermReward], env, k) = 0.0f;
  }
}

// The next tick is compared with the next frame.
MR_FN void advance_frame(MR_CONSTANT const StateView& state, int env) {
  counter_of(state.counter[kFrame], env) += state.motion.frames > 0 ? 1 : 0;
}

template <class Team>
MR_FN void publish(MR_THREAD const Team& team, MR_CONSTANT const UpdateParams& p,
                   MR_CONSTANT const StateView& state, int env, EpisodeEnd end, float reward,
                   MR_DEVICE float* row) {
  const RowOffsets at = row_offsets(p);
  copy_row(team, single_row(row + at.next_observation, p.observation.dim),
           state.episode[kObservation], env);
  copy_row(team, single_row(row + at.next_critic, p.critic.dim), state.episode[kCritic], env);
  copy_row(team, single_row(row + at.action, p.num_actions), state.episode[kLastAction], env);
  if (!team.leads()) {
    return;
  }
  row[at.reward] = reward;
  row[at.done] = (float)end.done;
  row[at.truncated] = (float)end.truncated;
  component(state.episode[kReward], env, 0) = reward;
  component(state.episode[kReturn], env, 0) += reward;
  counter_of(state.counter[kDone], env) = end.done;
  counter_of(state.counter[kTruncated], env) = end.truncated;
  counter_of(state.counter[kEndReason], env) = end.reason;
  if (!end.done) {
    advance_frame(state, env);  // a done environment's reset still asks where it failed
  }
  if (p.gait.enabled) {
    for (int foot = 0; foot < 2; ++foot) {
      MR_DEVICE float& seconds = component(state.episode[kFootAirTime], env, foot);
      seconds = component(state.sim[kFootContact], env, foot) > 0.5f
                    ? 0.0f
                    : seconds + p.constants.tick_seconds;
    }
  }
}

// `row` is this environment's packed row (p.observation.dim * 2 + … floats, contiguous).
template <class Team>
MR_FN UpdateOutcome update_environment(MR_THREAD const Team& team,
                                       MR_CONSTANT const UpdateParams& p,
                                       MR_CONSTANT const UpdateArguments& arguments,
                                       MR_CONSTANT const StateView& state, int env,
                                       MR_DEVICE float* row) {
  const RowOffsets at = row_offsets(p);
  UpdateOutcome outcome = {kVerdictGood, 0, 0.0f};
  float reward = 0.0f;

  if (team.leads()) {
    advance_episode(p, state, env);
  }
  team.sync();
  EpisodeEnd end = check_terminations(p, state, env);
  copy_row(team, state.episode[kObservation], single_row(row, p.observation.dim), env);
  copy_row(team, state.episode[kCritic], single_row(row + at.critic, p.critic.dim), env);
  copy_row(team, state.episode[kAction], single_row(row + at.action, p.num_actions), env);

  const int bad_action = first_non_finite(team, state.episode[kAction], env);
  if (component(state.sim[kUnstable], env, 0) > 0.5f) {
    outcome.kind = kVerdictPhysics;
    end = {1, 0, p.unstable_reason};
  } else if (bad_action >= 0) {
    outcome = {kVerdictAction, bad_action, 0.0f};
  } else {
    if (p.command.enabled) {
      outcome.command_error = command_error(state, env);
    }
    int bad_slot;
    reward = sum_rewards(team, p, arguments, state, env, bad_slot);
    team.sync();  // the command of the tick was read
    if (!end.done && team.leads()) {
      advance_commands_and_events(p, arguments, state, env);
    }
    team.sync();
    const FieldView next = single_row(row + at.next_observation, p.observation.dim);
    const FieldView next_critic = single_row(row + at.next_critic, p.critic.dim);
    observe(team, p.observation, p.constants, state, arguments, env, 0, next);
    observe(team, p.critic, p.constants, state, arguments, env, 0, next_critic);
    team.sync();
    const int bad_observation = first_non_finite(team, next, env);
    const int bad_critic = first_non_finite(team, next_critic, env);
    if (bad_slot >= 0) {
      outcome = {kVerdictReward, bad_slot, 0.0f};
    } else if (bad_observation >= 0) {
      outcome = {kVerdictObservation, bad_observation, 0.0f};
    } else if (bad_critic >= 0) {
      outcome = {kVerdictCritic, bad_critic, 0.0f};
    }
  }
  if (outcome.kind != kVerdictGood) {
    if (outcome.kind != kVerdictPhysics) {
      end = {1, 0, p.non_finite_reason};
    }
    reward = 0.0f;
    if (team.leads()) {
      clear_push(state, env);
    }
    neutralise_row(team, p, state, env, row);
  }
  team.sync();
  publish(team, p, state, env, end, reward, row);
  return outcome;
}

// ---- reset (after the row is packed) ----

// Starts a new episode of `env`; the physics owner has already reset it, and kFrame is the frame it
// was put into. `first` draws a random
// start on the episode clock, so that the environments do not all end at once.
MR_FN void begin_episode(MR_CONSTANT const UpdateParams& p,
                         MR_CONSTANT const UpdateArguments& arguments,
                         MR_CONSTANT const StateView& state, int env, bool first) {
  const RandomSource source = random_source(arguments.seed, kStreamReset, (u32)env, arguments.tick);
  for (int i = 0; i < p.num_actions; ++i) {
    component(state.episode[kAction], env, i) = 0.0f;
    component(state.episode[kLastAction], env, i) = 0.0f;
  }
  component(state.episode[kReturn], env, 0) = 0.0f;
  counter_of(state.counter[kTicksLived], env) = 0;
  counter_of(state.counter[kStep], env) =
      first ? (int)random_index(source, 16, (u32)p.max_steps) : 0;
  counter_of(state.counter[kDesynchronised], env) = first ? 1 : 0;
  clear_push(state, env);
  if (p.gait.enabled) {
    const float turn = 6.28318530717958f;
    const float left = random_uniform(source, 17, 0.0f, turn);
    float right = p.gait.independent ? random_uniform(source, 18, 0.0f, turn) : left + 0.5f * turn;
    right = right >= turn ? right - turn : right;
    component(state.episode[kGaitPhase], env, 0) = left;
    component(state.episode[kGaitPhase], env, 1) = right;
    component(state.episode[kFootAirTime], env, 0) = 0.0f;
    component(state.episode[kFootAirTime], env, 1) = 0.0f;
  }
  if (p.command.enabled) {
    draw_command(p.command, arguments, state, env);
    if (p.command.heading_mode) {
      steer_to_heading(p.command, state, env);
    }
  }
  if (p.push.enabled) {
    restart_push_timer(
        p.push, random_source(arguments.seed, kStreamEvent, (u32)env, arguments.tick), state, env);
  }
}

// What the policy sees first of a new episode. Its noise is not that of the row packed in the same
// tick: the draws start behind it.
MR_FN void observe_reset(MR_CONSTANT const UpdateParams& p,
                         MR_CONSTANT const UpdateArguments& arguments,
                         MR_CONSTANT const StateView& state, int env) {
  const u32 first_draw = ((u32)p.observation.dim + 3u) & ~3u;
  const SoloTeam team;
  observe(team, p.observation, p.constants, state, arguments, env, first_draw,
          state.episode[kObservation]);
  observe(team, p.critic, p.constants, state, arguments, env, first_draw, state.episode[kCritic]);
  advance_frame(state, env);
}

}  // namespace millrace
