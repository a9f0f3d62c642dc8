// Tests for cpp/expression.cpp and expression_body.h: every operator and function against formulas
// in double, expressions against the built-in terms that they spell out, limits, whole runs.
#include "expression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "run.h"
#include "run_fixture.h"
#include "task_fixture.h"
#include "update.h"

namespace millrace {
namespace {

using nlohmann::json;
using Training = Run;  // a test has a member of that name

const ExpressionScope kWalking = {29, 29, 1, true, true, true};

// Random states of a walking robot, in the carriers of a real update step.
struct Walker {
  Task task;
  RandomSim sim;
  UpdateStep update;

  explicit Walker(const json& rewards = json::object())
      : task(make_task({{"task", "g1_walk_flat"}, {"rewards", rewards}}, g1_model())),
        sim(g1_model(), true, 1, 19),
        update(task, sim.state_view(), 1, 23) {
    update.start_episodes(sim, false);
  }

  void randomise(uint64_t index) {
    sim.randomise(0, index, 1.0f);
    const RandomSource source = random_source(29, kStreamCommand, 0, index);
    u32 draw = 0;
    for (EpisodeField field : {kAction, kLastAction, kCommand, kFootAirTime}) {
      for (int i = 0; i < update.state().episode[field].dim; ++i) {
        at(field, i) = random_uniform(source, draw++, -1, 1);
      }
    }
    for (int foot = 0; foot < 2; ++foot)
      at(kGaitPhase, foot) = random_uniform(source, draw++, 0, 6);
  }

