// The frame sampler: at which frame of the motion an episode starts. In its adaptive mode frames
// that are about to be failed are drawn more often: a histogram over the motion, one bin a second,
// follows the frames at which episodes were terminated. Reset-owned: changed and read by the reset
// of a tick only, on the collector's thread. The histogram is part of the checkpoint.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "motion_view.h"
#include "state_registry.h"

namespace millrace {

enum class FrameMode {
  kStart,      // the first frame of all
  kClipStart,  // the first frame of any clip
  kUniform,
  kAdaptive,
  kMixed  // a clip's start or adaptive
};

// The modes' names in configurations, in the order of the enum.
const std::vector<std::string>& frame_mode_names();

// 32-bit words that one draw() takes from the frame sampler's stream, at most.
int frame_draws(FrameMode mode);

struct FrameSamplerSpec {
  FrameMode mode = FrameMode::kAdaptive;
  double uniform_share = .1;      // added to all bins together, so that none is forgotten
  double rate = .001;             // by which the histogram moves in a tick with failures
  int kernel_size = 1;            // bins; a failure also raises the kernel_size - 1 bins before it
  double kernel_decay = .8;       // from bin to bin of the kernel
  double clip_start_share = .5;   // of mixed draws
  double frames_per_second = 50;  // of the motion
};

class FrameSampler {
 public:
  // Of no motion (frames 0): draws nothing, reports nothing.
  FrameSampler(const FrameSamplerSpec& spec, const MotionView& motion);

  // Once per tick, in environment order: the frames at which episodes were terminated.
  void episodes_failed(const std::vector<int>& frames);
  // A pure function of the histogram, seed, tick and environment. Never the last frame of a clip:
  // an episode lasts at least a tick.
  int draw(uint64_t seed, uint64_t tick, int env) const;

  int bins() const { return static_cast<int>(failures_.size()); }
  const std::vector<double>& probabilities() const { return probabilities_; }
  // Adds frame_sampler/{entropy, top1_probability, top1_bin}; entropy 1 = uniform.
  void report(nlohmann::json& metrics) const;
  void register_state(StateRegistry& registry);
  // After a checkpoint was written into the registered tensors.
  void state_restored() { find_probabilities(); }

 private:
  void find_probabilities();
  int draw_adaptive(double bin_draw, double place_in_bin) const;

  FrameSamplerSpec spec_;
  MotionView motion_;
  std::vector<int> clip_starts_;
  std::vector<double> failures_;       // per bin, moving average of failures per tick
  std::vector<double> probabilities_;  // of the bins, from failures_
};

}  // namespace millrace
