// Tests for cpp/preflight.cpp.
#include "preflight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "backend.h"
#include "fake_cuda.h"
#include "resources.h"
#include "run_fixture.h"
#include "task_fixture.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

using nlohmann::json;

Names ids_of(const json& report, const char* verdict = "REFUSED") {
  Names ids;
  for (const json& finding : report.at("findings")) {
    if (finding.at("verdict") == verdict) ids.push_back(finding.at("id"));
  }
  return ids;
}

// The one finding with this id, a refusal.
json finding_of(const json& report, const std::string& id) {
  const json& findings = report.at("findings");
  const auto has_id = [&](const json& finding) { return finding.at("id") == id; };
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(), has_id), 1) << findings.dump(1);
  const auto found = std::find_if(findings.begin(), findings.end(), has_id);
  if (found == findings.end()) return {{"reason", ""}, {"subject", ""}};
  EXPECT_EQ(found->at("verdict"), "REFUSED");
  EXPECT_FALSE(found->at("hint").get<std::string>().empty());
  return *found;
}

void expect_refused(const json& config, const std::string& id, const std::string& subject,
                    const std::string& reason) {
  const json report = run_preflight(config);
  EXPECT_EQ(ids_of(report), Names{id});
  const json finding = finding_of(report, id);
  EXPECT_EQ(finding.at("subject"), subject);
  EXPECT_NE(finding.at("reason").get<std::string>().find(reason), std::string::npos) << finding;
}

json large_g1(int learning_starts, uint64_t capacity_rows) {
  return g1_config({{"env", {{"num_envs", 512}}},
                    {"learner", {{"learning_starts", learning_starts}}},
                    {"replay", {{"capacity_rows", capacity_rows}}}});
}

TEST(Preflight, AGoodConfigurationHasABudget) {
  const json report = run_preflight(large_g1(8, 8 * 512));
  EXPECT_EQ(ids_of(report), Names{});
  EXPECT_EQ(ids_of(report, "EAGER_ONLY"), Names{"BACKEND_HAS_NO_GRAPHS"});
  EXPECT_EQ(report.at("device").at("effective"), "cpu");
  EXPECT_EQ(report.at("task").at("row_width"), 430);
  EXPECT_EQ(report.at("budget").at("host").at("total_bytes"), 2 * 512 * 1720);
  EXPECT_EQ(report.at("budget").at("host").at("items")[0].at("formula"), "2 x 512 rows x 1,720 B");
  EXPECT_EQ(report.at("budget").at("device").at("items")[0].at("bytes"), 8 * 512 * 1728);
  EXPECT_GT(report.at("budget").at("device").at("items")[2].at("bytes"), 0);
}

TEST(Preflight, AWarmUpThatTheRingCannotHold) {
  expect_refused(large_g1(10, 8 * 512), "REPLAY_CAN_NEVER_START", "replay.capacity_rows",
                 "10 x 512 = 5,120 > 8 x 512 = 4,096");
}

TEST(Preflight, AnOddBatchWithSymmetry) {
  expect_refused(g1_config({{"learner", {{"batch", 17}}}}), "BATCH_ODD_WITH_SYMMETRY",
                 "learner.batch", "17 is odd");
}

TEST(Preflight, SymmetryWithoutAMirrorImage) {
  expect_refused(cartpole_config({{"learner", {{"symmetry", true}}}}), "SYMMETRY_UNAVAILABLE",
                 "learner.symmetry", "cartpole_swingup has no mirror image");
}

TEST(Preflight, AnIngressDepthOfNothing) {
  for (int depth : {0, -3}) {
    expect_refused(cartpole_config({{"replay", {{"ingress_depth", depth}}}}), "INGRESS_DEPTH",
                   "replay.ingress_depth", "0 is outside 1..16");
  }
}

TEST(Preflight, ACapacityBelowWhatIsInFlight) {
  expect_refused(cartpole_config({{"replay", {{"ingress_depth", 5}, {"capacity_rows", 20}}}}),
                 "REPLAY_CAPACITY_BELOW_IN_FLIGHT", "replay.capacity_rows",
                 "(5 + 1) x 4 = 24 rows in flight > 5 x 4 = 20");
}

TEST(Preflight, ARingAboveFourFifthsOfTheMemory) {
  // 96 B for each of 2^39 rows is 48 TiB.
  const json report =
      run_preflight(cartpole_config({{"replay", {{"capacity_rows", int64_t{1} << 39}}}}));
  EXPECT_EQ(ids_of(report), Names{"BUDGET_DEVICE"});
  const std::string reason = finding_of(report, "BUDGET_DEVICE").at("reason");
  EXPECT_NE(reason.find("ring 52,776,558,133,248 B (549,755,813,888 rows x 96 B)"),
            std::string::npos)
      << reason;
  EXPECT_NE(reason.find(" B = 0.8 x "), std::string::npos) << reason;
}

