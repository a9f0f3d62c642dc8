// What the motion tests share: the robot of the task, small motion files, and what an error says.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "motion_robot.h"
#include "npz.h"
#include "resources.h"
#include "status.h"
#include "task.h"
#include "temporary_folder.h"

namespace millrace {

inline MotionRobot tracking_robot() {
  return MotionRobot(sim_spec_of({{"task", "g1_motion_tracking"}}, resources()));
}

// A name of this test's own; the file is gone afterwards.
struct MotionPath {
  TemporaryFolder folder;
  std::string path;

  explicit MotionPath(const std::string& extension) : path(folder / ("motion" + extension)) {}

  void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
};

// What is wrong, behind "motion file '…': ".
template <typename Function>
std::string problem_of(Function act) {
  try {
    act();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    const std::string text = failure.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    const size_t end = text.find("': ");
    return end == std::string::npos ? text : text.substr(end + 3);
  }
  return "no error";
}

}  // namespace millrace
