// Tests for cpp/bench_update.cpp.
#include "bench_update.h"

#include <gtest/gtest.h>

#include "run_fixture.h"

namespace millrace {
namespace {

TEST(BenchUpdate, ReportsEveryFigureOfEveryRunAsAPositiveNumber) {
  const nlohmann::json report = bench_update({{"kind", "update"},
                                              {"backend", "cpu"},
                                              {"config", g1_config()},
                                              {"envs", 20},
                                              {"runs", 2},
                                              {"launches", 2},
                                              {"threads", 1}});
  EXPECT_EQ(report["task"], "g1_walk_flat");
  EXPECT_EQ(report["rounds"].size(), 2u);
  for (const char* name : {"eager_us", "arguments_us", "host_us", "floor_us", "floor_ratio"}) {
    EXPECT_GT(report["medians"][name].get<double>(), 0) << name;
  }
  EXPECT_EQ(report["ticks"]["eager"]["ticks"], 6);  // two rounds and the one before
  EXPECT_GE(report["ticks"]["eager"]["p99_us"].get<double>(),
            report["ticks"]["eager"]["median_us"].get<double>());
  EXPECT_GT(report["device_bytes"].get<uint64_t>(), report["least_bytes"].get<uint64_t>() / 2);
  EXPECT_FALSE(report["medians"].contains("graph_us"));  // the cpu has none
}

TEST(BenchUpdate, RefusesNumbersBelowOne) {
  EXPECT_THROW(bench_update({{"config", g1_config()}, {"envs", 0}}), Failure);
}

}  // namespace
}  // namespace millrace
