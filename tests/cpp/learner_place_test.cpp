// Tests for cpp/learner_place.cpp.
#include "learner_place.h"

#include <gtest/gtest.h>

#include "remote_backend.h"
#include "run_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

LearnerPlace place_of(const json& changes, const BackendApi& api) {
  return choose_learner_place(parse_plan(cartpole_config(changes)), api);
}

BackendApi device_with(uint32_t precisions) {
  BackendApi api = remote_backend();
  api.precisions = precisions;
  return api;
}

TEST(LearnerPlaceTest, IsTheDeviceThatHoldsTheReplayUnlessTheHostWasRequested) {
  EXPECT_TRUE(place_of(json::object(), remote_backend()).is_on_device);
  EXPECT_FALSE(place_of(json::object(), backend_cpu()).is_on_device);
  EXPECT_FALSE(place_of({{"learner", {{"place", "host"}}}}, remote_backend()).is_on_device);
}

TEST(LearnerPlaceTest, ThePolicyActsThereUnlessOnlyTheLearnerThreadSubmits) {
  EXPECT_TRUE(place_of(json::object(), remote_backend()).is_policy_on_device);
  EXPECT_FALSE(place_of(json::object(), backend_cpu()).is_policy_on_device);
  BackendApi one_thread = remote_backend();
  one_thread.has_one_submit_thread = 1;
  EXPECT_TRUE(place_of(json::object(), one_thread).is_on_device);
  EXPECT_FALSE(place_of(json::object(), one_thread).is_policy_on_device);
}

TEST(LearnerPlaceTest, ADeviceThatIsTheHostIsRefusedWhereADeviceWasRequested) {
  const LearnerPlace place = place_of({{"learner", {{"place", "device"}}}}, backend_cpu());
  EXPECT_EQ(place.subject, "learner.place");
  EXPECT_NE(place.obstacle.find("cpu"), std::string::npos);
}

TEST(LearnerPlaceTest, AutomaticPrecisionIsTf32WhereThereIsOne) {
  const uint32_t fp32 = precision_bit(Precision::kFp32), tf32 = precision_bit(Precision::kTf32);
  EXPECT_EQ(place_of(json::object(), device_with(fp32)).precision, Precision::kFp32);
  EXPECT_EQ(place_of(json::object(), device_with(fp32 | tf32)).precision, Precision::kTf32);
}

TEST(LearnerPlaceTest, ANamedPrecisionIsTakenOrRefusedWithWhatThereIs) {
  const json bf16 = {{"precision", "bf16"}};
  const BackendApi able =
      device_with(precision_bit(Precision::kFp32) | precision_bit(Precision::kBf16));
  EXPECT_EQ(place_of(bf16, able).precision, Precision::kBf16);
  EXPECT_EQ(place_of(bf16, able).obstacle, "");
  const LearnerPlace refused = place_of(bf16, device_with(precision_bit(Precision::kFp32)));
  EXPECT_EQ(refused.subject, "precision");
  EXPECT_NE(refused.obstacle.find("fp32, not bf16"), std::string::npos) << refused.obstacle;
}

}  // namespace
}  // namespace millrace
