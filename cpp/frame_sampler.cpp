#include "frame_sampler.h"

#include <algorithm>
#include <cmath>

#include "philox.h"

namespace millrace {

namespace {

enum FrameDraw { kBinDraw, kPlaceDraw, kChoiceDraw, kClipDraw };

}  // namespace

const std::vector<std::string>& frame_mode_names() {
  static const std::vector<std::string> names = {"start", "clip_start", "uniform", "adaptive",
                                                 "mixed"};
  return names;
}

int frame_draws(FrameMode mode) {
  switch (mode) {
    case FrameMode::kStart:
      return 0;
    case FrameMode::kClipStart:
    case FrameMode::kUniform:
      return 1;
    case FrameMode::kAdaptive:
      return 2;
    case FrameMode::kMixed:
      return 3;  // which of the two, and adaptive
  }
  return 0;
}

FrameSampler::FrameSampler(const FrameSamplerSpec& spec, const MotionView& motion)
    : spec_(spec), motion_(motion) {
  if (motion.frames == 0) return;
  for (int frame = 0; frame < motion.frames; frame = motion.clip_end[frame]) {
    clip_starts_.push_back(frame);
  }
  const double seconds = motion.frames / spec.frames_per_second;
  failures_.assign(static_cast<size_t>(seconds) + 1, 0.0);
  find_probabilities();
}

void FrameSampler::episodes_failed(const std::vector<int>& frames) {
  if (frames.empty()) return;
  std::vector<double> counts(failures_.size(), 0.0);
  for (const int frame : frames) {
    counts[static_cast<size_t>(int64_t{frame} * bins() / motion_.frames)] += 1;
  }
  for (size_t bin = 0; bin < counts.size(); ++bin) {
    failures_[bin] = spec_.rate * counts[bin] + (1 - spec_.rate) * failures_[bin];
  }
  find_probabilities();
}

void FrameSampler::find_probabilities() {
  const size_t count = failures_.size();
  probabilities_.assign(count, 0.0);
  double kernel_sum = 0;
  for (int k = 0; k < spec_.kernel_size; ++k) kernel_sum += std::pow(spec_.kernel_decay, k);
  double sum = 0;
  for (size_t bin = 0; bin < count; ++bin) {
    double smoothed = 0;
    for (int k = 0; k < spec_.kernel_size; ++k) {
      const size_t source = std::min(bin + static_cast<size_t>(k), count - 1);
      smoothed += std::pow(spec_.kernel_decay, k) / kernel_sum * failures_[source];
    }
    probabilities_[bin] = smoothed + spec_.uniform_share / static_cast<double>(count);
    sum += probabilities_[bin];
  }
  // Without failures and without a uniform share every bin is as good as another.
  for (double& p : probabilities_) p = sum > 0 ? p / sum : 1.0 / static_cast<double>(count);
}

int FrameSampler::draw_adaptive(double bin_draw, double place_in_bin) const {
  size_t bin = 0;
  double below = 0;
  while (bin + 1 < probabilities_.size() && below + probabilities_[bin] <= bin_draw) {
    below += probabilities_[bin++];
  }
  const double share = (static_cast<double>(bin) + place_in_bin) / static_cast<double>(bins());
  return static_cast<int>(share * (motion_.frames - 1));
}

int FrameSampler::draw(uint64_t seed, uint64_t tick, int env) const {
  const RandomSource source = random_source(seed, kStreamFrameSampler, static_cast<u32>(env), tick);
  const bool starts_clip = spec_.mode == FrameMode::kClipStart ||
                           (spec_.mode == FrameMode::kMixed &&
                            unit_float(random_u32(source, kChoiceDraw)) < spec_.clip_start_share);
  if (spec_.mode == FrameMode::kStart) return 0;
  if (starts_clip) {
    return clip_starts_[random_index(source, kClipDraw, static_cast<u32>(clip_starts_.size()))];
  }
  const double place = unit_float(random_u32(source, kPlaceDraw));
  const int frame = spec_.mode == FrameMode::kUniform
                        ? static_cast<int>(place * (motion_.frames - 1))
                        : draw_adaptive(unit_float(random_u32(source, kBinDraw)), place);
  return std::min(frame, motion_.clip_end[frame] - 2);
}

void FrameSampler::report(nlohmann::json& metrics) const {
  if (failures_.empty()) return;
  double entropy = 0;
  for (const double p : probabilities_) entropy -= p > 0 ? p * std::log(p) : 0;
  const auto top = std::max_element(probabilities_.begin(), probabilities_.end());
  metrics["frame_sampler/entropy"] = bins() > 1 ? entropy / std::log(bins()) : 1.0;
  metrics["frame_sampler/top1_probability"] = *top;
  metrics["frame_sampler/top1_bin"] = top - probabilities_.begin();
}

void FrameSampler::register_state(StateRegistry& registry) {
  if (failures_.empty()) return;
  registry.add("curriculum/frame_failures", DType::kF64, {bins()}, failures_.data());
}

}  // namespace millrace
