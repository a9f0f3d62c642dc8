// Tests for cpp/bench_train.cpp.
#include "bench_train.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "run_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

json request(int rounds, int ticks, int warmup_ticks) {
  return {{"config", cartpole_config()},
          {"rounds", rounds},
          {"ticks", ticks},
          {"warmup_ticks", warmup_ticks}};
}

TEST(BenchTrain, MeasuresRoundsOfWholeTicks) {
  const json report = bench_train(request(3, 5, 8));
  EXPECT_EQ(report.at("ticks_per_round"), 5);
  EXPECT_EQ(report.at("warmup_ticks"), 8);
  EXPECT_EQ(report.at("facts").at("replay").at("committed"), (8 + 3 * 5) * 4);
  const json& rounds = report.at("rounds");
  ASSERT_EQ(rounds.size(), 3u);
  std::vector<double> shares;
  for (const json& round : rounds) {
    EXPECT_GT(round.at("env_steps_per_s").get<double>(), 0.0);
    // Two updates for each tick of four environments.
    EXPECT_NEAR(round.at("updates_per_s").get<double>() / round.at("env_steps_per_s").get<double>(),
                0.5, 1e-9);
    const double share = round.at("update_share_of_physics").get<double>();
    EXPECT_NEAR(
        share * round.at("time/physics_ms").get<double>(),
        round.at("time/update_ms").get<double>() + round.at("time/publish_ms").get<double>(),
        1e-12);
    shares.push_back(share);
  }
  std::sort(shares.begin(), shares.end());
  EXPECT_EQ(report.at("medians").at("update_share_of_physics"), shares[1]);
}

TEST(BenchTrain, AnEvenNumberOfRoundsHasTheMeanOfTheMiddleTwo) {
  const json report = bench_train(request(2, 3, 0));
  const json& rounds = report.at("rounds");
  EXPECT_NEAR(
      report.at("medians").at("time/tick_ms").get<double>(),
      (rounds[0].at("time/tick_ms").get<double>() + rounds[1].at("time/tick_ms").get<double>()) / 2,
      1e-12);
}

TEST(BenchTrain, RefusesAModeThatTheDeviceCannotRunAndAnUnknownOne) {
  const auto message_of = [](const char* mode) -> std::string {
    json bad = request(1, 1, 0);
    bad["modes"] = {"host", mode};
    try {
      bench_train(bad);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_EQ(message_of("graphs"), "bench train: mode 'graphs' is not one of host, eager, graph");
  EXPECT_EQ(
      message_of("eager"),
      "--modes eager: collector.update: device was requested; the cpu backend runs the update "
      "step on the workers' threads; --modes host runs on every device");
}

TEST(BenchTrain, ReportsEveryModeOnItsOwn) {
  json wanted = request(2, 3, 1);
  wanted["modes"] = {"host"};
  const json report = bench_train(wanted);
  EXPECT_FALSE(report.contains("medians"));
  const json& host = report.at("modes").at("host");
  EXPECT_EQ(host.at("rounds").size(), 2u);
  EXPECT_GT(host.at("medians").at("update_share_of_tick").get<double>(), 0.0);
  EXPECT_EQ(host.at("facts").at("graphs").at("update").at("place"), "host");
}

TEST(BenchTrain, RefusesNothingToMeasure) {
  for (const json& bad : {request(0, 5, 5), request(3, 0, 5), request(3, 5, -1)}) {
    EXPECT_THROW(bench_train(bad), Failure);
  }
}

}  // namespace
}  // namespace millrace
