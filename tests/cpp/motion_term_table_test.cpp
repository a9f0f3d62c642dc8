// Tests for motion_term_table.h: the numbers of the task's published description.
#include "motion_term_table.h"

#include <gtest/gtest.h>

#include <map>

#include "terms.h"

namespace millrace {
namespace {

std::map<std::string, double> defaults_of(TermKind kind, const std::string& term) {
  std::map<std::string, double> defaults;
  for (const TermParameter& parameter : term_info(kind, term).parameters) {
    defaults[parameter.name] = parameter.default_value;
  }
  return defaults;
}

TEST(MotionTermTable, HasThePublishedNumbers) {
  const std::pair<const char*, double> scales[] = {
      {"motion_global_root_pos", .3}, {"motion_global_root_ori", .4}, {"motion_body_pos", .3},
      {"motion_body_ori", .4},        {"motion_body_lin_vel", 1},     {"motion_body_ang_vel", 3.14},
      {"motion_joint_pos", .2},       {"motion_joint_vel", 1}};
  for (const auto& [name, scale] : scales) {
    EXPECT_EQ(defaults_of(TermKind::kReward, name).at("scale"), scale) << name;
  }
  EXPECT_EQ(defaults_of(TermKind::kReward, "undesired_contacts").at("height"), .05);
  EXPECT_EQ(defaults_of(TermKind::kTermination, "anchor_height").at("limit"), .5);
  EXPECT_EQ(defaults_of(TermKind::kTermination, "anchor_tilt").at("limit"), .8);
  EXPECT_EQ(defaults_of(TermKind::kTermination, "end_effector_height").at("limit"), .5);
  EXPECT_EQ(defaults_of(TermKind::kCommand, "motion"),
            (std::map<std::string, double>{{"root_xy", .05},
                                           {"root_z", .01},
                                           {"root_roll_pitch", .1},
                                           {"root_yaw", .2},
                                           {"velocity_xy", .5},
                                           {"velocity_z", .2},
                                           {"roll_pitch_rate", .52},
                                           {"yaw_rate", .78},
                                           {"joint_position", .1}}));
  EXPECT_EQ(defaults_of(TermKind::kCurriculum, "frame_sampler"),
            (std::map<std::string, double>{{"uniform_share", .1},
                                           {"rate", .001},
                                           {"kernel_size", 1},
                                           {"kernel_decay", .8},
                                           {"clip_start_share", .5}}));
}

TEST(MotionTermTable, IsPartOfTheTable) {
  for (const TermInfo& info : motion_term_table()) {
    EXPECT_EQ(term_info(info.kind, info.name).id, info.id) << info.name;
  }
  EXPECT_EQ(term_info(TermKind::kObservation, "body_orientation").dim, kSixPerBody);
}

}  // namespace
}  // namespace millrace
