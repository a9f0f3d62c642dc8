// Tests for cpp/session.cpp.
#include "session.h"

#include <gtest/gtest.h>

#include "player.h"
#include "run.h"
#include "run_fixture.h"

namespace millrace {
namespace {

TEST(Session, OpensWhatTheModeSays) {
  nlohmann::json config = cartpole_config();
  EXPECT_NE(dynamic_cast<::millrace::Run*>(open_session(config).get()), nullptr);
  config.erase("mode");
  EXPECT_NE(dynamic_cast<::millrace::Run*>(open_session(config).get()), nullptr);
  config["mode"] = "play";
  config["play"]["episodes"] = 1;
  EXPECT_NE(dynamic_cast<Player*>(open_session(config).get()), nullptr);
}

TEST(Session, AnUnknownModeIsRefused) {
  try {
    open_session(cartpole_config({{"mode", "dance"}}));
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    EXPECT_STREQ(failure.what(), "mode: 'dance' is not one of train, play");
  }
}

// A policy that was trained plays: the player's tensors are a part of the run's, by name and shape.
TEST(Session, APlayerTakesTheTensorsOfARun) {
  nlohmann::json config = g1_config({{"learner", {{"observation_normalizer", true}}}});
  const auto run = open_session(config);
  run->advance(8);
  config["mode"] = "play";
  config["play"]["episodes"] = 1;
  const auto player = open_session(config);
  restore(*player, tensors_of(*run), false);
  EXPECT_EQ(player->advance(2).at("tick"), 2);
  EXPECT_FALSE(player->first_error().failed());
}

}  // namespace
}  // namespace millrace
