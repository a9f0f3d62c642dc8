// Whole runs with everything on a device of its own: on stand-ins whose memory the host does not
// touch, without graphs and with them, and on every real device of this machine. They must equal
// the run on the CPU, and a fault at any call must end them with that fault as their first error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "each_backend.h"
#include "fake_cuda.h"
#include "remote_backend.h"
#include "run.h"
#include "run_fixture.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

using json = nlohmann::json;
using Training = Run;  // a test has a member of that name

constexpr uint64_t kTicks = 90;  // the ring of 256 rows goes round

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"remote", fake_cuda().name};
  for (const std::string& name : available_backends()) {
    if (name != "cpu") names.push_back(name);
  }
  return names;
}

const BackendApi& device_named(const std::string& name) {
  if (name == fake_cuda().name) return fake_cuda();
  return name == "remote" ? remote_backend() : test_backend_api(name);
}

// It computes by the CPU's functions.
bool is_stand_in(const std::string& name) { return name == "remote" || name == fake_cuda().name; }

class DeviceRun : public testing::TestWithParam<std::string> {
 protected:
  const BackendApi& api() const { return device_named(GetParam()); }
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), Names{}); }
  Watchdog watchdog_{120};
};

INSTANTIATE_TEST_SUITE_P(On, DeviceRun, testing::ValuesIn(device_names()), backend_of_test);

// The learner of a real device adds up in another order than the CPU's.
json comparable(json config, const std::string& device) {
  config["learner"]["place"] = is_stand_in(device) ? "device" : "host";
  return config;
}

struct Result {
  Tensors tensors;
  json metrics;
};

Result result_of(Training& run) {
  const json report = run.advance(kTicks);
  return {tensors_of(run), without_times(report.at("metrics"))};
}

TEST_P(DeviceRun, EqualsTheRunOnTheCpu) {
  for (const char* pipeline : {"device_resident", "cpu_pinned_double_buffer"}) {
    for (bool has_normaliser : {false, true}) {
      SCOPED_TRACE(std::string(pipeline) + (has_normaliser ? " with statistics" : ""));
      const json config =
          cartpole_config({{"replay", {{"pipeline", pipeline}}},
                           {"learner", {{"observation_normalizer", has_normaliser}}}});
      Training cpu(config, backend_cpu());
      Training device(comparable(config, GetParam()), api());
      const Result expected = result_of(cpu), found = result_of(device);
      EXPECT_EQ(differences(found.tensors, expected.tensors), Names{});
      EXPECT_EQ(found.metrics, expected.metrics);
      EXPECT_EQ(device.facts().at("replay").at("submit_thread"), "submit");
    }
  }
}

// The update step runs on the device, with pushes, resets and the adaptive frame sampler.
TEST_P(DeviceRun, EqualsTheRunOnTheCpuWithEveryTask) {
  for (const json& config : {g1_config(), motion_config()}) {
    for (const char* graph : {"off", "auto"}) {
      SCOPED_TRACE(config.at("task").get<std::string>() + ", graph " + graph);
      json wanted = config;
      wanted["graph"] = graph;
      Training cpu(wanted, backend_cpu());
      Training device(comparable(wanted, GetParam()), api());
      const Result expected = result_of(cpu), found = result_of(device);
      EXPECT_EQ(differences(found.tensors, expected.tensors), Names{});
      EXPECT_EQ(found.metrics, expected.metrics);
      const json update = device.facts().at("graphs").at("update");
      EXPECT_EQ(update.at("place"), "device");
      const bool replays = api().has_graphs != 0 && std::string(graph) == "auto";
      EXPECT_EQ(update.at("effective"), replays ? "graph" : "eager");
      EXPECT_EQ(update.at("replays").get<uint64_t>() + update.at("eager_runs").get<uint64_t>(),
                kTicks);
    }
  }
}

// Noise that is repeated, rewards that are scaled; and plain SAC.
TEST_P(DeviceRun, EqualsTheRunOnTheCpuWithEveryAlgorithm) {
  const json plain = {{"critic", "scalar"}, {"network", "plain"}, {"reward_scaling", "episode"}};
  for (const json& config : {flashsac(cartpole_config()), flashsac(g1_config()),
                             cartpole_config({{"learner", plain}})}) {
    for (const char* graph : {"off", "auto"}) {
      json wanted = config;
      wanted["graph"] = graph;
      SCOPED_TRACE(wanted.dump());
      Training cpu(wanted, backend_cpu());
      Training device(comparable(wanted, GetParam()), api());
      const Result expected = result_of(cpu), found = result_of(device);
      EXPECT_EQ(differences(found.tensors, expected.tensors), Names{});
      EXPECT_EQ(found.metrics, expected.metrics);
    }
  }
}

TEST_P(DeviceRun, ThePolicyActsWhereTheLearnerRuns) {
  for (const char* place : {"device", "host"}) {
    for (const char* update : {"device", "host"}) {  // where observations come from
      Training run(
          cartpole_config({{"learner", {{"place", place}}}, {"collector", {{"update", update}}}}),
          api());
      run.advance(kTicks);
      const json facts = run.facts();
      EXPECT_EQ(facts.at("policy").at("place"), place);
      const json graph = facts.at("graphs").at("policy");
      EXPECT_EQ(graph.at("place"), place);
      const bool replays = api().has_graphs != 0 && std::string(place) == "device";
      EXPECT_EQ(graph.at("replays").get<uint64_t>() > 0, replays) << graph;
    }
  }
}

