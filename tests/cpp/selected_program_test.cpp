// Tests for cpp/selected_program.cpp: what is selected, and that selecting leaves no trace.
#include "selected_program.h"

#include <gtest/gtest.h>

#include "fastsac_fixture.h"
#include "graph_backends.h"
#include "random_program.h"
#include "run.h"
#include "run_fixture.h"
#include "temporary_folder.h"
#include "workspace_snapshot.h"

namespace millrace {
namespace {

constexpr int64_t kNow = 1800000000;

// A state that every run changes, and a clock that runs move: `eager_us` for one whose body is
// called, `graph_us` for a replay.
class Rig {
 public:
  explicit Rig(SelectionCache* cache, GraphPolicy policy = GraphPolicy::kAuto,
               const std::string& name = "fake_cuda", const std::string& obstacle = "")
      : state_(workspace_.add_floats("state", 16)),
        program_("chain", workspace_),
        backend_(graph_backend_api(name)),
        stream_(backend_) {
    PointwiseOp op{};
    op.function = Pointwise::kAddScaled;
    op.count = 16;
    op.a = op.y = state_;
    op.b = noise_ = workspace_.add_floats("noise", 16);
    op.scalar.constant = 0.5f;
    program_.record(RandomFillOp{16, kStreamEvent, 0, noise_});
    program_.record(op);
    workspace_.allocate();
    device_ = std::make_unique<DeviceWorkspace>(
        backend_, stream_, workspace_, std::vector<const Program*>{&program_}, Precision::kFp32);
    snapshot_ = std::make_unique<WorkspaceSnapshot>(backend_, stream_, *device_);
    passed_ = std::make_unique<Event>(backend_);
    SelectionSpec spec;
    spec.cache = cache;
    spec.key = selection_key_of(backend_);
    spec.clock = [this] { return clock_ns(); };
    selected_ = std::make_unique<SelectedProgram>(
        backend_, stream_, GraphSpec{"chain", policy, obstacle}, spec,
        [this] {
          ++bodies_;
          device_->submit(program_);
        },
        ProfileState{[this] { snapshot_->save(); }, [this] { snapshot_->restore(); }});
  }
  ~Rig() { selected_->release(); }

  void run(int runs) {
    for (int i = 0; i < runs; ++i) {
      const uint64_t tick = ticks_++;
      selected_->run([&] {
        ++sets_;
        for (int k = 0; k < load_; ++k) copy();
        device_->set_arguments(RandomProgram::arguments_of(tick));
      });
      stream_.record(*passed_);
      passed_->wait();
      selected_->completed();
    }
  }
  std::vector<float> state() {
    device_->download();
    return {workspace_.floats(state_), workspace_.floats(state_) + 16};
  }
  nlohmann::json facts() const { return selected_->describe(); }
  nlohmann::json graph() const { return selected_->program().describe(); }

  double eager_us = 100, graph_us = 50;
  void set_load(int copies) { load_ = copies; }

 private:
  uint64_t clock_ns() const {
    const double replays = static_cast<double>(sets_ - bodies_);
    return static_cast<uint64_t>(1e3 *
                                 (static_cast<double>(bodies_) * eager_us + replays * graph_us));
  }
  void copy() {
    stream_.copy(CopyDirection::kDeviceToDevice, device_->floats(noise_), device_->floats(state_),
                 sizeof(float));
  }

  Workspace workspace_;
  Operand state_, noise_;
  Program program_;
  Backend backend_;
  Stream stream_;
  std::unique_ptr<DeviceWorkspace> device_;
  std::unique_ptr<WorkspaceSnapshot> snapshot_;
  std::unique_ptr<Event> passed_;
  std::unique_ptr<SelectedProgram> selected_;
  uint64_t ticks_ = 0, bodies_ = 0, sets_ = 0;
  int load_ = 0;
};

class SelectedProgramTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>()); }
  SelectionCache cache_{"", kNow};
};

