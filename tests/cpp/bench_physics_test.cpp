#include "bench_physics.h"

#include <gtest/gtest.h>

#include "resources.h"
#include "status.h"

namespace millrace {
namespace {

nlohmann::json request(int envs, int ticks, int rounds) {
  return {{"model_file", resources() + "/models/g1.xml"},
          {"envs", envs},
          {"ticks", ticks},
          {"rounds", rounds},
          {"threads", 2}};
}

TEST(BenchPhysics, ComparesTheSameWork) {
  const nlohmann::json report = bench_physics(request(6, 4, 3));
  EXPECT_TRUE(report["identical"].get<bool>());
  EXPECT_EQ(report["ours_ms"].size(), 3u);
  EXPECT_EQ(report["bare_ms"].size(), 3u);
  EXPECT_GT(report["ratio"].get<double>(), 0.0);
  EXPECT_GT(report["nefc_mean"].get<double>(), 29.0);  // joint friction alone
  EXPECT_GT(report["ncon_mean"].get<double>(), 0.0);
  EXPECT_NEAR(report["ours_env_steps_per_s"].get<double>(),
              6 * 4 * 1e3 / report["ours_median_ms"].get<double>(), 1e-6);
}

TEST(BenchPhysics, RefusesNonsense) {
  EXPECT_THROW(bench_physics(request(0, 4, 3)), Failure);
  EXPECT_THROW(bench_physics({{"model_file", "none.xml"}}), Failure);
  nlohmann::json too_many = request(4, 4, 3);
  too_many["threads"] = 99999;
  EXPECT_THROW(bench_physics(too_many), Failure);
}

TEST(BenchPhysics, WhatDoesNotFitIsRefusedBeforeItIsAllocated) {
  try {
    bench_physics(request(1, 2000000000, 1));
    FAIL() << "200 GB of actions";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kResource);
    const std::string text = failure.what();
    EXPECT_NE(text.find("actions 232,000,000,000 B (2,000,000,000 ticks x 116 B)"),
              std::string::npos)
        << text;
  }
}

// Takes half a minute, so it is run by name: --gtest_also_run_disabled_tests.
TEST(BenchPhysics, DISABLED_KeepsNinetyFivePercentOfTheBareRate) {
  const nlohmann::json report = bench_physics(request(256, 20, 7));
  std::cout << report.dump(1) << std::endl;
  EXPECT_GE(report["ratio"].get<double>(), 0.95);
}

}  // namespace
}  // namespace millrace
