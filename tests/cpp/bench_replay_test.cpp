#include "bench_replay.h"

#include <gtest/gtest.h>

#include "status.h"

namespace millrace {
namespace {

nlohmann::json request(const char* mode) {
  return {{"backend", "cpu"},  {"mode", mode},    {"envs", 32}, {"capacity_rows", 100},
          {"sample_rows", 64}, {"depth", 2},      {"runs", 2},  {"ticks", 6},
          {"counted", 4},      {"action_dim", 27}};
}

TEST(BenchReplay, SerialTimesEveryPhaseAndChecksTheBatch) {
  const nlohmann::json report = bench_replay(request("serial"));
  EXPECT_TRUE(report["verified"].get<bool>());
  EXPECT_EQ(report["row_width"], 428);
  EXPECT_EQ(report["untimed_ticks"], 4);  // 10 ticks of 32 rows are 3 times round 100
  EXPECT_GE(report["wraps"].get<int>(), 3);
  EXPECT_EQ(report["host_bytes"], 2 * 32 * 428 * 4);
  EXPECT_EQ(report["device_bytes"], (100 + 2 * 64) * 428 * 4);
  EXPECT_EQ(report["rounds"].size(), 2u);
  EXPECT_EQ(report["counted_ticks"], 8);
  const nlohmann::json& medians = report["medians"];
  for (const char* phase : {"fill_us", "submit_us", "commit_us", "gather_us", "total_us"}) {
    EXPECT_GT(medians.at(phase).get<double>(), 0.0) << phase;
    EXPECT_GE(report["iqr"].at(phase).get<double>(), 0.0) << phase;
  }
  EXPECT_GE(medians["total_us"], medians["gather_us"]);
}

TEST(BenchReplay, PrefetchHasEveryBatchReadyAtTheBoundary) {
  const nlohmann::json report = bench_replay(request("prefetch"));
  EXPECT_TRUE(report["verified"].get<bool>());
  EXPECT_EQ(report["ready_ticks"], report["counted_ticks"]);
  EXPECT_GT(report["medians"]["boundary_us"].get<double>(), 0.0);
  EXPECT_GT(report["medians"]["progress_us"].get<double>(), 0.0);
}

TEST(BenchReplay, RefusesNonsense) {
  const auto refuses = [](const char* key, const nlohmann::json& value) {
    nlohmann::json bad = request("serial");
    bad[key] = value;
    EXPECT_THROW(bench_replay(bad), Failure) << key;
  };
  refuses("mode", "parallel");
  refuses("backend", "mps");
  refuses("envs", 0);
  refuses("counted", 7);
  refuses("capacity_rows", 95);
}

TEST(BenchReplay, WhatDoesNotFitIsRefusedWithTheArithmetic) {
  const auto error_of = [](const char* key, uint64_t rows) -> std::string {
    nlohmann::json large = request("serial");
    large[key] = rows;
    try {
      bench_replay(large);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kResource);
      return failure.what();
    }
    return "no error";
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string ring = error_of("capacity_rows", 0xFFFFFFFFu);
  EXPECT_TRUE(contains(ring, "ring 7,352,984,009,040 B (4,294,967,295 rows x 1,712 B)")) << ring;
  EXPECT_TRUE(contains(ring, " B of available host memory")) << ring;
  const std::string batches = error_of("sample_rows", 0xFFFFFFFFu);
  EXPECT_TRUE(contains(batches, "batches ")) << batches;
}

}  // namespace
}  // namespace millrace
