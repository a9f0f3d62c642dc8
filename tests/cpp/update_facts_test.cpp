// Tests for cpp/update_facts.cpp: what it states is held against what the update step does.
#include "update_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "draw_counter.h"
#include "fake_cuda.h"
#include "graph_preflight.h"
#include "motion_clip.h"
#include "run_fixture.h"
#include "sim_parts.h"
#include "update_place.h"

namespace millrace {
namespace {

using draw_counter::Words;
using nlohmann::json;

constexpr int kEnvs = 4;

std::vector<json> configurations() {
  return {cartpole_config(),
          g1_config(),
          g1_config({{"env", {{"noise", false}}}}),
          g1_config({{"env", {{"events", false}}}}),
          motion_config(),
          motion_config({{"env", {{"noise", false}, {"motion_start", "mixed"}}}})};
}

struct Robots {
  json config;
  SimParts parts;
  std::vector<float> rows;

  explicit Robots(const json& configuration)
      : config(configuration),
        parts(config, kEnvs, 1, 3),
        rows(static_cast<size_t>(kEnvs * parts.task->layout.width())) {
    parts.update->start_episodes(*parts.physics, false);
  }
  const Task& task() const { return *parts.task; }
  const StateView& state() const { return parts.update->state(); }
  ProgramFacts facts() const { return update_facts(task(), parse_plan(config), "cpu"); }
  void set(CounterField field, int value) {
    for (int env = 0; env < kEnvs; ++env) counter_of(state().counter[field], env) = value;
  }
  // A tick in which everything is due.
  void make_due() {
    set(kCommandTimer, 1);
    set(kPushTimer, 1);
  }
};

void take_most(Words& most, const Words& words) {
  for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], words[i]);
}

Words stated(const ProgramFacts& facts, int TermFacts::*draws) {
  Words words = {};
  for (const TermFacts& term : facts.terms) {
    if (term.stream) words[static_cast<size_t>(*term.stream)] += term.*draws;
  }
  return words;
}

const TermFacts& term_named(const ProgramFacts& facts, const std::string& subject) {
  for (const TermFacts& term : facts.terms) {
    if (term.subject() == subject) return term;
  }
  throw Failure(Code::kBug, "no term " + subject);
}

