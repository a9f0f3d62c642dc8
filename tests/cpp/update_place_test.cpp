// Tests for cpp/update_place.cpp.
#include "update_place.h"

#include <gtest/gtest.h>

#include "run_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

BackendApi device_with(int has_one_submit_thread) {
  BackendApi api = backend_cpu();
  api.name = "test";
  api.is_host_memory = 0;
  api.has_one_submit_thread = has_one_submit_thread;
  return api;
}

UpdatePlace place_of(const json& changes, const BackendApi& device = device_with(0)) {
  return choose_update_place(parse_plan(cartpole_config(changes)), device);
}

TEST(UpdatePlaceTest, IsTheDeviceUnlessSomethingReadsRowsOnTheHost) {
  EXPECT_TRUE(place_of(json::object()).is_on_device);
  EXPECT_TRUE(place_of({{"collector", {{"update", "device"}}}}).is_on_device);
  EXPECT_EQ(place_of(json::object()).id, "");
}

TEST(UpdatePlaceTest, SaysWhatKeepsItOnTheHost) {
  const UpdatePlace on_cpu = place_of(json::object(), backend_cpu());
  EXPECT_FALSE(on_cpu.is_on_device);
  EXPECT_EQ(on_cpu.id, "BACKEND_HAS_NO_GRAPHS");
  const UpdatePlace one_queue = place_of(json::object(), device_with(1));
  EXPECT_FALSE(one_queue.is_on_device);
  EXPECT_EQ(one_queue.id, "UPDATE_ON_HOST");
  EXPECT_EQ(one_queue.subject, "device");
  const UpdatePlace asked = place_of({{"collector", {{"update", "host"}}}});
  EXPECT_FALSE(asked.is_on_device);
  EXPECT_EQ(asked.subject, "collector.update");
  const UpdatePlace read = place_of({{"learner", {{"observation_normalizer", true}}}});
  EXPECT_FALSE(read.is_on_device);
  EXPECT_EQ(read.id, "HOST_READ");
  EXPECT_EQ(read.subject, "learner.observation_normalizer");
  const UpdatePlace ring = place_of({{"replay", {{"pipeline", "cpu_pinned_double_buffer"}}}});
  EXPECT_FALSE(ring.is_on_device);
  EXPECT_EQ(ring.subject, "replay.pipeline");
}

}  // namespace
}  // namespace millrace
