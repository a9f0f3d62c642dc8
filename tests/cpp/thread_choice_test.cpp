#include "thread_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "physics_fixture.h"

namespace millrace {
namespace {

TEST(ThreadChoice, CandidatesFitTheMachine) {
  const std::vector<int> candidates = thread_candidates();
  ASSERT_FALSE(candidates.empty());
  EXPECT_GE(candidates.front(), 1);
  EXPECT_LE(candidates.back(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_TRUE(std::is_sorted(candidates.begin(), candidates.end()));
}

TEST(ThreadChoice, TakesTheFastestOfWhatItMeasured) {
  const auto start = std::chrono::steady_clock::now();
  const ThreadChoice choice = measure_threads(g1_spec(), 256);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  ASSERT_EQ(choice.measured.size(), thread_candidates().size());
  const auto fastest = std::max_element(
      choice.measured.begin(), choice.measured.end(),
      [](const auto& a, const auto& b) { return a.env_steps_per_s < b.env_steps_per_s; });
  EXPECT_EQ(choice.threads, fastest->threads);
  EXPECT_GT(fastest->env_steps_per_s, 0.0);
}

}  // namespace
}  // namespace millrace