TEST_F(SelectedProgramTest, TakesTheGraphThatIsFasterAndGoesOnAsIfNothingHadBeenMeasured) {
  Rig plain(nullptr), selected(&cache_);
  plain.run(20);
  selected.run(20);
  EXPECT_EQ(selected.state(), plain.state());
  const nlohmann::json facts = selected.facts();
  EXPECT_EQ(facts["way"], "graph");
  EXPECT_EQ(facts["source"], "measured");
  EXPECT_EQ(facts["not_cached"], "it was not measured before");
  EXPECT_EQ(facts["measured"][0]["median_us"], 100);
  EXPECT_EQ(facts["measured"][1]["median_us"], 50);
  EXPECT_GE(facts["measured"][1]["rounds"].get<size_t>(), kLeastRounds);
  EXPECT_GT(facts["profile_ms"].get<double>(), 0);
  EXPECT_LE(facts["profile_ms"].get<double>(), 2000);
  EXPECT_EQ(plain.facts(), nullptr);
  // Profiled replays are no runs of the program.
  EXPECT_EQ(selected.graph()["replays"], plain.graph()["replays"]);
}

TEST_F(SelectedProgramTest, StaysEagerWhereAGraphGainsNothing) {
  Rig plain(nullptr, GraphPolicy::kOff), selected(&cache_);
  selected.graph_us = 99;
  plain.run(20);
  selected.run(20);
  EXPECT_EQ(selected.state(), plain.state());
  EXPECT_EQ(selected.facts()["way"], "eager");
  EXPECT_EQ(selected.graph()["state"], "DISABLED");
  EXPECT_EQ(selected.graph()["reason"],
            "eager was selected: the best other way, graph, gains only 1.0 % against eager, 3.0 % "
            "are needed");
  EXPECT_EQ(selected.graph()["replays"], 1);  // the one that showed there is a graph
}

TEST_F(SelectedProgramTest, TheCacheAnswersTheNextRunAndNothingIsMeasured) {
  {
    Rig first(&cache_);
    first.graph_us = 200;
    first.run(10);
  }
  Rig second(&cache_);
  second.run(10);
  EXPECT_EQ(second.facts()["way"], "eager");
  EXPECT_EQ(second.facts()["source"], "cache");
  EXPECT_EQ(second.facts()["profiles"], 0);
  EXPECT_EQ(second.graph()["captures"], 0);
}

