#include "motion_term_table.h"

#include "terms.h"

namespace millrace {

namespace {

TermInfo observation(const char* name, int id, int dim, const char* unit, const char* summary) {
  return {name, TermKind::kObservation, id, dim, unit, summary, {}};
}

// A reward exp(-squared deviation / scale^2).
TermInfo closeness(const char* name, int id, double scale, const char* unit, const char* summary) {
  return {name,
          TermKind::kReward,
          id,
          0,
          "1",
          summary,
          {{"scale", scale, unit, 1e-3, 1000, "deviation at which the reward is 1/e"}}};
}

TermInfo lost(const char* name, int id, double limit, const char* unit, const char* summary) {
  return {name,
          TermKind::kTermination,
          id,
          0,
          unit,
          summary,
          {{"limit", limit, unit, 1e-3, 1000, "largest deviation from the reference"}}};
}

std::vector<TermInfo> observation_terms() {
  return {
      observation("motion_joint_position", kObserveMotionJointPosition, kPerJoint, "rad",
                  "joint positions of the reference"),
      observation("motion_joint_velocity", kObserveMotionJointVelocity, kPerJoint, "rad/s",
                  "joint velocities of the reference"),
      observation("anchor_position", kObserveAnchorPosition, 3, "m",
                  "the reference's anchor body, seen from the robot's"),
      observation("anchor_orientation", kObserveAnchorOrientation, 6, "1",
                  "two columns of the rotation from the robot's anchor body to the reference's"),
      observation("body_position", kObserveBodyPosition, kThreePerBody, "m",
                  "tracked bodies, seen from the anchor body"),
      observation("body_orientation", kObserveBodyOrientation, kSixPerBody, "1",
                  "two columns of the rotation from the anchor body to each tracked body"),
  };
}

std::vector<TermInfo> reward_terms() {
  return {
      closeness("motion_global_root_pos", kRewardMotionRootPosition, .3, "m",
                "closeness of the anchor body to the reference's place"),
      closeness("motion_global_root_ori", kRewardMotionRootOrientation, .4, "rad",
                "closeness of the anchor body to the reference's orientation"),
      closeness("motion_body_pos", kRewardMotionBodyPosition, .3, "m",
                "closeness of the tracked bodies to the aligned reference's places"),
      closeness("motion_body_ori", kRewardMotionBodyOrientation, .4, "rad",
                "closeness of the tracked bodies to the aligned reference's orientations"),
      closeness("motion_body_lin_vel", kRewardMotionBodyLinearVelocity, 1, "m/s",
                "closeness of the tracked bodies to the reference's velocities"),
      closeness("motion_body_ang_vel", kRewardMotionBodyAngularVelocity, 3.14, "rad/s",
                "closeness of the tracked bodies to the reference's angular velocities"),
      closeness("motion_joint_pos", kRewardMotionJointPosition, .2, "rad",
                "closeness of the joints to the reference's positions"),
      closeness("motion_joint_vel", kRewardMotionJointVelocity, 1, "rad/s",
                "closeness of the joints to the reference's velocities"),
      {"action_rate_l2",
       TermKind::kReward,
       kRewardActionRateL2,
       0,
       "1",
       "squared change of the action since the last tick",
       {}},
      {"joint_limit",
       TermKind::kReward,
       kRewardJointLimit,
       0,
       "rad^2",
       "squared violation of the joint limits",
       {}},
      {"undesired_contacts",
       TermKind::kReward,
       kRewardUndesiredContacts,
       0,
       "1",
       "number of tracked bodies, hands and feet aside, near the ground",
       {{"height", .05, "m", 0, 10, "height below which a body counts"}}},
  };
}

std::vector<TermInfo> termination_terms() {
  return {
      lost("anchor_height", kTerminateAnchorHeight, .5, "m",
           "the anchor body is higher or lower than the reference's"),
      lost("anchor_tilt", kTerminateAnchorTilt, .8, "1",
           "gravity along the anchor body's vertical differs from the reference's"),
      lost("end_effector_height", kTerminateEndEffectorHeight, .5, "m",
           "a hand or foot is higher or lower than the reference's"),
      {"clip_end",
       TermKind::kTermination,
       kTerminateClipEnd,
       0,
       "1",
       "the motion has no further frame (truncates)",
       {}},
  };
}

std::vector<TermInfo> other_terms() {
  return {
      {"motion",
       TermKind::kCommand,
       0,
       0,
       "m, rad",
       "a reference frame per tick; episodes start around one of them",
       {{"root_xy", .05, "m", 0, 10, "half-width of the root's place at the start"},
        {"root_z", .01, "m", 0, 10, "half-width of its height"},
        {"root_roll_pitch", .1, "rad", 0, 3.2, "half-width of its roll and pitch"},
        {"root_yaw", .2, "rad", 0, 3.2, "half-width of its heading"},
        {"velocity_xy", .5, "m/s", 0, 10, "half-width of its horizontal velocity"},
        {"velocity_z", .2, "m/s", 0, 10, "half-width of its vertical velocity"},
        {"roll_pitch_rate", .52, "rad/s", 0, 10, "half-width of its roll and pitch rate"},
        {"yaw_rate", .78, "rad/s", 0, 10, "half-width of its yaw rate"},
        {"joint_position", .1, "rad", 0, 3.2, "half-width of the joints, inside their limits"}}},
      {"frame_sampler",
       TermKind::kCurriculum,
       0,
       0,
       "1",
       "starts episodes more often at frames that are about to be failed",
       {{"uniform_share", .1, "1", 0, 1000, "weight of all frames beside the failures"},
        {"rate", .001, "1", 0, 1, "by which the histogram moves in a tick with failures"},
        {"kernel_size", 1, "bins", 1, 100, "bins of 1 s that a failure raises, its own the last"},
        {"kernel_decay", .8, "1", 0, 1, "weight of each bin against the one behind it"},
        {"clip_start_share", .5, "1", 0, 1, "share of clip starts in mode mixed"}}},
  };
}

}  // namespace

std::vector<TermInfo> motion_term_table() {
  std::vector<TermInfo> table;
  for (const auto& part :
       {observation_terms(), reward_terms(), termination_terms(), other_terms()}) {
    table.insert(table.end(), part.begin(), part.end());
  }
  return table;
}

}  // namespace millrace
