// Tests for cpp/device_update.cpp: on every backend the update step gives the bits of the host's,
// on real physics with everything on; and a graph gives the bits of eager launches.
#include "device_update.h"

#include <gtest/gtest.h>

#include <memory>

#include "each_backend.h"
#include "ring.h"
#include "run_fixture.h"
#include "sim_parts.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr int kEnvs = 11;  // no whole number of blocks
constexpr uint64_t kSeed = 5;
constexpr uint64_t kTicks = 100;

// A copy of the carriers of another host state, at addresses of its own.
class Mirror {
 public:
  explicit Mirror(const HostState& like)
      : view(like.view), memory_(like.carriers.begin, like.carriers.begin + like.carriers.bytes) {
    for (FieldView& field : view.episode) {
      if (field.data != nullptr) field.data = moved(field.data, like);
    }
    for (CounterView& counter : view.counter) counter.data = moved(counter.data, like);
    outcomes = moved(like.outcomes, like);
  }

  char* begin() { return memory_.data(); }

  StateView view;
  UpdateOutcome* outcomes;

 private:
  template <class T>
  T* moved(T* field, const HostState& like) {
    return reinterpret_cast<T*>(memory_.data() +
                                (reinterpret_cast<char*>(field) - like.carriers.begin));
  }

  std::vector<char> memory_;
};

void expect_same(const StateView& found, const StateView& expected) {
  for (int field = 0; field < kEpisodeFieldCount; ++field) {
    const FieldView& view = expected.episode[field];
    if (view.data == nullptr) continue;
    const size_t bytes = static_cast<size_t>(view.dim * kEnvs) * sizeof(float);
    ASSERT_EQ(std::memcmp(found.episode[field].data, view.data, bytes), 0) << "field " << field;
  }
  for (int counter = 0; counter < kCounterFieldCount; ++counter) {
    ASSERT_EQ(std::memcmp(found.counter[counter].data, expected.counter[counter].data,
                          kEnvs * sizeof(int)),
              0)
        << "counter " << counter;
  }
}

// Robots whose host update is the reference.
struct Robots {
  explicit Robots(const json& config)
      : parts(config, kEnvs, 2, kSeed),
        rows(static_cast<size_t>(kEnvs * parts.task->layout.width())) {
    parts.update->start_episodes(*parts.physics, true);
  }

  const StateView& state() const { return parts.update->state(); }
  HostState host() const {
    return {state(), parts.physics->state_memory(), parts.update->memory(),
            parts.update->outcomes()};
  }
  void step(uint64_t tick) {
    UpdateStep& update = *parts.update;
    const int actions = kEnvs * parts.task->layout.action_dim;
    for (int i = 0; i < actions; ++i) {
      const RandomSource source =
          random_source(kSeed, kStreamExploration, static_cast<u32>(i), tick);
      update.actions()[i] = random_uniform(source, 0, -1.0f, 1.0f);
    }
    if (update.push_pending()) {
      parts.physics->apply_velocity_change(update.push_mask(), update.push_velocity());
    }
    parts.physics->step(update.actions(), tick);
  }
  float penalty_scale() const { return parts.update->curriculum().scale(); }

  SimParts parts;
  std::vector<float> rows;
};

struct TaskCase {
  std::string name;
  json config;
};

std::vector<TaskCase> task_cases() {
  return {
      {"cartpole", cartpole_config()},
      {"walk", g1_config()},
      {"tracking", motion_config()},
      {"expression",
       g1_config(
           {{"rewards",
             {{"mine",
               {{"weight", 2.0}, {"expr", "exp(-norm2(cmd.xy - base_lin_vel.xy) / 0.25)"}}}}}})}};
}

class DeviceUpdateTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_COMPUTING_BACKEND(DeviceUpdateTest);
MR_ON_FAKE_METAL(DeviceUpdateTest);

