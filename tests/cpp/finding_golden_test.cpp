// Every finding that the core can report, word for word: tests/cpp/golden/finding_<ID>.txt. These
// files are changed by hand only. Graph findings come from spoilt programs, everything that a
// configuration can bring about also from run_preflight with that configuration.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "budget.h"
#include "model_loader.h"
#include "preflight.h"
#include "run_fixture.h"
#include "unsound_programs.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Texts = std::map<std::string, std::string>;  // by id

const fs::path& sources() {
  static const fs::path folder = fs::path(MILLRACE_RESOURCES).parent_path().parent_path();
  return folder;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void add(Texts& texts, const json& finding) {
  std::string& text = texts[finding.at("id")];
  if (!text.empty()) text += "\n";
  for (const char* key : {"id", "verdict", "subject", "reason", "hint"}) {
    std::string value = finding.at(key);
    const size_t folder = value.find(resources());
    if (folder != std::string::npos) value.replace(folder, resources().size(), "<resources>");
    text += std::string(key) + ": " + value + "\n";
  }
}

struct Configured {
  const char* id;
  json config;
};

std::vector<Configured> configurations() {
  const auto replay = [](const json& patch) { return cartpole_config({{"replay", patch}}); };
  return {
      {"DEVICE_UNAVAILABLE", cartpole_config({{"device", "metal"}})},
      {"PRECISION_UNAVAILABLE", cartpole_config({{"precision", "bf16"}})},
      {"MODEL_UNREADABLE", cartpole_config({{"env", {{"model_file", "/none/robot.xml"}}}})},
      {"MODEL_MISSING_NAME",
       g1_config({{"env", {{"model_file", resources() + "/models/cartpole.xml"}}}})},
      {"BACKEND_HAS_NO_GRAPHS", cartpole_config({{"graph", "auto"}})},
      {"BACKEND_HAS_NO_GRAPHS", cartpole_config({{"graph", "on"}})},
      {"HOST_READ", g1_config({{"graph", "on"}, {"learner", {{"observation_normalizer", true}}}})},
      {"HOST_READ",
       g1_config({{"graph", "on"}, {"replay", {{"pipeline", "cpu_pinned_double_buffer"}}}})},
      {"UPDATE_ON_HOST", g1_config({{"graph", "on"}, {"collector", {{"update", "host"}}}})},
      {"LEARNER_UNAVAILABLE", cartpole_config({{"learner", {{"place", "device"}}}})},
      {"UPDATE_UNAVAILABLE",
       cartpole_config({{"device", "cpu"}, {"collector", {{"update", "device"}}}})},
      {"SYMMETRY_UNAVAILABLE", cartpole_config({{"learner", {{"symmetry", true}}}})},
      {"INGRESS_DEPTH", replay({{"ingress_depth", 0}})},
      {"REPLAY_CAN_NEVER_START", replay({{"capacity_rows", 16}})},
      {"REPLAY_CAPACITY_BELOW_IN_FLIGHT", replay({{"ingress_depth", 5}, {"capacity_rows", 20}})},
      {"BATCH_ODD_WITH_SYMMETRY", g1_config({{"learner", {{"batch", 17}}}})},
  };
}

// How much memory is free differs from machine to machine.
void add_budgets(Texts& texts) {
  const ReplayPlan plan = {{98, 29, 101}, 512, 4096, 2, 2048, 4, 8, true, 1000, 500, false};
  for (const Finding& finding : check_replay(plan, 1 << 20, 1 << 20)) add(texts, to_json(finding));
}

Texts all_texts() {
  Texts texts;
  for (const Spoiler& spoiler : spoilers()) {
    GraphCase spoilt = sound_case();
    spoiler.spoil(spoilt);
    for (const Finding& finding : spoilt.check()) add(texts, to_json(finding));
  }
  for (const Configured& configured : configurations()) {
    bool is_found = false;
    const json report = run_preflight(configured.config);
    for (const json& finding : report.at("findings")) {
      if (finding.at("id") != configured.id) continue;
      is_found = true;
      add(texts, finding);
    }
    EXPECT_TRUE(is_found) << configured.id;
  }
  add_budgets(texts);
  try {
    require_mujoco_version(222, 314);
  } catch (const Failure& failure) {
    add(texts, to_json(other_mujoco(failure)));
  }
  return texts;
}

class FindingGolden : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(sources())) GTEST_SKIP() << "a package has no " << sources();
  }
};

TEST_F(FindingGolden, EveryFindingIsWordForWordWhatItWas) {
  for (const auto& [id, text] : all_texts()) {
    const fs::path file = sources() / "tests/cpp/golden" / ("finding_" + id + ".txt");
    EXPECT_EQ(text_of(file), text) << file << " differs, or is missing";
  }
}

// An id is a text of capitals with an underscore, or COLLECTIVE, in a source that makes findings.
TEST_F(FindingGolden, EveryIdOfTheSourcesHasAGolden) {
  const std::regex quoted("\"([A-Z]+(?:_[A-Z]+)+|COLLECTIVE)\"");
  std::set<std::string> ids, golden;
  for (const char* source : {"budget.cpp", "graph_preflight.cpp", "preflight.cpp"}) {
    const std::string text = text_of(sources() / "cpp" / source);
    for (std::sregex_iterator each(text.begin(), text.end(), quoted), end; each != end; ++each) {
      ids.insert((*each)[1]);
    }
  }
  for (const auto& entry : fs::directory_iterator(sources() / "tests/cpp/golden")) {
    const std::string name = entry.path().stem();
    golden.insert(name.substr(std::string("finding_").size()));
  }
  EXPECT_EQ(ids, golden);
  EXPECT_GE(ids.size(), 30u);
}

// Findings are made where the test above looks for their ids.
TEST_F(FindingGolden, NoOtherSourceMakesFindings) {
  std::set<std::string> makers;
  for (const auto& entry : fs::directory_iterator(sources() / "cpp")) {
    if (entry.path().extension() != ".cpp" || entry.path().stem() == "finding") continue;
    if (text_of(entry.path()).find("Readiness::k") != std::string::npos) {
      makers.insert(entry.path().filename());
    }
  }
  EXPECT_EQ(makers, (std::set<std::string>{"budget.cpp", "graph_preflight.cpp", "preflight.cpp"}));
}

}  // namespace
}  // namespace millrace