  double sim_at(SimField field, int i) { return component(update.state().sim[field], 0, i); }
  float& at(EpisodeField field, int i) { return component(update.state().episode[field], 0, i); }
  double joint(int i) {
    return sim_at(kJointPosition, i) - double{task.params.constants.default_joint_position[i]};
  }
};

float evaluate(const std::string& text, const Walker& walker) {
  ExpressionCode code = {};
  const ExpressionRange range =
      append_expression(compile_expression(text, kWalking, "expr"), "expr", code);
  return evaluate_expression(code, range, walker.task.params.constants, walker.update.state(), 0);
}

void expect_close(float actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, 1e-6 * std::max(1.0, std::abs(expected))) << what;
}

using Formula = std::function<double(Walker&)>;

double vx(Walker& w) { return w.sim_at(kLocalLinearVelocity, 0); }
double vy(Walker& w) { return w.sim_at(kLocalLinearVelocity, 1); }
double vz(Walker& w) { return w.sim_at(kLocalLinearVelocity, 2); }
double cx(Walker& w) { return w.at(kCommand, 0); }
double cy(Walker& w) { return w.at(kCommand, 1); }

void check(const std::vector<std::pair<const char*, Formula>>& cases) {
  Walker walker;
  for (uint64_t index = 0; index < 50; ++index) {
    walker.randomise(index);
    for (const auto& [text, formula] : cases) {
      expect_close(evaluate(text, walker), formula(walker), text);
    }
  }
}

TEST(Expression, OperatorsAgreeWithDouble) {
  check({{"2", [](Walker&) { return 2; }},
         {".5e1", [](Walker&) { return 5; }},
         {"cmd.x", cx},
         {"-cmd.x", [](Walker& w) { return -cx(w); }},
         {"--cmd.x", cx},
         {"cmd.x + cmd.y", [](Walker& w) { return cx(w) + cy(w); }},
         {"1 - cmd.x - cmd.y", [](Walker& w) { return 1 - cx(w) - cy(w); }},
         {"1 - (cmd.x - cmd.y)", [](Walker& w) { return 1 - (cx(w) - cy(w)); }},
         {"2 + cmd.x * 3", [](Walker& w) { return 2 + cx(w) * 3; }},
         {"(2 + cmd.x) * 3", [](Walker& w) { return (2 + cx(w)) * 3; }},
         {"8 / 4 / 2 + cmd.x / 4", [](Walker& w) { return 1 + cx(w) / 4; }},
         {"-2 * -cmd.x", [](Walker& w) { return 2 * cx(w); }},
         {"cmd.x < cmd.y", [](Walker& w) { return cx(w) < cy(w) ? 1 : 0; }},
         {"cmd.x > cmd.y", [](Walker& w) { return cx(w) > cy(w) ? 1 : 0; }},
         {"cmd.x <= cmd.x", [](Walker&) { return 1; }},
         {"cmd.x >= cmd.x", [](Walker&) { return 1; }},
         {"cmd.x < cmd.x", [](Walker&) { return 0; }},
         {"cmd.x == cmd.x", [](Walker&) { return 1; }},
         {"cmd.x != cmd.x", [](Walker&) { return 0; }},
         {"cmd.x != cmd.y", [](Walker&) { return 1; }},
         {"3 * (cmd.x + 1 > 1)", [](Walker& w) { return cx(w) > 0 ? 3 : 0; }}});
}

TEST(Expression, FunctionsAgreeWithDouble) {
  check(
      {{"abs(cmd.x)", [](Walker& w) { return std::abs(cx(w)); }},
       {"square(cmd.x)", [](Walker& w) { return cx(w) * cx(w); }},
       {"sqrt(abs(cmd.x))", [](Walker& w) { return std::sqrt(std::abs(cx(w))); }},
       {"exp(cmd.x)", [](Walker& w) { return std::exp(cx(w)); }},
       {"log(2 + cmd.x)", [](Walker& w) { return std::log(2 + cx(w)); }},
       {"sin(9 * cmd.x)", [](Walker& w) { return std::sin(double{9.0f * w.at(kCommand, 0)}); }},
       {"cos(9 * cmd.x)", [](Walker& w) { return std::cos(double{9.0f * w.at(kCommand, 0)}); }},
       {"min(cmd.x, cmd.y)", [](Walker& w) { return std::min(cx(w), cy(w)); }},
       {"max(cmd.x, cmd.y)", [](Walker& w) { return std::max(cx(w), cy(w)); }},
       {"clamp(cmd.x, -0.3, 0.4)", [](Walker& w) { return std::clamp(cx(w), -0.3, 0.4); }},
       {"sum(base_lin_vel)", [](Walker& w) { return vx(w) + vy(w) + vz(w); }},
       {"mean(base_lin_vel)", [](Walker& w) { return (vx(w) + vy(w) + vz(w)) / 3; }},
       {"norm(base_lin_vel)", [](Walker& w) { return std::hypot(vx(w), vy(w), vz(w)); }},
       {"norm2(base_lin_vel.xz)", [](Walker& w) { return vx(w) * vx(w) + vz(w) * vz(w); }},
       {"dot(cmd.xy, base_lin_vel.xy)", [](Walker& w) { return cx(w) * vx(w) + cy(w) * vy(w); }},
       {"dot(cmd.xy, base_lin_vel.yz)", [](Walker& w) { return cx(w) * vy(w) + cy(w) * vz(w); }}});
}

TEST(Expression, VectorsWorkComponentByComponent) {
  const auto joints = [](auto term) {
    return [term](Walker& w) {
      double sum = 0;
      for (int j = 0; j < 29; ++j) sum += term(w, j);
      return sum;
    };
  };
  const auto mean = joints([](Walker& w, int j) { return w.joint(j) / 29; });
  check(
      {{"sum(joint_pos * joint_vel)",
        joints([](Walker& w, int j) { return w.joint(j) * w.sim_at(kJointVelocity, j); })},
       {"mean(abs(joint_vel))",
        joints([](Walker& w, int j) { return std::abs(w.sim_at(kJointVelocity, j)) / 29; })},
       {"sum(2 * action + 1)", joints([](Walker& w, int j) { return 2 * w.at(kAction, j) + 1; })},
       {"sum(joint_vel > 0.5)",
        joints([](Walker& w, int j) { return w.sim_at(kJointVelocity, j) > 0.5 ? 1 : 0; })},
       {"norm2(joint_pos - mean(joint_pos))",
        [=](Walker& w) {
          const double middle = mean(w);
          return joints([=](Walker& v, int j) { return std::pow(v.joint(j) - middle, 2); })(w);
        }},
       {"sum(joint_pos * sum(cmd.xy * cmd.x))",
        [=](Walker& w) { return 29 * mean(w) * (cx(w) + cy(w)) * cx(w); }},
       {"joint_pos[28]", [](Walker& w) { return w.joint(28); }},
       {"(joint_pos - joint_vel)[3]",
        [](Walker& w) { return w.joint(3) - w.sim_at(kJointVelocity, 3); }},
       {"(joint_pos - mean(joint_pos))[3]", [=](Walker& w) { return w.joint(3) - mean(w); }},
       {"sum(joint_vel[5:8])",
        [](Walker& w) {
          return w.sim_at(kJointVelocity, 5) + w.sim_at(kJointVelocity, 6) +
                 w.sim_at(kJointVelocity, 7);
        }},
       {"joint_vel[5:8][1]", [](Walker& w) { return w.sim_at(kJointVelocity, 6); }},
       {"sum((cmd - base_lin_vel).xz[1:2])", [](Walker& w) { return w.at(kCommand, 2) - vz(w); }}});
}

TEST(Expression, NamesReadWhatTheySay) {
  const auto sim = [](SimField field, int i) {
    return [=](Walker& w) { return w.sim_at(field, i); };
  };
  check({{"base_ang_vel.y", sim(kGyro, 1)},
         {"projected_gravity.z", sim(kProjectedGravity, 2)},
         {"root_pos.z", sim(kRootPosition, 2)},
         {"root_quat.w", sim(kRootQuaternion, 0)},
         {"root_lin_vel.x", sim(kRootLinearVelocity, 0)},
         {"root_ang_vel.z", sim(kRootAngularVelocity, 2)},
         {"body_pos.z", sim(kBodyPosition, 2)},
         {"body_quat.z", sim(kBodyQuaternion, 3)},
         {"body_lin_vel[1]", sim(kBodyLinearVelocity, 1)},
         {"body_ang_vel[2]", sim(kBodyAngularVelocity, 2)},
         {"left_foot_pos.y", sim(kFootPosition, 1)},
         {"right_foot_pos.x", sim(kFootPosition, 3)},
         {"left_foot_quat.x", sim(kFootQuaternion, 1)},
         {"right_foot_quat.w", sim(kFootQuaternion, 4)},
         {"foot_height[0]", sim(kFootPosition, 2)},
         {"foot_height[1]", sim(kFootPosition, 5)},
         {"sum(foot_height)",
          [](Walker& w) { return w.sim_at(kFootPosition, 2) + w.sim_at(kFootPosition, 5); }},
         {"foot_contact[1]", sim(kFootContact, 1)},
         {"last_action[7]", [](Walker& w) { return w.at(kLastAction, 7); }},
         {"gait_phase[1]", [](Walker& w) { return w.at(kGaitPhase, 1); }},
         {"foot_air_time[0]", [](Walker& w) { return w.at(kFootAirTime, 0); }}});
}

TEST(Expression, DivisionByZeroIsInfinite) {
  Walker walker;
  EXPECT_EQ(evaluate("1 / (cmd.x - cmd.x)", walker), mr_infinity());
  EXPECT_EQ(evaluate("log(0)", walker), -mr_infinity());
  EXPECT_FALSE(mr_isfinite(evaluate("sqrt(0 - 1)", walker)));
}

// A random expression and what it means: component i of it, calculated by plain recursion.
struct Meaning {
  std::string text;
  std::function<float(Walker&, int)> value;
};

Meaning random_leaf(std::mt19937& random, bool is_vector) {
  const int i = static_cast<int>(random() % 7);
  const std::string number = std::to_string(i);
  if (is_vector) {
    return {"joint_vel[" + number + ":" + std::to_string(i + 3) + "]", [=](Walker& w, int k) {
              return component(w.update.state().sim[kJointVelocity], 0, i + k);
            }};
  }
  if (i < 2) return {number, [=](Walker&, int) { return static_cast<float>(i); }};
  return {"action[" + number + "]", [=](Walker& w, int) { return w.at(kAction, i); }};
}

Meaning random_expression(std::mt19937& random, int depth, bool is_vector) {
  if (depth == 0) return random_leaf(random, is_vector);
  const auto part = [&](bool vector) { return random_expression(random, depth - 1, vector); };
  const unsigned kind = random() % 6;
  if (kind == 0) {
    const Meaning a = part(is_vector);
    return {"-" + a.text, [=](Walker& w, int k) { return -a.value(w, k); }};
  }
  if (kind < 3 || is_vector) {  // a number goes with every component
    const Meaning a = part(is_vector), b = part(is_vector && kind < 3);
    return {"(" + a.text + " - " + b.text + ")",
            [=](Walker& w, int k) { return a.value(w, k) - b.value(w, k); }};
  }
  const Meaning a = part(true);
  if (kind == 3) return {a.text + "[2]", [=](Walker& w, int) { return a.value(w, 2); }};
  const Meaning b = part(true);
  return {"dot(" + a.text + ", " + b.text + ")", [=](Walker& w, int) {
            float sum = 0;
            for (int k = 0; k < 3; ++k) sum += a.value(w, k) * b.value(w, k);
            return sum;
          }};
}

TEST(Expression, RandomOnesMeanWhatRecursionSays) {
  std::mt19937 random(41);
  Walker walker;
  int compared = 0;
  for (int i = 0; i < 2000; ++i) {
    const Meaning each = random_expression(random, i % 5, false);
    walker.randomise(static_cast<uint64_t>(i));
    try {
      EXPECT_EQ(evaluate(each.text, walker), each.value(walker, 0)) << each.text;
      ++compared;
    } catch (const Failure& failure) {  // some are too long
      EXPECT_NE(std::string(failure.what()).find("longer than 64"), std::string::npos)
          << failure.what();
    }
  }
  EXPECT_GT(compared, 1500);
}

// ---- expressions and built-in terms ----

struct Twin {
  const char* term;
  const char* expression;
};

// Written in the order in which terms.h calculates.
constexpr Twin kTwins[] = {
    {"tracking_lin_vel", "exp(-norm2(cmd.xy - base_lin_vel.xy) / 0.25)"},
    {"tracking_ang_vel", "exp(-square(cmd.z - base_ang_vel.z) / 0.25)"},
    {"penalty_ang_vel_xy", "norm2(base_ang_vel.xy)"},
    {"penalty_orientation", "norm2(projected_gravity.xy)"},
    {"penalty_action_rate", "sum(square(action - last_action))"},
    {"penalty_feet_ori", "norm2(left_foot_quat.xy) + norm2(right_foot_quat.xy)"},
    {"alive", "1"},
    {"forward_progress", "clamp(base_lin_vel.x, 0, max(cmd.x, 0))"},
    {"under_speed", "max(abs(cmd.x) - base_lin_vel.x * (1 - 2 * (cmd.x < 0)), 0)"},
    {"lin_vel_z", "square(base_lin_vel.z)"},
    {"base_height", "square(root_pos.z - 0.754)"},
    {"upper_body_pose", "norm2(joint_pos[12:29])"},
    {"penalty_close_feet_xy", "square(max(0.15 - norm(left_foot_pos.xy - right_foot_pos.xy), 0))"},
    {"feet_double_stance", "foot_contact[0] * foot_contact[1] * (norm2(cmd.xy) >= square(0.1))"},
    {"feet_air_time",
     "sum((foot_contact > 0.5) * (foot_air_time > 0) * (foot_air_time - 0.4)) "
     "* (norm2(cmd.xy) >= square(0.1))"}};

TEST(Expression, TwinsOfBuiltInTermsGiveTheSameBits) {
  Walker walker;
  for (const Twin& twin : kTwins) {
    const TermInfo& info = term_info(TermKind::kReward, twin.term);
    TermParams params = {};
    for (size_t i = 0; i < info.parameters.size(); ++i) {
      params.value[i] = static_cast<float>(info.parameters[i].default_value);
    }
    for (uint64_t index = 0; index < 200; ++index) {
      walker.randomise(index);
      const float built_in =
          reward_term(info.id, params, walker.task.params.constants, walker.update.state(), 0);
      EXPECT_EQ(evaluate(twin.expression, walker), built_in) << twin.term;
    }
  }
}

TEST(Expression, AnotherOrderOfOperationsIsCloseToTheBuiltIn) {
  SimModel model = cartpole_model();
  const Task task =
      make_task({{"task", "cartpole_swingup"},
                 {"rewards", {{"mine", {{"weight", 50}, {"expr", "1 - norm2(body_quat.xy)"}}}}}},
                model);
  RandomSim sim(model, false, 1, 7);
  UpdateStep update(task, sim.state_view(), 1, 5);
  std::vector<float> rows(static_cast<size_t>(task.layout.width()));
  update.start_episodes(sim, false);
  ASSERT_EQ(task.reward_names, (std::vector<std::string>{"upright", "mine"}));
  for (uint64_t tick = 0; tick < 50; ++tick) {
    sim.step(update.actions(), tick);
    update.update(tick, 0, 1, rows.data());
    const FieldView rewards = update.state().episode[kTermReward];
    expect_close(component(rewards, 0, 1), component(rewards, 0, 0), "upright");
    update.reset(tick, sim);
  }
}

// ---- in a task ----

// Ten terms, each beside the expression that spells it out; more would not fit.
json twin_rewards(double weight) {
  json rewards;
  for (int i = 0; i < 10; ++i) {
    const Twin& twin = kTwins[i];
    rewards[twin.term] = {{"weight", weight}};
    rewards[std::string("my_") + twin.term] = {{"weight", weight}, {"expr", twin.expression}};
  }
  return rewards;
}

TEST(Expression, WeightTickAndCurriculumScaleItLikeATerm) {
  for (const double weight : {2.0, -3.0}) {
    Walker walker(twin_rewards(weight));
    std::vector<float> rows(static_cast<size_t>(walker.task.layout.width()));
    walker.sim.step(walker.update.actions(), 0);
    for (int i = 0; i < 29; ++i) walker.update.actions()[i] = std::sin(static_cast<float>(i));
    walker.update.update(0, 0, 1, rows.data());
    const auto& names = walker.task.reward_names;
    int twins = 0;
    for (size_t k = 0; k < names.size(); ++k) {
      const auto mine = std::find(names.begin(), names.end(), "my_" + names[k]);
      if (mine == names.end()) continue;
      ++twins;
      EXPECT_EQ(walker.at(kTermReward, static_cast<int>(mine - names.begin())),
                walker.at(kTermReward, static_cast<int>(k)))
          << names[k];
      if (names[k] == "alive") {
        EXPECT_NEAR(walker.at(kTermReward, static_cast<int>(k)),
                    0.02 * (weight < 0 ? 0.5 : 1.0) * weight, 1e-7);
      }
    }
    EXPECT_EQ(twins, 10);
    walker.update.reset(0, walker.sim);
    const json statistics = walker.update.take_statistics();
    EXPECT_EQ(statistics.at("reward/my_penalty_action_rate"),
              statistics.at("reward/penalty_action_rate"));
    EXPECT_NE(statistics.at("reward/my_penalty_action_rate"), 0.0);
  }
}

TEST(Expression, ANonFiniteOneIsNamed) {
  const json rewards = {{"broken", {{"weight", 1}, {"expr", "log(cmd.x - cmd.x - 1)"}}}};
  Walker walker(rewards);
  std::vector<float> rows(static_cast<size_t>(walker.task.layout.width()));
  walker.sim.step(walker.update.actions(), 0);
  walker.update.update(0, 0, 1, rows.data());
  walker.update.reset(0, walker.sim);
  EXPECT_EQ(walker.update.statistics().describe_first_bad(),
            "tick 0, environment 0: rewards.broken was not finite");
  EXPECT_EQ(rows[static_cast<size_t>(walker.task.layout.reward())], 0.0f);
}

TEST(Expression, ARunWithOneLearnsReportsAndResumes) {
  const json config = g1_config(
      {{"rewards",
        {{"mine",
          {{"weight", 2.0}, {"params", json::object()}, {"expr", kTwins[0].expression}}}}}});
  Training whole(config), half(config), resumed(config);
  const json metrics = whole.advance(30).at("metrics");
  EXPECT_EQ(metrics.at("reward/mine"), metrics.at("reward/tracking_lin_vel"));
  EXPECT_GT(metrics.at("reward/mine"), 0.0);
  half.advance(15);
  restore(resumed, tensors_of(half), true);
  resumed.advance(15);
  EXPECT_EQ(differences(tensors_of(resumed), tensors_of(whole)), Names{});
}

// ---- limits ----

std::string error_of(const std::string& text) {
  try {
    compile_expression(text, kWalking, "expr");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    return failure.what();
  }
  return "no error";
}

std::string repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(Expression, LengthIsBounded) {
  EXPECT_EQ(compile_expression("1" + repeated(31, "+1"), kWalking, "expr").size(), 63u);
  EXPECT_EQ(error_of("1" + repeated(32, "+1")), "expr: column 64: longer than 64 instructions");
}

TEST(Expression, RegistersAreBounded) {
  EXPECT_EQ(error_of("sum(joint_pos" + repeated(29, "*2") + ")"), "no error");
  EXPECT_EQ(error_of("sum(joint_pos" + repeated(31, "*2") + ")"),
            "expr: column 5: needs more than 32 values at a time");
}

TEST(Expression, AllTogetherAreBounded) {
  ExpressionCode code = {};
  const auto long_one = compile_expression("1" + repeated(31, "+1"), kWalking, "expr");
  for (int i = 0; i < 4; ++i) append_expression(long_one, "expr", code);
  EXPECT_EQ(code.count, 4 * 63);
  EXPECT_THROW(append_expression(long_one, "expr", code), Failure);
  EXPECT_EQ(code.count, 4 * 63);
  const auto short_one = compile_expression("cmd.x", kWalking, "expr");
  const ExpressionRange range = append_expression(short_one, "expr", code);
  Walker walker;
  EXPECT_EQ(
      evaluate_expression(code, range, walker.task.params.constants, walker.update.state(), 0),
      walker.at(kCommand, 0));
}

}  // namespace
}  // namespace millrace
