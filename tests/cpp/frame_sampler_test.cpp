// Tests for frame_sampler.h: the distribution against its formula, and what is drawn from it.
#include "frame_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace millrace {
namespace {

// Clips of the given lengths; the sampler looks at nothing else.
struct Clips {
  std::vector<int> end;
  MotionView view = {};

  explicit Clips(const std::vector<int>& lengths) {
    for (const int length : lengths) {
      const int stop = static_cast<int>(end.size()) + length;
      for (int i = 0; i < length; ++i) end.push_back(stop);
    }
    view.clip_end = end.data();
    view.frames = static_cast<int>(end.size());
  }
};

FrameSamplerSpec in_mode(FrameMode mode) {
  FrameSamplerSpec spec;
  spec.mode = mode;
  return spec;
}

std::map<int, int> draws(const FrameSampler& sampler, int count) {
  std::map<int, int> counts;
  for (int env = 0; env < count; ++env) counts[sampler.draw(7, 3, env)] += 1;
  return counts;
}

TEST(FrameSampler, OneBinASecondAndOne) {
  EXPECT_EQ(FrameSampler({}, Clips({500}).view).bins(), 11);
  EXPECT_EQ(FrameSampler({}, Clips({499}).view).bins(), 10);
  EXPECT_EQ(FrameSampler({}, Clips({30}).view).bins(), 1);
}

TEST(FrameSampler, FollowsTheFormula) {
  const Clips clips({500});
  FrameSampler sampler({}, clips.view);
  for (const double p : sampler.probabilities()) EXPECT_NEAR(p, 1.0 / 11, 1e-15);
  std::vector<double> fail(11, 0.0);
  const std::vector<std::vector<int>> ticks = {{499, 499, 0}, {250}, {}, {45, 46, 47}};
  for (const std::vector<int>& failed : ticks) {
    sampler.episodes_failed(failed);
    if (failed.empty()) continue;
    std::vector<double> count(11, 0.0);
    for (const int frame : failed) count[static_cast<size_t>(frame * 11 / 500)] += 1;
    for (size_t b = 0; b < 11; ++b) fail[b] = .001 * count[b] + .999 * fail[b];
  }
  double sum = 0;
  for (const double f : fail) sum += f + .1 / 11;
  for (size_t b = 0; b < 11; ++b) {
    EXPECT_NEAR(sampler.probabilities()[b], (fail[b] + .1 / 11) / sum, 1e-14) << b;
  }
}

TEST(FrameSampler, AKernelRaisesTheBinsBeforeAFailure) {
  const Clips clips({250});
  FrameSamplerSpec spec;
  spec.kernel_size = 2;
  spec.uniform_share = 0;
  FrameSampler sampler(spec, clips.view);
  sampler.episodes_failed({130});  // bin 3 of 6
  const std::vector<double> expected = {0, 0, .8 / 1.8, 1 / 1.8, 0, 0};
  for (size_t b = 0; b < 6; ++b) EXPECT_NEAR(sampler.probabilities()[b], expected[b], 1e-12) << b;
}

TEST(FrameSampler, DrawsAsOftenAsItSays) {
  const Clips clips({500});
  FrameSamplerSpec spec;
  spec.rate = .05;
  FrameSampler sampler(spec, clips.view);
  for (int tick = 0; tick < 20; ++tick) sampler.episodes_failed({300, 310, 120});
  constexpr int kDraws = 20000;
  std::vector<int> in_bin(11, 0);
  for (const auto& [frame, count] : draws(sampler, kDraws)) {
    ASSERT_GE(frame, 0);
    ASSERT_LE(frame, 498);
    // frame = floor((bin + u) / 11 * 499): the bin comes back from the frame's middle.
    in_bin[static_cast<size_t>((frame + 0.5) * 11 / 499)] += count;
  }
  for (size_t b = 0; b < 11; ++b) {
    const double p = sampler.probabilities()[b];
    EXPECT_NEAR(in_bin[b] / double{kDraws}, p, 5 * std::sqrt(p * (1 - p) / kDraws) + .002) << b;
  }
  EXPECT_GT(sampler.probabilities()[6], 0.3);
}

TEST(FrameSampler, ModesDrawWhatTheirNamesSay) {
  const Clips clips({100, 50, 200});
  EXPECT_EQ(draws(FrameSampler(in_mode(FrameMode::kStart), clips.view), 50),
            (std::map<int, int>{{0, 50}}));
  const auto starts = draws(FrameSampler(in_mode(FrameMode::kClipStart), clips.view), 300);
  ASSERT_EQ(starts.size(), 3u);
  for (const int frame : {0, 100, 150}) EXPECT_NEAR(starts.at(frame), 100, 45) << frame;
  const auto uniform = draws(FrameSampler(in_mode(FrameMode::kUniform), clips.view), 35000);
  EXPECT_EQ(uniform.size(), 347u) << "all but the last frame of each clip";
  const auto mixed = draws(FrameSampler(in_mode(FrameMode::kMixed), clips.view), 3000);
  int at_start = 0;
  for (const int frame : {0, 100, 150}) at_start += mixed.at(frame);
  EXPECT_NEAR(at_start, 1500, 150);
}

TEST(FrameSampler, NeverStartsInTheLastFrameOfAClip) {
  const Clips clips({2, 2, 3});
  for (const auto& [frame, count] : draws(FrameSampler({}, clips.view), 500)) {
    EXPECT_TRUE(frame == 0 || frame == 2 || frame == 4 || frame == 5) << frame << " x " << count;
  }
}

TEST(FrameSampler, DependsOnSeedTickAndEnvironmentAlone) {
  const Clips clips({5000});
  const FrameSampler sampler({}, clips.view);
  EXPECT_EQ(sampler.draw(1, 2, 3), sampler.draw(1, 2, 3));
  EXPECT_NE(sampler.draw(1, 2, 3), sampler.draw(2, 2, 3));
  EXPECT_NE(sampler.draw(1, 2, 3), sampler.draw(1, 3, 3));
  EXPECT_NE(sampler.draw(1, 2, 3), sampler.draw(1, 2, 4));
}

TEST(FrameSampler, ReportsAndRestores) {
  const Clips clips({500});
  FrameSampler sampler({}, clips.view);
  nlohmann::json metrics;
  sampler.report(metrics);
  EXPECT_NEAR(metrics["frame_sampler/entropy"], 1.0, 1e-12);
  for (int i = 0; i < 500; ++i) sampler.episodes_failed({260});
  sampler.report(metrics);
  EXPECT_LT(metrics["frame_sampler/entropy"], 0.9);
  EXPECT_EQ(metrics["frame_sampler/top1_bin"], 5);
  EXPECT_GT(metrics["frame_sampler/top1_probability"], 0.5);

  StateRegistry from, to;
  FrameSampler other({}, clips.view);
  sampler.register_state(from);
  other.register_state(to);
  ASSERT_EQ(from.tensors().size(), 1u);
  std::memcpy(to.tensors()[0].data, from.tensors()[0].data, from.tensors()[0].bytes());
  other.state_restored();
  EXPECT_EQ(other.probabilities(), sampler.probabilities());
}

}  // namespace
}  // namespace millrace
