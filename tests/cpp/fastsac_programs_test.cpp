// Tests for cpp/fastsac_programs.cpp: what is recorded. What it computes is compared with a
// reference in learner_fastsac_test.cpp.
#include "fastsac_programs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fastsac_fixture.h"
#include "program_cpu.h"

namespace millrace {
namespace {

std::vector<std::string> kinds_of(const Program& program) {
  std::vector<std::string> kinds;
  for (const Program::Record& record : program.records()) kinds.push_back(kind_of(record.op));
  return kinds;
}

template <typename Wanted>
std::vector<Wanted> ops_of(const Program& program) {
  std::vector<Wanted> found;
  for (const Program::Record& record : program.records()) {
    if (const Wanted* op = std::get_if<Wanted>(&record.op)) found.push_back(*op);
  }
  return found;
}

LearnerSpec plain_spec() {
  LearnerSpec spec = small_spec();
  spec.network = NetworkBody::kPlain;
  spec.critic = CriticKind::kScalar;
  return spec;
}

TEST(FastSacPrograms, RecordsWithoutMemory) {
  const FastSacPrograms programs(small_spec(), small_layout());
  EXPECT_GT(programs.workspace.bytes(), 0u);
  EXPECT_TRUE(programs.workspace.addresses().empty());
}

// Each update of a critic moves its target; the actor's has none.
TEST(FastSacPrograms, TheFirstStepOpensTheVerdictAndStatisticsComeLast) {
  const FastSacPrograms programs(small_spec(), small_layout());
  for (const bool with_actor : {false, true}) {
    const Program& program = programs.program(with_actor);
    const size_t networks = with_actor ? 2 : 1;
    const std::vector<std::string> kinds = kinds_of(program);
    const auto steps = ops_of<AdamWOp>(program);
    ASSERT_EQ(steps.size(), networks);
    EXPECT_EQ(kinds.back(), kind_of(StatisticsOp{}));
    for (size_t i = 0; i < networks; ++i) {
      EXPECT_TRUE(steps[i].rows.empty());
      EXPECT_EQ(steps[i].finite.carrier, programs.finite.carrier);
      EXPECT_EQ(steps[i].opens, i == 0);
    }
    EXPECT_EQ(steps[0].target.carrier, programs.target.carrier);
    EXPECT_EQ(steps[0].count, programs.critic.parameter_count());
    EXPECT_EQ(ops_of<TemperatureOp>(program).size(), 1u);
    if (!with_actor) continue;
    EXPECT_FALSE(steps[1].target.used());
    EXPECT_EQ(steps[1].count, programs.actor.parameter_count());
  }
}

// The actor's way to its new action waits for nothing of the critics', nor they for it, up to the
// critics' loss.
TEST(FastSacPrograms, TheNewActionIsMadeBesideTheCritics) {
  const FastSacPrograms programs(small_spec(), small_layout());
  const std::vector<Program::Record>& records = programs.whole_program->records();
  const auto all_before = [&](size_t at) {
    std::vector<bool> before(records.size(), false);
    before[at] = true;
    for (size_t i = at + 1; i-- > 0;) {
      if (!before[i]) continue;
      for (const int one : records[i].after) before[static_cast<size_t>(one)] = true;
    }
    return before;
  };
  std::vector<size_t> actions;
  size_t loss = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (std::holds_alternative<SampleActionOp>(records[i].op)) actions.push_back(i);
    if (std::holds_alternative<CriticLossOp>(records[i].op)) loss = i;
  }
  ASSERT_EQ(actions.size(), 2u);
  ASSERT_GT(loss, actions[1]);
  EXPECT_TRUE(all_before(loss)[actions[0]]);
  EXPECT_FALSE(all_before(loss)[actions[1]]);
  EXPECT_FALSE(all_before(actions[1])[actions[0]]);
  EXPECT_NE(records[actions[0]].lane, records[actions[1]].lane);
}

TEST(FastSacPrograms, TheTwoActionsOfAnUpdateDrawDifferentNormals) {
  const FastSacPrograms programs(small_spec(), small_layout());
  EXPECT_EQ(ops_of<SampleActionOp>(*programs.critic_program).size(), 1u);
  const auto actions = ops_of<SampleActionOp>(*programs.whole_program);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(actions[0].first_normal, 0u);
  EXPECT_EQ(actions[1].first_normal, static_cast<u32>(small_layout().action_dim));
  EXPECT_EQ(actions[1].stream, actions[0].stream);
  EXPECT_EQ(ops_of<ProjectTargetOp>(*programs.critic_program)[0].groups, 2);
  EXPECT_EQ(ops_of<CriticLossOp>(*programs.critic_program)[0].groups, 2);
}

// A value is one number in a head that is filled up; what fills it is no atom.
TEST(FastSacPrograms, ScalarCriticsHaveOneValueEach) {
  const FastSacPrograms programs(plain_spec(), small_layout());
  EXPECT_EQ(programs.critic.shape().outputs, 1);
  const auto target = ops_of<ScalarTargetOp>(*programs.critic_program);
  ASSERT_EQ(target.size(), 1u);
  EXPECT_EQ(target[0].head.bias_distance, static_cast<uint64_t>(programs.critic.head_width()));
  EXPECT_EQ(target[0].head.bias.carrier, programs.target.carrier);
  EXPECT_EQ(target[0].head.weight.carrier, programs.target.carrier);
  EXPECT_EQ(ops_of<ScalarCriticLossOp>(*programs.critic_program).size(), 1u);
  EXPECT_EQ(ops_of<ScalarActorLossOp>(*programs.whole_program).size(), 1u);
  EXPECT_TRUE(ops_of<CriticLossOp>(*programs.critic_program).empty());
  EXPECT_TRUE(ops_of<DenseForwardOp>(*programs.critic_program).empty());
}

TEST(FastSacPrograms, SymmetryMirrorsEveryVectorAndGathersHalf) {
  LearnerSpec spec = small_spec();
  const FastSacPrograms plain(spec, small_layout());
  const UnpackOp op = ops_of<UnpackOp>(*plain.critic_program).at(0);
  EXPECT_EQ(op.source_rows, spec.batch);
  for (const UnpackPart& part : op.parts) EXPECT_FALSE(part.mirror_source.used());
  spec.symmetry = true;
  const FastSacPrograms programs(spec, small_layout());
  for (const Program* program : programs.all()) {
    const UnpackOp mirrored = ops_of<UnpackOp>(*program).at(0);
    EXPECT_EQ(mirrored.rows, spec.batch);
    EXPECT_EQ(mirrored.source_rows, spec.batch / 2);
    for (const UnpackPart& part : mirrored.parts) {
      EXPECT_TRUE(part.mirror_source.used());
      EXPECT_TRUE(part.mirror_sign.used());
    }
  }
}

TEST(FastSacPrograms, TheNormaliserStandsBehindThePolicysParameters) {
  LearnerSpec spec = small_spec();
  const FastSacPrograms plain(spec, small_layout());
  EXPECT_FALSE(plain.observation_mean.used());
  spec.observation_normalizer = true;
  const FastSacPrograms programs(spec, small_layout());
  EXPECT_EQ(programs.observation_mean.carrier, programs.actor_state.parameters.carrier);
  EXPECT_EQ(programs.observation_mean.offset, programs.actor.parameter_count());
  EXPECT_EQ(
      programs.observation_scale.offset,
      programs.actor.parameter_count() + static_cast<uint64_t>(small_layout().observation_dim));
  EXPECT_TRUE(programs.policy_shape.is_normalised);
  // Actions are mirrored, never normalised.
  int normalised = 0;
  const UnpackOp op = ops_of<UnpackOp>(*programs.critic_program).at(0);
  for (const UnpackPart& part : op.parts) {
    const bool is_action = part.column == small_layout().action();
    EXPECT_EQ(part.mean.used(), !is_action);
    normalised += part.mean.used() ? 1 : 0;
  }
  EXPECT_EQ(normalised, 3);
}

// Every carrier after both programs, records in one of two orders that keep `after`:
// always the latest record that may run, or the first.
std::vector<std::vector<char>> carriers_after(const LearnerSpec& spec, bool latest_first) {
  FastSacPrograms programs(spec, small_layout());
  programs.workspace.allocate();
  const Workspace& workspace = programs.workspace;
  programs.actor.initialise(workspace.floats(programs.actor_state.parameters), 1, 0, false);
  programs.critic.initialise(workspace.floats(programs.critic_state.parameters), 1, 100, false);
  programs.critic.initialise(workspace.floats(programs.target), 1, 200, false);
  const std::vector<float> rows = random_rows(small_layout(), spec.batch, 3);
  Arguments arguments{};
  arguments.rows = rows.data();
  arguments.row_stride = static_cast<u64>(small_layout().width());
  arguments.actor_learning_rate = arguments.critic_learning_rate = 1e-2f;
  arguments.alpha_learning_rate = arguments.target_rate = 0.1f;
  for (const Program* program : programs.all()) {
    const std::vector<Program::Record>& records = program->records();
    Program reordered("reordered", workspace);
    std::vector<bool> is_done(records.size(), false);
    const auto may_run = [&](size_t i) {
      return !is_done[i] && std::all_of(records[i].after.begin(), records[i].after.end(),
                                        [&](int before) { return is_done[size_t(before)]; });
    };
    while (reordered.records().size() < records.size()) {
      size_t next = records.size();
      for (size_t i = 0; i < records.size() && (latest_first || next == records.size()); ++i) {
        if (may_run(i)) next = i;
      }
      reordered.record(records[next].op);
      is_done[next] = true;
    }
    run_on_cpu(reordered, {workspace, arguments});
  }
  std::vector<std::vector<char>> all;
  for (size_t i = 0; i < workspace.carriers().size(); ++i) {
    const Workspace::Carrier& carrier = workspace.carriers()[i];
    const char* bytes = static_cast<const char*>(workspace.addresses()[i]);
    all.emplace_back(bytes, bytes + carrier.count * bytes_of(carrier.dtype));
  }
  return all;
}

TEST(FastSacPrograms, AnyOrderThatKeepsWhatRunsAfterWhatHasTheSameBits) {
  for (const LearnerSpec& spec : {small_spec(), plain_spec()}) {
    const auto in_order = carriers_after(spec, false), latest_first = carriers_after(spec, true);
    const FastSacPrograms programs(spec, small_layout());
    for (size_t i = 0; i < in_order.size(); ++i) {
      EXPECT_EQ(in_order[i], latest_first[i]) << programs.workspace.carriers()[i].name;
    }
  }
}

}  // namespace
}  // namespace millrace