TEST(Preflight, WhatThisMachineDoesNotHave) {
  for (const BackendInfo& info : backends()) {
    if (info.available) continue;
    const std::string& device = info.name;
    const json report = run_preflight(cartpole_config({{"device", device}, {"graph", "on"}}));
    EXPECT_EQ(ids_of(report), Names{"DEVICE_UNAVAILABLE"});
    const std::string reason = finding_of(report, "DEVICE_UNAVAILABLE").at("reason");
    EXPECT_EQ(reason.rfind(device + ": ", 0), 0u) << reason;
    EXPECT_GT(reason.size(), device.size() + 2);
    EXPECT_EQ(report.at("device").at("requested"), device);
    EXPECT_EQ(report.at("device").at("effective"), "none");
  }
  expect_refused(cartpole_config({{"graph", "on"}}), "BACKEND_HAS_NO_GRAPHS", "device",
                 "cpu: it launches programs eagerly");
  for (const char* precision : {"bf16", "tf32"}) {
    expect_refused(cartpole_config({{"precision", precision}}), "PRECISION_UNAVAILABLE",
                   "precision", std::string("computes in fp32, not ") + precision);
  }
}

TEST(Preflight, AutomaticChoicesAreResolvedWithTheirReasons) {
  const json device = run_preflight(cartpole_config({{"device", "auto"}})).at("device");
  EXPECT_EQ(device.at("requested"), "auto");
  const std::string reason = device.at("reason");
  if (device.at("effective") == "cuda") {
    EXPECT_EQ(reason.rfind("is there: ", 0), 0u) << reason;
  } else {
    EXPECT_EQ(device.at("effective"), "cpu");
    EXPECT_EQ(reason.rfind("cuda: ", 0), 0u) << reason;
    EXPECT_NE(reason.find("; metal: "), std::string::npos) << reason;
  }
  const json named = run_preflight(cartpole_config({{"device", "cpu"}})).at("device");
  EXPECT_EQ(named.at("requested"), "cpu");
  EXPECT_EQ(named.at("effective"), "cpu");
}

TEST(Preflight, ReportsEverythingAtOnce) {
  const json report =
      run_preflight(g1_config({{"device", "metal"},
                               {"graph", "on"},
                               {"precision", "bf16"},
                               {"env", {{"num_envs", 512}}},
                               {"learner", {{"batch", 8191}, {"learning_starts", 10}}},
                               {"replay", {{"capacity_rows", 512}, {"ingress_depth", 0}}}}));
  Names ids = ids_of(report);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (Names{"BATCH_ODD_WITH_SYMMETRY", "DEVICE_UNAVAILABLE", "INGRESS_DEPTH",
                        "PRECISION_UNAVAILABLE", "REPLAY_CAN_NEVER_START"}));
  EXPECT_TRUE(report.contains("budget"));
}

TEST(Preflight, GraphsThatWereNotAskedForAreNotChecked) {
  const json report = run_preflight(cartpole_config({{"graph", "off"}}));
  EXPECT_EQ(report.at("findings"), json::array());
  EXPECT_EQ(report.at("graphs").at("update").at("requested"), "off");
  EXPECT_EQ(report.at("graphs").at("update").at("findings"), json::array());
  EXPECT_EQ(report.at("graphs").at("update").at("ops").size(), 1u);
}

TEST(Preflight, AGraphThatCannotBeIsRefusedWithAllReasons) {
  const json report =
      run_preflight(motion_config({{"graph", "on"},
                                   {"device", "metal"},
                                   {"learner", {{"observation_normalizer", true}}},
                                   {"replay", {{"pipeline", "cpu_pinned_double_buffer"}}}}));
  EXPECT_EQ(ids_of(report), (Names{"DEVICE_UNAVAILABLE", "HOST_READ", "HOST_READ"}));
  const json& findings = report.at("graphs").at("update").at("findings");
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[1].at("subject"), "replay.pipeline");
  EXPECT_EQ(findings[2].at("subject"), "learner.observation_normalizer");
}

TEST(Preflight, TheLearnersProgramsAreShownWhereverTheyRun) {
  const json report = run_preflight(cartpole_config({{"graph", "auto"}, {"device", "cpu"}}));
  for (const char* name : {"learner_critic", "learner_critic_and_actor"}) {
    const json& program = report.at("graphs").at(name);
    EXPECT_EQ(program.at("requested"), "auto");
    EXPECT_EQ(program.at("place"), "host");
    EXPECT_EQ(program.at("findings"), json::array());
    EXPECT_GT(program.at("ops").size(), 20u);
  }
  EXPECT_EQ(ids_of(report, "EAGER_ONLY"), Names{"BACKEND_HAS_NO_GRAPHS"});
}

