// Tests for motion_command.h.
#include "motion_command.h"

#include "motion_clip.h"
#include "motion_fixture.h"
#include "resources.h"

namespace millrace {
namespace {

using nlohmann::json;

json request(json more) {
  more["resources_dir"] = resources();
  return more;
}

TEST(MotionCommand, InfoTellsWhatAMotionIs) {
  const json report = run_motion(request({{"kind", "info"}}));
  EXPECT_EQ(report.at("source"), "built-in");
  EXPECT_EQ(report.at("frames"), 500);
  EXPECT_NEAR(report.at("root_height").at("highest_m"), 0.754, 0.01);
  EXPECT_LT(report.at("root_height").at("lowest_m"), 0.7);
  EXPECT_NEAR(report.at("lowest_body_m"), 0.037, 0.01);
  EXPECT_GT(report.at("fastest_joint").at("rad_per_s"), 0.5);
  EXPECT_TRUE(report.at("joints_outside_limits").empty());
}

TEST(MotionCommand, MakesWhatInfoReads) {
  const MotionPath made(".npz");
  const json written = run_motion(request({{"kind", "make"}, {"out", made.path}}));
  EXPECT_EQ(written.at("written"), made.path);
  json read = run_motion(request({{"kind", "info"}, {"file", made.path}}));
  EXPECT_EQ(read.at("source"), made.path);
  EXPECT_EQ(read.at("fastest_joint"), written.at("fastest_joint"));
}

TEST(MotionCommand, ConvertsACsvAndSeesJointsThatCannotBeFollowed) {
  const MotionPath csv(".csv"), npz(".npz");
  std::string frame = "0,0,0.754,0,0,0,1";
  for (int j = 0; j < 29; ++j) frame += j == 3 ? ",3.0" : ",0";  // the left knee bends to 2.88
  csv.write(frame + "\n" + frame + "\n" + frame + "\n" + frame + "\n");
  json report = run_motion(request({{"kind", "convert"}, {"file", csv.path}, {"out", npz.path}}));
  EXPECT_EQ(report.at("frames"), 6);
  ASSERT_EQ(report.at("joints_outside_limits").size(), 1u);
  const json& knee = report.at("joints_outside_limits")[0];
  EXPECT_EQ(knee.at("joint"), "left_knee_joint");
  EXPECT_EQ(knee.at("frames"), 6);
  EXPECT_NEAR(knee.at("worst_rad"), 3.0 - 2.8798, 1e-6);
  EXPECT_EQ(run_motion(request({{"kind", "info"}, {"file", npz.path}})).at("frames"), 6);
}

TEST(MotionCommand, RefusesWhatIsIncomplete) {
  const auto problem = [](const json& more) {
    return problem_of([&] { run_motion(request(more)); });
  };
  EXPECT_EQ(problem({{"kind", "show"}}), "motion: 'show' is not one of info, convert, make");
  EXPECT_EQ(problem({{"kind", "make"}}), "motion make: a .npz file to write is needed");
  EXPECT_EQ(problem({{"kind", "convert"}, {"out", "a.npz"}}),
            "motion convert: a file to convert is needed");
  EXPECT_EQ(problem({{"kind", "make"}, {"out", "clip.csv"}}),
            "motion make: 'clip.csv' does not end in .npz");
}

}  // namespace
}  // namespace millrace