const CarrierFacts& carrier_named(const ProgramFacts& facts, const std::string& name) {
  for (const CarrierFacts& carrier : facts.carriers) {
    if (carrier.name == name) return carrier;
  }
  throw Failure(Code::kBug, "no carrier " + name);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(UpdateFacts, DrawsOfATickAreThoseThatTheProgramTakes) {
  for (const json& config : configurations()) {
    Robots robots(config);
    robots.make_due();
    robots.parts.physics->step(robots.parts.update->actions(), 0);
    const UpdateArguments arguments = {3, 0, 1.0f};
    Words most = {};
    for (int env = 0; env < kEnvs; ++env) {
      take_most(most, draw_counter::count_tick(&robots.task().params, &arguments, &robots.state(),
                                               env, robots.rows.data()));
      EXPECT_EQ(counter_of(robots.state().counter[kDone], env), 0);
    }
    EXPECT_EQ(most, stated(robots.facts(), &TermFacts::draws_per_tick)) << config["task"];
  }
}

TEST(UpdateFacts, DrawsOfAResetAreThoseThatItTakes) {
  for (const json& config : configurations()) {
    Robots robots(config);
    const Task& task = robots.task();
    const UpdateArguments arguments = {3, 7, 1.0f};
    Words words = draw_counter::count_reset(&task.params, &arguments, &robots.state(), 0);
    std::vector<double> qpos(task.reset.qpos.size()), qvel(static_cast<size_t>(task.reset.nv));
    if (task.motion) {
      const MotionView motion = task.motion->view();
      const Words start = draw_counter::count_motion_start(&task.reset, &task.motion_reset, &motion,
                                                           qpos.data(), qvel.data());
      for (size_t i = 0; i < words.size(); ++i) words[i] += start[i];
    } else if (task.reset.randomise_gains) {  // the pose of these starts is no term
      words[kStreamGainRandomisation] = draw_counter::count_start(
          &task.reset, qpos.data(), qvel.data())[kStreamGainRandomisation];
    }
    Words expected = stated(robots.facts(), &TermFacts::draws_per_reset);
    EXPECT_EQ(expected[kStreamFrameSampler],
              task.motion ? frame_draws(task.frame_sampler.mode) : 0);
    expected[kStreamFrameSampler] = 0;  // frame_sampler.cpp takes them
    EXPECT_EQ(words, expected) << config["task"];
  }
}

TEST(UpdateFacts, IndependentFeetDrawTwice) {
  Robots robots(g1_config());
  Task task = robots.task();
  task.params.gait.independent = 1;
  const UpdateArguments arguments = {3, 7, 1.0f};
  const Words words = draw_counter::count_reset(&task.params, &arguments, &robots.state(), 0);
  const ProgramFacts facts = update_facts(task, parse_plan(robots.config), "cpu");
  EXPECT_EQ(term_named(facts, "gait phase").draws_per_reset, 2);
  EXPECT_EQ(words[kStreamReset], 2);
}

TEST(UpdateFacts, ListsEveryCarrierWithItsBytes) {
  for (const json& config : {cartpole_config(), g1_config(), motion_config()}) {
    Robots robots(config);
    const ProgramFacts facts = robots.facts();
    StateRegistry registry;
    robots.parts.physics->register_state(registry);
    std::vector<StateTensor> owned = robots.parts.update->carriers();
    for (const StateTensor& tensor : registry.tensors()) {
      if (tensor.name.rfind("physics/field/", 0) == 0) owned.push_back(tensor);
    }
    std::set<std::string> names;
    for (const StateTensor& tensor : owned) {
      names.insert(tensor.name);
      if (tensor.name == "update/episode" || tensor.name == "update/desynchronised") continue;
      EXPECT_EQ(carrier_named(facts, tensor.name).bytes, tensor.bytes()) << tensor.name;
    }
    for (const CarrierFacts& carrier : facts.carriers) {
      EXPECT_TRUE(carrier.is_sealed) << carrier.name;
      names.erase(carrier.name);
    }
    EXPECT_EQ(names, (std::set<std::string>{"update/desynchronised", "update/episode"}));
    EXPECT_EQ(carrier_named(facts, "replay/slots").bytes,
              2u * kEnvs * robots.task().layout.row_bytes());
  }
}

// Bytes of the update step's carriers, by name.
Tensors carriers_of(const Robots& robots) {
  Tensors bytes;
  for (const StateTensor& tensor : robots.parts.update->carriers()) {
    bytes[tensor.name].assign(static_cast<const char*>(tensor.data), tensor.bytes());
  }
  return bytes;
}

void put_carriers(Robots& robots, const Tensors& bytes) {
  for (const StateTensor& tensor : robots.parts.update->carriers()) {
    std::memcpy(tensor.data, bytes.at(tensor.name).data(), tensor.bytes());
  }
}

// A tick without the reset behind it.
Names changed_by_a_tick(Robots& robots, uint64_t tick) {
  const Tensors before = carriers_of(robots);
  robots.parts.physics->step(robots.parts.update->actions(), tick);
  robots.parts.update->update(tick, 0, kEnvs, robots.rows.data());
  return differences(before, carriers_of(robots));
}

TEST(UpdateFacts, ATickWritesWhatIsStatedAndNothingElse) {
  std::set<std::string> written, stated_writes;
  for (const json& config : {g1_config(), motion_config()}) {
    Robots robots(config);
    const std::vector<std::string> writes = robots.facts().ops[0].writes;
    for (const std::string& name : writes) {
      if (name.rfind("update/", 0) == 0) stated_writes.insert(name);
    }
    for (uint64_t tick = 0; tick < 3; ++tick) {
      float* actions = robots.parts.update->actions();
      std::fill(actions, actions + kEnvs * robots.task().layout.action_dim,
                0.1f * static_cast<float>(tick + 1));
      robots.make_due();
      if (tick == 2) robots.set(kStep, robots.task().params.max_steps - 1);
      for (const std::string& name : changed_by_a_tick(robots, tick)) {
        EXPECT_TRUE(contains(writes, name)) << name;
        written.insert(name);
      }
    }
  }
  stated_writes.erase("update/outcomes");
  stated_writes.erase("update/echo");  // of a device
  EXPECT_EQ(written, stated_writes);
}

TEST(UpdateFacts, ATickReadsNothingThatIsNotStated) {
  for (const json& config : {g1_config(), motion_config()}) {
    Robots robots(config);
    robots.make_due();
    robots.parts.physics->step(robots.parts.update->actions(), 0);
    const Tensors before = carriers_of(robots);
    robots.parts.update->update(0, 0, kEnvs, robots.rows.data());
    const std::vector<float> rows = robots.rows;
    const Tensors after = carriers_of(robots);
    put_carriers(robots, before);
    const OpFacts op = robots.facts().ops[0];
    Names spoilt;
    for (const StateTensor& tensor : robots.parts.update->carriers()) {
      if (contains(op.reads, tensor.name)) continue;
      spoilt.push_back(tensor.name);
      std::memset(tensor.data, 0x3f, tensor.bytes());
    }
    EXPECT_GE(spoilt.size(), 6u);
    robots.parts.update->update(0, 0, kEnvs, robots.rows.data());
    EXPECT_EQ(robots.rows, rows);
    for (const std::string& name : differences(after, carriers_of(robots))) {
      EXPECT_TRUE(name == "update/episode" || name == "update/desynchronised") << name;
    }
  }
}

TEST(UpdateFacts, TermsHaveTheirPlace) {
  const ProgramFacts walk = Robots(g1_config()).facts();
  EXPECT_EQ(term_named(walk, "reward alive").detail, "weight 10");
  EXPECT_EQ(term_named(walk, "observation joint_velocity").detail, "noise 0.1");
  EXPECT_EQ(term_named(walk, "observation joint_velocity").draws_per_tick, 29);
  EXPECT_FALSE(term_named(walk, "critic joint_velocity").stream);
  EXPECT_EQ(term_named(walk, "termination time_out").detail, "truncates");
  EXPECT_EQ(term_named(walk, "command velocity").draws_per_tick, 5);
  EXPECT_EQ(term_named(walk, "event push").term_class, TermClass::kInterval);
  EXPECT_EQ(term_named(walk, "event gains").term_class, TermClass::kResetOwned);
  const TermFacts& penalty = term_named(walk, "curriculum penalty");
  EXPECT_EQ(penalty.term_class, TermClass::kResetOwned);
  EXPECT_TRUE(penalty.is_value_in_block);
  EXPECT_FALSE(penalty.value_read_each_tick.empty());
  const ProgramFacts motion = Robots(motion_config()).facts();
  EXPECT_EQ(term_named(motion, "curriculum frame_sampler").detail, "adaptive");
  EXPECT_EQ(term_named(motion, "command motion").draws_per_reset, 6 + 6 + 29);
  const ProgramFacts quiet = Robots(g1_config({{"env", {{"events", false}}}})).facts();
  EXPECT_EQ(term_named(quiet, "event push").detail, "off");
  EXPECT_FALSE(term_named(quiet, "event push").stream);
}

TEST(UpdateFacts, HazardsAreWhatKeepsTheUpdateStepOnTheHost) {
  const Robots robots(g1_config());
  const std::vector<json> patches = {json::object(),
                                     {{"collector", {{"update", "host"}}}},
                                     {{"replay", {{"pipeline", "cpu_pinned_double_buffer"}}}},
                                     {{"learner", {{"observation_normalizer", true}}}},
                                     {{"replay", {{"pipeline", "cpu_pinned_double_buffer"}}},
                                      {"learner", {{"observation_normalizer", true}}}}};
  for (const json& patch : patches) {
    const RunPlan plan = parse_plan(g1_config(patch));
    const UpdatePlace place = choose_update_place(plan, fake_cuda());
    const ProgramFacts facts = update_facts(robots.task(), plan, "cuda");
    EXPECT_EQ(facts.ops[0].device, "cuda");
    const std::vector<Finding> findings =
        check_graph(facts, {"cuda", true, "", {12080, 12080, 0, 0, ""}}, GraphPolicy::kOn);
    ASSERT_EQ(findings.size(), patch.size());
    EXPECT_EQ(findings.empty(), place.is_on_device);
    if (place.is_on_device) continue;
    EXPECT_EQ(findings[0].id, place.id);
    EXPECT_EQ(findings[0].subject, place.subject);
  }
}

}  // namespace
}  // namespace millrace
