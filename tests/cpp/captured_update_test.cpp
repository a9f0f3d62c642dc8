// The update step of every task under CapturedProgram, on fake_cuda and every device with graphs:
// 1,000 ticks on real physics with everything on. Replays, eager launches and the host give the
// same bits, also after what varies was changed behind the capture's back.
#include <gtest/gtest.h>

#include "graph_backends.h"
#include "run_fixture.h"
#include "sim_parts.h"
#include "update_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr int kEnvs = 3;
constexpr uint64_t kSeed = 5;
constexpr uint64_t kTicks = 1000;

class CapturedUpdate : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>{}); }
};

MR_ON_EACH_GRAPH_BACKEND(CapturedUpdate);

// Physics and resets, driven by random actions.
struct Robots {
  explicit Robots(const json& config)
      : parts(config, kEnvs, 1, kSeed),
        rows(static_cast<size_t>(kEnvs * parts.task->layout.width())) {
    parts.update->start_episodes(*parts.physics, true);
  }

  void step(uint64_t tick) {
    UpdateStep& update = *parts.update;
    for (int i = 0; i < kEnvs * parts.task->layout.action_dim; ++i) {
      const RandomSource source =
          random_source(kSeed, kStreamExploration, static_cast<u32>(i), tick);
      update.actions()[i] = random_uniform(source, 0, -1.0f, 1.0f);
    }
    if (update.push_pending()) {
      parts.physics->apply_velocity_change(update.push_mask(), update.push_velocity());
    }
    parts.physics->step(update.actions(), tick);
  }
  bool reset(uint64_t tick) {
    parts.update->update(tick, 0, kEnvs, rows.data());
    return parts.update->reset(tick, *parts.physics) > 0;
  }

  HostState host() const {
    return {parts.update->state(), parts.physics->state_memory(), parts.update->memory(),
            parts.update->outcomes()};
  }

  SimParts parts;
  std::vector<float> rows;
};

// Behind the capture: the seed, the penalty scale, and command range, noise and push.
UpdateArguments arguments_of(uint64_t tick, float penalty_scale) {
  return {tick < 300 ? kSeed : kSeed + 1, tick, tick < 500 ? penalty_scale : 0.75f};
}

UpdateParams other_params(const UpdateParams& params) {
  UpdateParams other = params;
  other.command.linear_x_low = -0.125f;
  other.command.angular_high = 1.5f;
  other.command.resample_ticks = params.command.resample_ticks > 0 ? 3 : 0;
  for (float& velocity : other.push.velocity) velocity *= 2.0f;
  for (int i = 0; i < other.observation.count; ++i) other.observation.slot[i].noise *= 1.5f;
  return other;
}

void run_task(const std::string& backend_name, const json& config) {
  Robots robots(config);
  const Task& task = *robots.parts.task;
  Backend backend(graph_backend_api(backend_name));
  Stream stream(backend);
  TickOnHost host(task, robots.host(), kEnvs);
  TickOnDevice eager(backend, stream, task, robots.host(), kEnvs, GraphPolicy::kOff);
  TickOnDevice graph(backend, stream, task, robots.host(), kEnvs, GraphPolicy::kOn);
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    SCOPED_TRACE(tick);
    robots.step(tick);
    if (tick == 700) {
      const UpdateParams changed = other_params(task.params);
      host.set_params(changed);
      eager.update().set_params(changed);
      graph.update().set_params(changed);
    }
    const UpdateArguments arguments = arguments_of(tick, robots.parts.update->curriculum().scale());
    const bool is_direct =
        tick >= 100 && tick < 200 && (tick % 4 == 0 || tick % 4 == 3);  // e g g e
    const TickResult& expected = host.run(arguments, robots.host());
    ASSERT_EQ(expected.difference_from(eager.run(arguments, robots.host())), "");
    ASSERT_EQ(expected.difference_from(graph.run(arguments, robots.host(), is_direct)), "");
    if (!robots.reset(tick)) continue;
    host.upload(robots.host());
    eager.upload(robots.host());
    graph.upload(robots.host());
  }
  EXPECT_EQ(graph.program().state(), GraphState::kReplaying);
  EXPECT_EQ(graph.program().replays(), kTicks - 2 - 50);
  EXPECT_EQ(eager.program().replays(), 0u);
  graph.program().release();
}

TEST_P(CapturedUpdate, CartpoleThousandTicks) { run_task(GetParam(), cartpole_config()); }
TEST_P(CapturedUpdate, WalkThousandTicks) { run_task(GetParam(), g1_config()); }
TEST_P(CapturedUpdate, TrackingThousandTicks) { run_task(GetParam(), motion_config()); }

}  // namespace
}  // namespace millrace
