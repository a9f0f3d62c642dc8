// Tests for cpp/update_place.cpp.
#include "update_place.h"

#include <gtest/gtest.h>

#include "run_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

UpdatePlace place_of(const json& changes, bool is_host_memory = false) {
  return choose_update_place(parse_plan(cartpole_config(changes)), "cuda", is_host_memory);
}

TEST(UpdatePlaceTest, IsTheDeviceUnlessSomethingReadsRowsOnTheHost) {
  EXPECT_TRUE(place_of(json::object()).is_on_device);
  EXPECT_TRUE(place_of({{"collector", {{"update", "device"}}}}).is_on_device);
  EXPECT_EQ(place_of(json::object()).id, "");
}

TEST(UpdatePlaceTest, SaysWhatKeepsItOnTheHost) {
  const UpdatePlace on_cpu = place_of(json::object(), true);
  EXPECT_FALSE(on_cpu.is_on_device);
  EXPECT_EQ(on_cpu.id, "BACKEND_HAS_NO_GRAPHS");
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