TEST(Preflight, TheRunHearsTheFirstObstacleOfItsGraph) {
  const Task task = make_task(cartpole_config(), cartpole_model());
  Backend device(fake_cuda());
  Backend cpu(backend_cpu());
  const auto obstacle = [&](const json& patch, Backend& backend) {
    return graph_obstacle(task, parse_plan(cartpole_config(patch)), backend);
  };
  EXPECT_EQ(obstacle(json::object(), device), "");
  EXPECT_EQ(obstacle(json::object(), cpu),
            "BACKEND_HAS_NO_GRAPHS: cpu: it launches programs eagerly");
  EXPECT_EQ(obstacle({{"graph", "off"}}, cpu), "");
  const json pinned = {{"replay", {{"pipeline", "cpu_pinned_double_buffer"}}}};
  EXPECT_EQ(obstacle(pinned, device).rfind("HOST_READ: op update ", 0), 0u);
}

TEST(Preflight, AnUpdateStepThatCannotBeOnTheDevice) {
  expect_refused(cartpole_config({{"device", "cpu"}, {"collector", {{"update", "device"}}}}),
                 "UPDATE_UNAVAILABLE", "collector.update", "the cpu backend runs the update step");
  EXPECT_EQ(ids_of(run_preflight(
                cartpole_config({{"device", "metal"}, {"collector", {{"update", "device"}}}}))),
            Names{"DEVICE_UNAVAILABLE"});
}

TEST(Preflight, EveryTermOfTheTaskHasARow) {
  const json terms = run_preflight(g1_config()).at("terms");
  Names kinds;
  for (const json& row : terms) {
    const std::string kind = row.at("kind");
    if (kinds.empty() || kinds.back() != kind) kinds.push_back(kind);
    EXPECT_EQ(row.at("verdict"), "READY") << row;
  }
  EXPECT_EQ(kinds, (Names{"reward", "observation", "critic", "termination", "command", "event",
                          "gait", "curriculum"}));
  EXPECT_EQ(terms.size(), 9u + 7u + 8u + 5u + 1u + 2u + 1u + 1u);
}

TEST(Preflight, AModelWithoutTheTasksNamesListsThemAll) {
  const json report = run_preflight(g1_config(
      {{"graph", "on"}, {"env", {{"model_file", resources() + "/models/cartpole.xml"}}}}));
  EXPECT_EQ(ids_of(report), (Names{"MODEL_MISSING_NAME", "BACKEND_HAS_NO_GRAPHS"}));
  const json finding = finding_of(report, "MODEL_MISSING_NAME");
  EXPECT_EQ(finding.at("subject"), "env.model_file");
  const std::string reason = finding.at("reason");
  for (const char* name :
       {"a free joint at the root", "'torso_link'", "'imu_in_pelvis'", "'left_foot'",
        "'right_foot'", "'left_knee_joint'", "'right_wrist_yaw_joint'"}) {
    EXPECT_NE(reason.find(name), std::string::npos) << name << " in " << reason;
  }
}

TEST(Preflight, AModelThatCannotBeReadSaysSo) {
  const TemporaryFolder folder;
  const std::string broken = folder / "broken.xml";
  const std::string outside = folder / "outside.xml";
  std::ofstream(broken) << "<mujoco><worldbody><body></worldbody></mujoco>";
  std::ofstream(outside) << "<mujoco><include file='../robot.xml'/></mujoco>";
  for (const std::string& file : {broken, outside, folder / "none.xml"}) {
    const json report = run_preflight(cartpole_config({{"env", {{"model_file", file}}}}));
    EXPECT_EQ(ids_of(report), Names{"MODEL_UNREADABLE"});
    const std::string reason = finding_of(report, "MODEL_UNREADABLE").at("reason");
    EXPECT_NE(reason.find(file), std::string::npos) << reason;
    EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
  }
}

// Nothing that was allocated would fit: 2^39 rows are refused in less than a second.
TEST(Preflight, AllocatesNothingLarge) {
  const auto start = std::chrono::steady_clock::now();
  run_preflight(cartpole_config({{"replay", {{"capacity_rows", int64_t{1} << 39}}}}));
  EXPECT_LT(seconds_since(start), 1.0);
}

TEST(Preflight, WhatIsNoConfigurationIsThrown) {
  for (const json& patch :
       {json{{"rewards", {{"uprigth", {{"weight", 1.0}}}}}}, json{{"task", "cartpole"}},
        json{{"env", {{"num_envs", "many"}}}}, json{{"learner", {{"gamma", 2.0}}}}}) {
    try {
      run_preflight(cartpole_config(patch));
      ADD_FAILURE() << patch << " was accepted";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kInvalid) << failure.what();
    }
  }
}

}  // namespace
}  // namespace millrace
