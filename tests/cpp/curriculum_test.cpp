// Tests for curriculum.h: the arithmetic of the average and of the scale.
#include "curriculum.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

PenaltyCurriculumSpec walk_flat() {
  PenaltyCurriculumSpec spec;
  spec.enabled = true;
  spec.start = 0.5;
  spec.min = 0.5;
  spec.max = 1.0;
  spec.lower_length = 150;
  spec.upper_length = 750;
  spec.rate = 0.001;
  spec.window = 1000;
  return spec;
}

TEST(Curriculum, AverageMovesByTheShareOfTheWindow) {
  PenaltyCurriculum curriculum(walk_flat(), 128);  // window floor(1000 * 128 / 4096) = 31
  curriculum.episodes_ended(10, 310);
  EXPECT_DOUBLE_EQ(curriculum.average_length(), 310 * 10.0 / 31);
  curriculum.episodes_ended(62, 400);
  EXPECT_DOUBLE_EQ(curriculum.average_length(), 400) << "the share is at most 1";
  curriculum.episodes_ended(0, 0);
  EXPECT_DOUBLE_EQ(curriculum.average_length(), 400);
}

TEST(Curriculum, ScaleFollowsTheAverageWithinItsBounds) {
  PenaltyCurriculum curriculum(walk_flat(), 2);  // window 1
  EXPECT_FLOAT_EQ(curriculum.scale(), 0.5f);
  curriculum.episodes_ended(1, 100);
  EXPECT_FLOAT_EQ(curriculum.scale(), 0.5f);
  for (int i = 0; i < 3; ++i) curriculum.episodes_ended(1, 751);
  EXPECT_FLOAT_EQ(curriculum.scale(), 0.5f * 1.001f * 1.001f * 1.001f);
  curriculum.episodes_ended(1, 400);
  EXPECT_FLOAT_EQ(curriculum.scale(), 0.5f * 1.001f * 1.001f * 1.001f);
  curriculum.episodes_ended(1, 149);
  EXPECT_FLOAT_EQ(curriculum.scale(), 0.5f * 1.001f * 1.001f * 1.001f * 0.999f);
  for (int i = 0; i < 2000; ++i) curriculum.episodes_ended(1, 1000);
  EXPECT_FLOAT_EQ(curriculum.scale(), 1.0f);
}

TEST(Curriculum, DisabledIsOne) {
  PenaltyCurriculumSpec spec = walk_flat();
  spec.enabled = false;
  EXPECT_EQ(PenaltyCurriculum(spec, 8).scale(), 1.0f);
}

}  // namespace
}  // namespace millrace