TEST_P(DeviceUpdateTest, EveryCarrierRowAndOutcomeHasTheBitsOfTheHost) {
  for (const TaskCase& each : task_cases()) {
    SCOPED_TRACE(each.name);
    Robots robots(each.config);
    Backend backend(test_backend_api(GetParam()));
    Stream stream(backend);
    Transfer transfer(backend);
    const RowLayout& layout = robots.parts.task->layout;
    const uint64_t stride = static_cast<uint64_t>(layout.row_stride());
    Memory rows(backend, Memory::Kind::kDevice, kEnvs * stride * sizeof(float));
    DeviceUpdate device(backend, stream, *robots.parts.task, robots.host(), kEnvs);
    Mirror mirror(robots.host());
    int resets = 0;
    for (uint64_t tick = 0; tick < kTicks && !HasFailure(); ++tick) {
      SCOPED_TRACE(tick);
      robots.step(tick);
      device.upload_inputs();
      device.set_block({kSeed, tick, robots.penalty_scale()}, rows.floats(), stride);
      device.submit();
      device.download_to(mirror.begin());
      device.finish();
      robots.parts.update->update(tick, 0, kEnvs, robots.rows.data());
      expect_same(mirror.view, robots.state());
      const std::vector<float> found = transfer.read(rows.floats(), kEnvs * stride);
      for (int env = 0; env < kEnvs; ++env) {
        ASSERT_EQ(std::memcmp(&found[static_cast<size_t>(env) * stride],
                              &robots.rows[static_cast<size_t>(env * layout.width())],
                              layout.row_bytes()),
                  0)
            << "row " << env;
      }
      for (int env = 0; env < kEnvs; ++env) EXPECT_EQ(mirror.outcomes[env].kind, 0);
      const int done = robots.parts.update->reset(tick, *robots.parts.physics);
      if (done > 0) device.upload_carriers();
      resets += done;
    }
    EXPECT_TRUE(resets > 0 || each.name == "cartpole");
  }
}

TEST_P(DeviceUpdateTest, AnActionThatIsNotFiniteIsFoundInItsEnvironment) {
  Robots robots(g1_config());
  Backend backend(test_backend_api(GetParam()));
  Stream stream(backend);
  const uint64_t stride = static_cast<uint64_t>(robots.parts.task->layout.row_stride());
  Memory rows(backend, Memory::Kind::kDevice, kEnvs * stride * sizeof(float));
  DeviceUpdate device(backend, stream, *robots.parts.task, robots.host(), kEnvs);
  robots.step(0);
  component(robots.state().episode[kAction], 7, 3) = std::nanf("");
  device.upload_inputs();
  device.set_block({kSeed, 0, 1.0f}, rows.floats(), stride);
  device.submit();
  device.download();
  device.finish();
  const UpdateOutcome* outcomes = robots.host().outcomes;
  for (int env = 0; env < kEnvs; ++env) {
    EXPECT_EQ(outcomes[env].kind, env == 7 ? kVerdictAction : kVerdictGood) << env;
  }
  EXPECT_EQ(outcomes[7].term, 3);
}

// The kernel packs rows into a slot in device memory; the same slot machine takes them to the ring.
TEST_P(DeviceUpdateTest, RowsPackedIntoDeviceSlotsReachTheRing) {
  constexpr int kDepth = 2;
  constexpr uint64_t kSlotRows = kEnvs, kCapacity = 3 * kEnvs + 4;
  Robots robots(g1_config());
  Backend backend(test_backend_api(GetParam()));
  Stream stream(backend);
  Transfer transfer(backend);
  Doorbell doorbell;
  const RowLayout& layout = robots.parts.task->layout;
  const auto width = static_cast<uint64_t>(layout.width());
  Ingress ingress(backend, layout, kDepth, kSlotRows, doorbell, false, Memory::Kind::kDevice);
  Ring ring(backend, stream, layout, kCapacity, ingress);
  DeviceUpdate device(backend, stream, *robots.parts.task, robots.host(), kEnvs);
  Event packed(backend);
  for (uint64_t tick = 0; tick < 10; ++tick) {  // round the ring, slots split at the wrap
    SCOPED_TRACE(tick);
    robots.step(tick);
    device.upload_inputs();
    device.set_block({kSeed, tick, robots.penalty_scale()}, ingress.claim(), width);
    device.submit();
    stream.record(packed);
    packed.wait();  // rows are complete before they are published
    ingress.publish();
    ASSERT_EQ(ring.submit(UINT64_MAX), 1);
    ring.wait_oldest();
    ASSERT_EQ(ring.committed_rows(), (tick + 1) * kSlotRows);
    robots.parts.update->update(tick, 0, kEnvs, robots.rows.data());
    for (uint64_t env = 0; env < kSlotRows; ++env) {
      const uint64_t at = (tick * kSlotRows + env) % kCapacity * ring.row_stride();
      const std::vector<float> found = transfer.read(ring.storage() + at, width);
      ASSERT_EQ(std::memcmp(found.data(), &robots.rows[env * width], layout.row_bytes()), 0) << env;
    }
    if (robots.parts.update->reset(tick, *robots.parts.physics) > 0) {
      device.upload_carriers();
    }
  }
}

