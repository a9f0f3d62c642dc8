// FastSAC: SAC with two categorical critics, each bootstrapped from its own target network, and
// mirrored copies of the batch. The mathematics is recorded in fastsac_programs; this class owns
// its state, runs the programs and names the tensors of a checkpoint.
#pragma once

#include <optional>

#include "fastsac_programs.h"
#include "learner.h"
#include "normalizer.h"

namespace millrace {

class LearnerFastSac : public Learner {
 public:
  // `mirror` is read only with symmetry. Throws kInvalid for an odd batch with symmetry.
  LearnerFastSac(const LearnerSpec& spec, const RowLayout& layout, const RowMirror& mirror,
                 uint64_t seed);

  // What an instance will allocate, without allocating it.
  static size_t bytes_needed(const LearnerSpec& spec, const RowLayout& layout);

  void update(const float* rows, int row_stride, uint64_t update_index) override;
  void normalise_from(const float* rows, uint64_t count, int row_stride) override;
  const float* policy_parameters() const override;
  size_t policy_parameter_count() const override;
  PolicyShape policy_shape() const override { return programs_.policy_shape; }
  nlohmann::json take_statistics() override;
  uint64_t updates() const override { return updates_; }
  nlohmann::json describe() const override;
  void register_state(StateRegistry& registry) override;
  void state_restored() override;
  size_t bytes() const override;

  const FastSacPrograms& programs() const { return programs_; }

 private:
  void write_mirror(const FastSacPrograms::Mirror& to, const MirrorColumns& from, int width);
  void write_normalizers();

  FastSacPrograms programs_;
  std::optional<Normalizer> observation_normalizer_, critic_normalizer_;
  uint64_t seed_;
  uint64_t updates_ = 0;
};

}  // namespace millrace
