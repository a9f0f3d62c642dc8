// Tests for cpp/bench_shapes.cpp.
#include "bench_shapes.h"

#include <gtest/gtest.h>

#include "fake_cuda.h"

namespace millrace {
namespace {

TEST(BenchShapes, KeepsTheGraphsOfAFewShapesAndGivesUpOnMany) {
  const nlohmann::json report = bench_shapes(fake_cuda());
  const nlohmann::json& few = report["traffic"][0];
  const nlohmann::json& many = report["traffic"][1];
  EXPECT_EQ(few["name"], "few_shapes_often");
  EXPECT_EQ(few["residency"]["thrashing"], false);
  EXPECT_EQ(many["residency"]["thrashing"], true);
  EXPECT_EQ(many["ways"]["graph"]["captures"], report["uses"]);  // every one of them
  EXPECT_LE(many["ways"]["scg"]["captures"].get<int>(), 2 * 8);
  EXPECT_EQ(many["ways"]["eager"]["captures"], 0);
  for (const nlohmann::json& traffic : report["traffic"]) {
    for (const nlohmann::json& way : traffic["ways"]) EXPECT_GT(way["median_us"].get<double>(), 0);
  }
  EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>());
}

}  // namespace
}  // namespace millrace