// ---- graphs ----

std::vector<std::string> backends_with_graphs() {
  std::vector<std::string> names;
  for (const std::string& name : driven_backends()) {
    if (test_backend_api(name).has_graphs != 0) names.push_back(name);
  }
  return names;
}

class GraphedUpdate : public testing::TestWithParam<std::string> {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GraphedUpdate);
INSTANTIATE_TEST_SUITE_P(On, GraphedUpdate, testing::ValuesIn(backends_with_graphs()),
                         backend_of_test);

// Captured at tick 1; later the seed and the penalty scale change, which a replay must see.
TEST_P(GraphedUpdate, ReplaysTheTickThatTheArgumentBlockSays) {
  for (const TaskCase& each : task_cases()) {
    SCOPED_TRACE(each.name);
    Robots robots(each.config);
    Backend backend(test_backend_api(GetParam()));
    Stream stream(backend);
    Transfer transfer(backend);
    const uint64_t stride = static_cast<uint64_t>(robots.parts.task->layout.row_stride());
    Memory eager_rows(backend, Memory::Kind::kDevice, kEnvs * stride * sizeof(float));
    Memory graph_rows(backend, Memory::Kind::kDevice, kEnvs * stride * sizeof(float));
    DeviceUpdate eager(backend, stream, *robots.parts.task, robots.host(), kEnvs);
    DeviceUpdate graphed(backend, stream, *robots.parts.task, robots.host(), kEnvs);
    Mirror eager_state(robots.host()), graph_state(robots.host());
    std::unique_ptr<Graph> graph;
    int replays = 0;
    for (uint64_t tick = 0; tick < kTicks; ++tick) {
      robots.step(tick);
      const UpdateArguments arguments = {tick < 50 ? kSeed : kSeed + 1, tick,
                                         tick < 70 ? 0.5f : 0.75f};
      eager.upload_inputs();
      eager.set_block(arguments, eager_rows.floats(), stride);
      eager.submit();
      graphed.upload_inputs();
      graphed.set_block(arguments, graph_rows.floats(), stride);
      if (tick == 1) {
        graph = std::make_unique<Graph>(backend, stream, [&] { graphed.submit(); });
      }
      if (tick % 4 == 1 || tick % 4 == 2) {  // e g g e
        stream.launch(*graph);
        ++replays;
      } else {
        graphed.submit();
      }
      eager.download_to(eager_state.begin());
      graphed.download_to(graph_state.begin());
      eager.finish();
      graphed.finish();
      expect_same(graph_state.view, eager_state.view);
      ASSERT_EQ(transfer.read(graph_rows.floats(), kEnvs * stride),
                transfer.read(eager_rows.floats(), kEnvs * stride))
          << tick;
      robots.parts.update->update(tick, 0, kEnvs, robots.rows.data());
      if (robots.parts.update->reset(tick, *robots.parts.physics) > 0) {
        eager.upload_carriers();
        graphed.upload_carriers();
      }
    }
    EXPECT_EQ(replays, 50);
  }
}

}  // namespace
}  // namespace millrace
