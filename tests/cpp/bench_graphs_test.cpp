// Tests for cpp/bench_graphs.cpp.
#include "bench_graphs.h"

#include <gtest/gtest.h>

#include "fake_cuda.h"
#include "status.h"

namespace millrace {
namespace {

TEST(BenchGraphs, OnTheCpuEveryCaseRunsEagerlyAndSaysWhy) {
  const nlohmann::json report =
      bench_graphs({{"backend", "cpu"}, {"rounds", 10}, {"input_mib", 1}});
  EXPECT_EQ(report["graphs"], "the backend launches programs eagerly: eager alone");
  EXPECT_EQ(report["cases"].size(), 5u);
  for (const nlohmann::json& each : report["cases"]) {
    EXPECT_EQ(each["ways"].size(), 2u) << each["name"];  // eager and what was selected
    EXPECT_GT(each["ways"]["eager"]["median_us"].get<double>(), 0);
    EXPECT_EQ(each["selections"][0]["way"], "eager");
    EXPECT_EQ(each["selections"][0]["reason"], "there is no other way");
  }
  EXPECT_EQ(report["many_shapes"]["traffic"].size(), 2u);
}

TEST(BenchGraphs, InputsThatDoNotFitAreRefusedBeforeTheyAreAllocated) {
  try {
    bench_graphs({{"backend", "cpu"}, {"rounds", 10}, {"input_mib", 1 << 20}});
    FAIL() << "2 TiB of inputs";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kResource);
    EXPECT_EQ(std::string(failure.what()).rfind("inputs 2,199,023,255,552 B (2 x ", 0), 0u)
        << failure.what();
  }
}

TEST(BenchGraphs, OneCaseOnADeviceReportsEveryWay) {
  const nlohmann::json report = bench_graphs(
      {{"rounds", 10}, {"input_mib", 1}, {"small", true}, {"case", "varying_inputs"}}, fake_cuda());
  ASSERT_EQ(report["cases"].size(), 1u);
  const nlohmann::json& ways = report["cases"][0]["ways"];
  ASSERT_EQ(ways.size(), 5u);
  EXPECT_EQ(ways["eager"]["coverage"], 0.0);
  for (const char* way : {"graph", "cgct", "cgct_pi"}) EXPECT_EQ(ways[way]["coverage"], 1.0) << way;
  EXPECT_GT(ways["graph"]["copied_bytes_per_run"].get<uint64_t>(), 1u << 20);
  EXPECT_LT(ways["cgct_pi"]["copied_bytes_per_run"].get<uint64_t>(), 1000u);
  EXPECT_EQ(ways["graph"]["device_bytes"].get<uint64_t>(), 1u << 20);  // where inputs are copied to
  EXPECT_EQ(report["cases"][0]["transform"]["rewrites"].size(), 64u);
  EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>());
}

TEST(BenchGraphs, ACaseOfGraphsAloneIsRefusedWhereThereAreNone) {
  try {
    bench_graphs({{"backend", "cpu"}, {"rounds", 10}, {"case", "break_even"}});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(
        std::string(failure.what()),
        "case: break_even compares two ways of a graph, and the cpu backend launches programs "
        "eagerly");
  }
}

TEST(BenchGraphs, RefusesUnknownCasesAndFewRounds) {
  EXPECT_THROW(bench_graphs({{"backend", "cpu"}, {"case", "none"}}), Failure);
  EXPECT_THROW(bench_graphs({{"backend", "cpu"}, {"rounds", 9}}), Failure);
}

}  // namespace
}  // namespace millrace
