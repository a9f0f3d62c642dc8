// LearnerSac: the learner of every algorithm whose update is a program, of the critics alone or of
// critics and actor (sac_programs.h). The mathematics is recorded there; this class owns its state,
// runs the programs, follows normalisers and learning rates, and names the tensors of a checkpoint.
//
// On a device the carriers live there; the host keeps a copy of the state alone, for checkpoints
// and statistics. The constructor's thread is the stream's submit thread and makes
// every call.
#pragma once

#include <memory>
#include <optional>

#include "device_workspace.h"
#include "learner.h"
#include "normalizer.h"
#include "sac_programs.h"
#include "selected_program.h"
#include "stream_trace.h"
#include "workspace_snapshot.h"

namespace millrace {

class LearnerSac : public Learner {
 public:
  // `mirror` is read only with symmetry. Throws kInvalid for an odd batch with symmetry.
  LearnerSac(std::unique_ptr<SacPrograms> programs, const RowMirror& mirror, uint64_t seed);
  // The same with the programs running on a backend, and rows in its memory.
  LearnerSac(std::unique_ptr<SacPrograms> programs, const RowMirror& mirror, uint64_t seed,
             Backend& backend, Stream& stream, Precision precision,
             GraphPolicy graph = GraphPolicy::kOff, const SelectionSpec& selection = {},
             Trace* trace = nullptr);
  ~LearnerSac() override;

  // What an instance will allocate, without allocating it; `device` of the backend's memory.
  static size_t bytes_needed(const LearnerSpec& spec, const RowLayout& layout);
  static uint64_t device_bytes_needed(const LearnerSpec& spec, const RowLayout& layout,
                                      const BackendApi& api, Precision precision);
  // And beside that, if the way of its programs is selected.
  static uint64_t profile_bytes_needed(const LearnerSpec& spec, const RowLayout& layout,
                                       Precision precision);

  void update(const float* rows, int row_stride, uint64_t update_index) override;
  void set_reward_scale(float scale) override { reward_scale_ = scale; }
  void normalise_from(const float* rows, uint64_t count, int row_stride) override;
  const float* policy_parameters() override;
  void copy_policy_to(float* parameters) override;
  size_t policy_parameter_count() const override;
  PolicyShape policy_shape() const override { return programs_->policy_shape; }
  nlohmann::json take_statistics() override;
  uint64_t updates() const override { return updates_; }
  nlohmann::json describe() const override;
  nlohmann::json graph_facts() const override;
  nlohmann::json selection_facts() const override;
  void register_state(StateRegistry& registry) override;
  void fetch_state() override;
  void state_restored() override;
  size_t bytes() const override;

  const SacPrograms& programs() const { return *programs_; }
  // What the block holds for an update.
  Arguments arguments(const float* rows, int row_stride, uint64_t update_index) const;
  // What one update submits, from arguments that stand in the argument block; for capture. On a
  // device only.
  void submit(bool with_actor);
  // Null when the programs run on the host.
  DeviceWorkspace* device() { return device_.get(); }

 private:
  LearnerSac(std::unique_ptr<SacPrograms> programs, const RowMirror& mirror, uint64_t seed,
             Workspace::Contents contents);
  void write_mirror(const SacPrograms::Mirror& to, const MirrorColumns& from, int width);
  void write_normalizers();
  // The device has passed every update so far.
  void completed();
  std::unique_ptr<SelectedProgram> update_program(Backend& backend, Stream& stream,
                                                  GraphPolicy graph, const SelectionSpec& selection,
                                                  bool with_actor);
  std::string obstacle_to_graph(Backend& backend, GraphPolicy graph, bool with_actor) const;

  const std::unique_ptr<SacPrograms> programs_;
  std::unique_ptr<DeviceWorkspace> device_;
  std::unique_ptr<StreamTrace> stream_trace_;  // null: off, or on the host
  // Null on the host: an update of the critics alone, and one of critics and actor.
  std::unique_ptr<SelectedProgram> critic_update_, whole_update_;
  std::unique_ptr<WorkspaceSnapshot> before_profile_;  // null: nothing is selected
  std::optional<Normalizer> observation_normalizer_, critic_normalizer_;
  float reward_scale_ = 1.0f;
  uint64_t seed_;
  uint64_t updates_ = 0;
};

}  // namespace millrace
