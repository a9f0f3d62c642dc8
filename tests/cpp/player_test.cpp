// Tests for cpp/player.cpp, on real physics.
#include "player.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "philox.h"
#include "run.h"
#include "run_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;
using Training = Run;  // a test has a member of that name

json playing(json config, int episodes) {
  config["mode"] = "play";
  config["play"] = {{"episodes", episodes}};
  return config;
}

// Writes a policy that does something: random weights, the same every time.
void load_policy(Player& player, float size) {
  u32 number = 0;
  for (const StateTensor& tensor : player.registry().tensors()) {
    if (tensor.dtype != DType::kF32) continue;
    const RandomSource source = random_source(5, kStreamReset, ++number, 0);
    float* values = static_cast<float*>(tensor.data);
    for (size_t i = 0; i < tensor.bytes() / sizeof(float); ++i) {
      values[i] = size * random_normal(source, static_cast<u32>(i));
    }
  }
  player.restored(false);
}

// All episodes, in calls of `ticks`.
json play(const json& config, uint64_t ticks) {
  Player player(config);
  load_policy(player, 0.3f);
  json episodes = json::array();
  for (;;) {
    const json report = player.advance(ticks);
    for (const json& episode : report.at("episodes")) episodes.push_back(episode);
    if (report.at("finished").get<bool>()) return episodes;
    if (report.at("tick") > 2000) throw Failure(Code::kBug, "the episodes never end");
  }
}

// Names and shapes of tensors that begin with "actor/".
std::map<std::string, std::vector<int64_t>> actor_shapes(const Session& session) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const StateTensor& tensor : session.registry().tensors()) {
    if (tensor.name.rfind("actor/", 0) == 0) shapes[tensor.name] = tensor.shape;
  }
  return shapes;
}

TEST(Player, ReadsTheActorThatARunOfTheConfigurationWrites) {
  for (const char* network : {"auto", "plain"}) {
    const json config = cartpole_config({{"learner", {{"network", network}}}});
    const Player player(playing(config, 1));
    EXPECT_EQ(actor_shapes(player), actor_shapes(Training(config)));
    EXPECT_GE(actor_shapes(player).size(), 8u);
  }
}

TEST(Player, SaysThatItActsOnTheCpuWhateverWasNamed) {
  json config = playing(cartpole_config(), 1);
  config["device"] = "cuda";
  const json expected = {{"requested", "cuda"}, {"effective", "cpu"}};
  EXPECT_EQ(Player(config).facts().at("device"), expected);
}

TEST(Player, CartpoleEpisodesStartInStepAndLastFiveHundredTicks) {
  const json episodes = play(playing(cartpole_config(), 6), 50);
  ASSERT_EQ(episodes.size(), 6u);
  std::set<int> environments;
  std::set<double> returns;
  for (const json& episode : episodes) {
    EXPECT_EQ(episode.at("length"), 500);
    EXPECT_EQ(episode.at("reason"), "time_out");
    environments.insert(episode.at("environment").get<int>());
    returns.insert(episode.at("return").get<double>());
  }
  EXPECT_EQ(environments.size(), 6u);
  EXPECT_EQ(returns.size(), 6u);  // from different starts
}

TEST(Player, PlaysTheSameTwiceHoweverTheTicksAreGrouped) {
  const json config = playing(g1_config(), 4);
  const json episodes = play(config, 1);
  EXPECT_EQ(episodes.size(), 4u);
  EXPECT_EQ(play(config, 64), episodes);
  EXPECT_NE(play(playing(g1_config({{"seed", 2}}), 4), 64), episodes);
}

TEST(Player, NoiseAndEventsAreOnUnlessTheConfigurationIsClean) {
  const json clean = {{"env", {{"noise", false}, {"events", false}}}};
  const json with_noise = play(playing(g1_config(), 4), 64);
  const json without = play(playing(g1_config(clean), 4), 64);
  EXPECT_NE(with_noise, without);
  EXPECT_EQ(play(playing(g1_config(clean), 4), 64), without);
}

TEST(Player, RegistersThePolicyAlone) {
  Player player(playing(cartpole_config({{"learner", {{"observation_normalizer", true}}}}), 1));
  bool has_normalizer = false;
  for (const StateTensor& tensor : player.registry().tensors()) {
    const bool is_normalizer = tensor.name.rfind("normalizer/observation", 0) == 0;
    EXPECT_TRUE(is_normalizer || tensor.name.rfind("actor/", 0) == 0) << tensor.name;
    has_normalizer = has_normalizer || is_normalizer;
  }
  EXPECT_TRUE(has_normalizer);
}

TEST(Player, NeedsAPolicy) {
  Player player(playing(cartpole_config(), 1));
  EXPECT_THROW(player.advance(1), Failure);
}

TEST(Player, StopsAtATickBoundary) {
  Player player(playing(cartpole_config(), 2));
  load_policy(player, 0.3f);
  EXPECT_EQ(player.advance(10).at("tick"), 10);
  std::thread other([&] { player.stop(); });
  other.join();
  const json report = player.advance(10);
  EXPECT_EQ(report.at("tick"), 10);
  EXPECT_EQ(report.at("stopped"), true);
  EXPECT_EQ(report.at("finished"), false);
  EXPECT_EQ(report.at("env_steps"), 20);
}

TEST(Player, AfterTheLastEpisodeNothingMoves) {
  Player player(playing(cartpole_config(), 2));
  load_policy(player, 0.3f);
  EXPECT_EQ(player.advance(10000).at("tick"), 500);
  const json report = player.advance(5);
  EXPECT_EQ(report.at("tick"), 500);
  EXPECT_EQ(report.at("finished"), true);
  EXPECT_TRUE(report.at("episodes").empty());
  EXPECT_EQ(player.facts().at("physics").at("unstable"), 0);
}

TEST(Player, RefusesANumberOfEpisodesThatIsNone) {
  for (int episodes : {0, -1, 1 << 17}) {
    try {
      Player player(playing(cartpole_config(), episodes));
      FAIL();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kInvalid);
      EXPECT_EQ(std::string(failure.what()),
                "play.episodes: " + std::to_string(episodes) + " is not between 1 and 65536");
    }
  }
}

}  // namespace
}  // namespace millrace