TEST_P(DeviceRun, ATraceShowsPolicyAndLearnerOnTheirStreams) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  Training(comparable(cartpole_config({{"trace_path", path}}), "remote"), api()).advance(8);
  std::FILE* file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  const json trace = json::parse(file);
  std::fclose(file);
  Names names;
  for (const json& event : trace.at("traceEvents")) names.push_back(event.at("name"));
  for (const char* name : {span::kInference, span::kGpuPolicy}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 8) << name;
  }
  const auto updates = std::count(names.begin(), names.end(), span::kUpdateCritic);
  EXPECT_GT(updates, 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), span::kGpuLearner), updates);
}

TEST_P(DeviceRun, KeepsTheUpdateStepOnTheHostWhereRowsAreReadThere) {
  const json reads = {{"learner", {{"observation_normalizer", true}}}};
  const json ring = {{"replay", {{"pipeline", "cpu_pinned_double_buffer"}}}};
  const json asked = {{"collector", {{"update", "host"}}}};
  for (const auto& [change, reason] : {std::pair<json, std::string>{reads, "HOST_READ"},
                                       {ring, "HOST_READ"},
                                       {asked, "UPDATE_ON_HOST"}}) {
    Training run(cartpole_config(change), api());
    const json update = run.facts().at("graphs").at("update");
    EXPECT_EQ(update.at("place"), "host");
    EXPECT_EQ(update.at("reason").get<std::string>().find(reason), 0u) << update.at("reason");
  }
}

TEST_P(DeviceRun, ResumesFromACheckpointOfTheRing) {
  const json config = cartpole_config();
  Training whole(config, api());
  const Result half = result_of(whole);
  Training resumed(config, api());
  restore(resumed, half.tensors, true);
  EXPECT_EQ(differences(tensors_of(resumed), half.tensors), Names{});
  const Result expected = result_of(whole), found = result_of(resumed);
  EXPECT_EQ(differences(found.tensors, expected.tensors), Names{});
  EXPECT_EQ(found.metrics, expected.metrics);
}

TEST_P(DeviceRun, AsynchronousComesToRestWithEveryRowCommitted) {
  for (bool has_normaliser : {false, true}) {
    const json config =
        cartpole_config({{"collector", {{"sync", false}}},
                         {"learner", {{"observation_normalizer", has_normaliser}}}});
    Training run(config, api());
    for (int i = 0; i < 3; ++i) {
      const json report = run.advance(kTicks / 3);
      const json& replay = report.at("replay");
      EXPECT_EQ(replay.at("published"), replay.at("committed"));
      EXPECT_EQ(replay.at("published"), report.at("env_steps"));
    }
  }
}

TEST_P(DeviceRun, HostBytesAreTheSlotsWhateverTheCapacity) {
  for (int capacity : {64, 256, 4096}) {
    for (const char* update : {"host", "device"}) {
      Training run(cartpole_config({{"replay", {{"capacity_rows", capacity}}},
                                    {"collector", {{"update", update}}}}),
                   api());
      const json replay = run.facts().at("replay");
      const int slots = 2 * 4 * replay.at("row_bytes").get<int>();
      EXPECT_EQ(replay.at("host_bytes"), std::string(update) == "host" ? slots : 0);
    }
  }
}

// Every function of the backend, at its first calls and in the middle of training.
TEST_P(DeviceRun, AFaultAnywhereIsTheFirstErrorAndNothingHangs) {
  const BackendApi& faulty = faulty_backend(api());
  int struck = 0;
  for (const std::string& function : Fault::functions()) {
    for (int64_t at : {0, 1, 2, 3, 40}) {
      const bool is_update_on_host = at % 2 == 1;  // then the host reads rows
      SCOPED_TRACE(function + " call " + std::to_string(at));
      const json config =
          cartpole_config({{"learner", {{"observation_normalizer", is_update_on_host}}}});
      Fault::inject(function, at);
      std::string message;
      try {
        Training run(config, faulty);
        try {
          run.advance(kTicks);
        } catch (const Failure& failure) {
          message = failure.what();
          ASSERT_TRUE(run.first_error().failed());
          EXPECT_NE(run.first_error().get()->message.find(Fault::kMeaning), std::string::npos)
              << run.first_error().get()->message;
        }
      } catch (const Failure& failure) {  // while it was opened
        message = failure.what();
      }
      if (!Fault::struck()) continue;  // fewer calls than that
      ++struck;
      EXPECT_NE(message.find(Fault::kMeaning), std::string::npos) << message;
    }
  }
  Fault::clear();
  EXPECT_GT(struck, 25);
  // Who cannot wait for a device destroys its graphs all the same; nothing else may go wrong.
  for (const std::string& violation : FakeCuda::take_violations()) {
    EXPECT_EQ(violation.rfind("a graph was destroyed while ", 0), 0u) << violation;
  }
}

TEST_P(DeviceRun, WorksAgainAfterFaults) {
  Fault::inject("gather", 0);
  const json config = cartpole_config();
  {
    Training run(config, faulty_backend(api()));
    EXPECT_THROW(run.advance(kTicks), Failure);
  }
  Fault::clear();
  Training run(config, api());
  EXPECT_EQ(run.advance(kTicks).at("tick"), kTicks);
}

}  // namespace
}  // namespace millrace
