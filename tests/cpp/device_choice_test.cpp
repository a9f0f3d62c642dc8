// Tests for cpp/device_choice.cpp.
#include "device_choice.h"

#include <gtest/gtest.h>

#include "backend.h"
#include "status.h"

namespace millrace {
namespace {

TEST(DeviceChoice, AutomaticTakesAGpuOrSaysWhyNot) {
  const DeviceChoice choice = choose_device("auto");
  EXPECT_EQ(choice.requested, "auto");
  EXPECT_EQ(choice.learner, choice.effective);
  if (backends().at(1).available) {
    EXPECT_EQ(choice.effective, "cuda");
    return;
  }
  EXPECT_EQ(choice.effective, "cpu");
  EXPECT_NE(choice.reason.find("cuda: "), std::string::npos) << choice.reason;
  EXPECT_NE(choice.reason.find("metal: this is no Mac"), std::string::npos) << choice.reason;
}

TEST(DeviceChoice, ANamedDeviceIsTakenOrRefusedWithItsReason) {
  EXPECT_EQ(choose_device("cpu").effective, "cpu");
  for (const BackendInfo& info : backends()) {
    const DeviceChoice choice = choose_device(info.name);
    EXPECT_EQ(choice.effective, info.available ? info.name : "none");
    EXPECT_FALSE(choice.reason.empty());
    EXPECT_EQ(choice.learner, choice.effective);
    if (!info.available) {
      EXPECT_EQ(choice.reason, info.reason);
    }
  }
}

// Nobody here has a Mac: docs/metal.md says what raises the level.
TEST(DeviceChoice, SaysHowFarTheDeviceWasVerified) {
  EXPECT_EQ(to_json(choose_device("cpu")).at("verified"), "device");
  EXPECT_EQ(to_json(choose_device("cuda")).at("verified"), "device");
  EXPECT_EQ(to_json(choose_device("metal")).at("verified"), "host");
}

TEST(DeviceChoice, AnUnknownOneIsRefused) { EXPECT_THROW(choose_device("tpu"), Failure); }

}  // namespace
}  // namespace millrace