TEST_F(SelectedProgramTest, OnAndOffAreNotAsked) {
  for (const GraphPolicy policy : {GraphPolicy::kOn, GraphPolicy::kOff}) {
    Rig rig(&cache_, policy);
    rig.graph_us = 200;
    rig.run(10);
    EXPECT_EQ(rig.facts(), nullptr);
    EXPECT_EQ(rig.graph()["replays"], policy == GraphPolicy::kOn ? 8 : 0);
  }
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(SelectedProgramTest, WithoutAGraphTheReasonIsTheGraphs) {
  Rig cpu(&cache_, GraphPolicy::kAuto, "cpu"),
      refused(&cache_, GraphPolicy::kAuto, "fake_cuda", "TOO_SMALL: 2 ops");
  cpu.run(5);
  refused.run(5);
  EXPECT_EQ(cpu.facts()["way"], "eager");
  EXPECT_EQ(cpu.facts()["reason"], "BACKEND_HAS_NO_GRAPHS: the cpu backend has no graphs");
  EXPECT_EQ(refused.facts()["reason"], "TOO_SMALL: 2 ops");
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(SelectedProgramTest, DriftIsMeasuredAgain) {
  constexpr int kWindowRuns = 16 * static_cast<int>(DriftWatch::kWindow);
  Rig rig(&cache_);
  rig.run(10 * kWindowRuns);
  EXPECT_EQ(rig.facts()["way"], "graph");
  rig.set_load(4);
  rig.graph_us = 150;
  rig.run(4 * kWindowRuns);
  EXPECT_EQ(rig.facts()["way"], "eager");
  EXPECT_EQ(rig.facts()["profiles"], 2);
  EXPECT_NE(rig.facts()["drift"]["reason"].get<std::string>().find("the median went from"),
            std::string::npos);
}

// ---- in training ----

std::map<std::string, std::vector<char>> trained(const BackendApi& api, SelectionCache* cache,
                                                 nlohmann::json* facts) {
  LearnerSpec spec = small_spec();
  spec.policy_frequency = 2;
  const RowLayout layout = small_layout();
  Backend backend(api);
  Stream stream(backend);
  Transfer transfer(backend);
  const std::vector<float> batch = random_rows(layout, spec.batch, 4);
  Memory rows(backend, Memory::Kind::kDevice, batch.size() * sizeof(float));
  transfer.write(rows.floats(), batch);
  SelectionSpec selection;
  selection.cache = cache;
  selection.key = selection_key_of(backend);
  LearnerFastSac learner(spec, layout, {}, 77, backend, stream, Precision::kFp32,
                         GraphPolicy::kAuto, selection);
  for (uint64_t i = 0; i < 14; ++i) {
    learner.update(rows.floats(), layout.width(), i);
    learner.policy_parameters();
  }
  learner.fetch_state();
  *facts = learner.selection_facts();
  std::map<std::string, std::vector<char>> all;
  for (const auto& [name, tensor] : tensors_of(learner)) {
    const char* bytes = static_cast<const char*>(tensor.data);
    all[name] = std::vector<char>(bytes, bytes + tensor.bytes());
  }
  return all;
}

class SelectedTraining : public testing::TestWithParam<std::string> {};

MR_ON_EACH_GRAPH_BACKEND(SelectedTraining);

TEST_P(SelectedTraining, ALearnerIsTheSameWithAndWithoutSelection) {
  SelectionCache cache("", kNow);
  nlohmann::json none, facts;
  const BackendApi& api = graph_backend_api(GetParam());
  const auto expected = trained(api, nullptr, &none);
  EXPECT_EQ(trained(api, &cache, &facts), expected);
  EXPECT_EQ(none, nlohmann::json::object());
  for (const char* name : {"learner_critic", "learner_critic_and_actor"}) {
    EXPECT_EQ(facts[name]["source"], "measured") << name;
    EXPECT_LE(facts[name]["profile_ms"].get<double>(), 2000) << name;
  }
  EXPECT_NE(facts["learner_critic"]["key"]["program"],
            facts["learner_critic_and_actor"]["key"]["program"]);
}

TEST_P(SelectedTraining, ARunIsTheSameWithAndWithoutSelectionAndAnotherShapeSelectsAgain) {
  using Training = millrace::Run;  // a test has a member of that name
  const TemporaryFolder folder;
  const std::string path = folder / "selection.json";
  const auto result = [&](const nlohmann::json& config, nlohmann::json* selection) {
    Training run(config, graph_backend_api(GetParam()));
    run.advance(30);
    *selection = run.facts().at("selection");
    return tensors_of(run);
  };
  nlohmann::json config = cartpole_config(), none, first, second, other;
  const auto expected = result(config, &none);
  config["selection_path"] = path;
  EXPECT_EQ(differences(result(config, &first), expected), Names{});
  EXPECT_EQ(differences(result(config, &second), expected), Names{});
  config["env"]["num_envs"] = 5;
  result(config, &other);
  EXPECT_EQ(none, nlohmann::json::object());
  for (const char* name : {"update", "learner_critic", "learner_critic_and_actor"}) {
    EXPECT_EQ(first[name]["source"], "measured") << name;
    EXPECT_EQ(second[name]["source"], "cache") << name;
    EXPECT_EQ(second[name]["way"], first[name]["way"]) << name;
    EXPECT_EQ(other[name]["source"], "measured") << name;
    EXPECT_NE(other[name]["not_cached"].get<std::string>().find("envs 4"), std::string::npos)
        << other[name]["not_cached"];
  }
}

}  // namespace
}  // namespace millrace
