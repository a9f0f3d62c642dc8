// Tests for cpp/program_facts.cpp.
#include "program_facts.h"

#include <gtest/gtest.h>

#include <set>

#include "unsound_programs.h"

namespace millrace {
namespace {

TEST(ProgramFacts, BecomesJson) {
  const nlohmann::json json = to_json(sound_case().program);
  EXPECT_EQ(json["name"], "control");
  ASSERT_EQ(json["ops"].size(), 2u);
  EXPECT_EQ(json["ops"][1]["site"], "control.cpp:20");
  EXPECT_EQ(json["ops"][1]["reads"], nlohmann::json::array({"observation"}));
  EXPECT_EQ(json["ops"][1]["writes"], nlohmann::json::array());
  EXPECT_EQ(json["carriers"][0]["bytes"], 4096);
}

TEST(ProgramFacts, EveryStreamAndClassHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int stream = kStreamReset; stream <= kStreamFrameSampler; ++stream) {
    names.insert(to_string(static_cast<RandomStream>(stream)));
  }
  EXPECT_EQ(names.size(), 10u);
  for (TermClass each : {TermClass::kPure, TermClass::kInterval, TermClass::kResetOwned,
                         TermClass::kStepOwned, TermClass::kHostEvent, TermClass::kGlobal}) {
    names.insert(to_string(each));
  }
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace millrace
