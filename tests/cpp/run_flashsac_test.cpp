// Tests for cpp/run.cpp with what FlashSAC's settings follow from tick to tick: returns as the rows
// have them, and exploration that a reset begins anew.
#include <gtest/gtest.h>

#include "layout.h"
#include "run.h"
#include "run_fixture.h"

namespace millrace {
namespace {

template <class Value>
std::vector<Value> values_of(const Tensors& tensors, const std::string& name) {
  const std::string& bytes = tensors.at(name);
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

nlohmann::json flashsac_config(nlohmann::json config) {
  config["algo"] = "flashsac";
  config["learner"].update({{"reward_scaling", "episode"}, {"noise_repeat_max", 16}});
  return config;
}

// 256 rows are kept: more than are packed.
TEST(RunFlashSac, ReturnsAreThoseOfTheCommittedRowsInOrder) {
  constexpr uint64_t kTicks = 60, kEnvs = 4;
  millrace::Run run(flashsac_config(g1_config()));
  const nlohmann::json metrics = run.advance(kTicks).at("metrics");
  const Tensors tensors = tensors_of(run);
  const std::vector<float> rows = values_of<float>(tensors, "replay/rows");
  const RowLayout layout{98, 29, 101};
  const size_t stride = rows.size() / 256;
  ASSERT_GE(stride, static_cast<size_t>(layout.width()));
  std::vector<double> sums(kEnvs, 0.0);
  double largest = 0;
  int ended = 0;
  for (uint64_t r = 0; r < kTicks * kEnvs; ++r) {
    const float* row = rows.data() + r * stride;
    double& sum = sums[r % kEnvs];
    sum = 0.97f * sum + row[layout.reward()];
    largest = std::max(largest, std::abs(sum));
    if (row[layout.done()] != 0.0f) sum = 0.0;
    ended += row[layout.done()] != 0.0f ? 1 : 0;
  }
  EXPECT_GT(ended, 0);
  const auto found = values_of<double>(tensors, "reward_scale/return");
  for (size_t i = 0; i < kEnvs; ++i) EXPECT_NEAR(found[i], sums[i], 1e-9);
  EXPECT_NEAR(values_of<double>(tensors, "reward_scale/largest")[0], largest, 1e-9);
  EXPECT_NEAR(values_of<double>(tensors, "reward_scale/count")[0], 1e-4 + kTicks * kEnvs, 1e-9);
  EXPECT_NE(metrics.at("learner/reward_scale"), 1.0);
}

TEST(RunFlashSac, ExplorationIsDrawnAnewAfterAReset) {
  millrace::Run run(flashsac_config(g1_config()));
  int ended = 0, kept = 0;
  for (uint64_t tick = 0; tick < 80; ++tick) {
    run.advance(1);
    const Tensors tensors = tensors_of(run);
    const auto done = values_of<int32_t>(tensors, "update/done");
    const auto kept_until = values_of<uint64_t>(tensors, "exploration/kept_until");
    for (size_t i = 0; i < kept_until.size(); ++i) {
      EXPECT_EQ(kept_until[i] == 0, done[i] != 0) << "tick " << tick;
      ended += done[i] != 0 ? 1 : 0;
      kept += kept_until[i] > tick + 1 ? 1 : 0;
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(kept, 0);
}

}  // namespace
}  // namespace millrace
