// Tests for cpp/bench_learner.cpp.
#include "bench_learner.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "run_fixture.h"

namespace millrace {
namespace {

nlohmann::json request() {
  return {{"kind", "learner"}, {"backend", "cpu"}, {"config", g1_config()}, {"runs", 2},
          {"launches", 1},     {"ops", true},      {"without", true}};
}

TEST(BenchLearner, ReportsEveryFigureOfEveryRunAsAPositiveNumberAndEveryOp) {
  const nlohmann::json report = bench_learner(request());
  EXPECT_EQ(report["task"], "g1_walk_flat");
  EXPECT_EQ(report["precision"], "fp32");
  EXPECT_EQ(report["rounds"].size(), 2u);
  for (const char* name : {"eager_us", "critic_us", "whole_us", "arguments_us", "tflop_per_s"}) {
    EXPECT_GT(report["medians"][name].get<double>(), 0) << name;
  }
  EXPECT_FALSE(report["medians"].contains("graph_us"));  // the cpu has none
  const nlohmann::json& ops = report["ops"];
  EXPECT_GT(ops.size(), 50u);
  for (size_t i = 1; i < ops.size(); ++i) {
    EXPECT_GE(ops[i - 1]["us"].get<double>(), ops[i]["us"].get<double>());
  }
  std::set<std::string> kinds = {"nothing"};
  for (const nlohmann::json& op : ops) kinds.insert(op["kind"]);
  const nlohmann::json& without = report["without"];
  EXPECT_EQ(without.size(), kinds.size());
  for (const nlohmann::json& each : without) {
    EXPECT_EQ(kinds.erase(each["kind"]), 1u) << each;
    EXPECT_GT(each["us"].get<double>(), 0) << each;
  }
}

TEST(BenchLearner, AnUpdateWithoutItsLayersIsMuchShorter) {
  nlohmann::json asked = request();
  asked["config"]["learner"]["batch"] = 256;
  asked["runs"] = 5;
  asked["ops"] = false;
  const nlohmann::json report = bench_learner(asked);
  std::map<std::string, double> us;
  for (const nlohmann::json& each : report["without"]) us[each["kind"]] = each["us"];
  // Two thirds of it where nothing else runs.
  EXPECT_LT(us.at("dense_forward"), 0.85 * us.at("nothing"));
}

TEST(BenchLearner, RefusesNumbersBelowOneAndWhatTheBackendLacks) {
  for (const nlohmann::json& wrong :
       {nlohmann::json{{"runs", 0}}, nlohmann::json{{"precision", "fp16"}},
        nlohmann::json{{"precision", "bf16"}}}) {
    nlohmann::json asked = request();
    asked.update(wrong);
    EXPECT_THROW(bench_learner(asked), Failure) << wrong;
  }
}

}  // namespace
}  // namespace millrace
