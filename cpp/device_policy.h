// DevicePolicy: the acting policy on a device, as the program "policy". Weights come there from the
// learner by a copy on the device and never leave it; actions reach the host once a tick.
//
//   learner's thread    publish: learner's stream copies its weights into the snapshot that is not
//                       the newest, and the host sees that complete; then it is the newest
//   collector's thread  act: copy of the newest snapshot, if there is a new one -> observations, if
//                       the device does not have them -> each robot's tick, where noise is
//                       repeated -> argument block -> program -> actions
//
// The collector's thread is the submit thread of this stream; both sides meet at points that the
// host observes (ADR 0013): the learner writes only the snapshot that is not the newest, and the
// collector reads the newest to its end before another one can become that. So no act sees half of
// an update, and no learner waits for an act. The program is always fp32, like the policy that
// plays and is evaluated. Nothing is allocated after construction.
#pragma once

#include <memory>

#include "acting_policy.h"
#include "captured_program.h"
#include "device_workspace.h"
#include "stream_trace.h"

namespace millrace {

class DevicePolicy final : public ActingPolicy {
 public:
  // The host's observations and actions should be pinned. Every act() has draws of the kind that
  // `noise` names, which is not kNone.
  DevicePolicy(Backend& backend, PolicyShape shape, int num_envs, uint64_t seed, Noise noise,
               GraphPolicy graph, Trace* trace);

  // What an instance will allocate on the device, without allocating it.
  static uint64_t bytes_needed(const BackendApi& api, PolicyShape shape, int num_envs);

  void publish(Learner& learner) override;
  void act(const Observations& observations, const Draws& draws, float* actions) override;
  void finish() override;
  nlohmann::json facts() const override;
  nlohmann::json graph_facts() const override;
  uint64_t bytes() const;

 private:
  void take_snapshot();
  const float* upload(const Observations& observations);
  void upload(const Draws& draws);

  const uint64_t seed_;
  const Noise noise_;
  const PolicyPrograms programs_;
  const Program program_;
  Stream stream_;
  std::unique_ptr<StreamTrace> stream_trace_;
  DeviceWorkspace device_;
  Memory observations_;
  Memory drawn_at_;  // pinned
  Memory snapshots_[2];
  Event settled_;
  CapturedProgram captured_;

  std::mutex mutex_;  // guards the two below, and the newest snapshot while it is read
  int newest_ = 0;
  bool snapshot_is_new_ = false;
};

}  // namespace millrace
