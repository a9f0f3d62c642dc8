// Tests for cpp/learner_facts.cpp.
#include "learner_facts.h"

#include <gtest/gtest.h>

#include "fake_cuda.h"
#include "graph_preflight.h"
#include "run_fixture.h"
#include "run_plan.h"
#include "sac_programs.h"

namespace millrace {
namespace {

constexpr const char* kSite = "_programs.cpp:";

TEST(LearnerFacts, AreThoseOfEveryOpThatALearnerRecords) {
  const RowLayout layout{5, 1, 5};
  for (const char* algorithm : {"fastsac", "flashsac"}) {
    const LearnerSpec spec = parse_plan(cartpole_config({{"algo", algorithm}})).learner;
    const auto programs = SacPrograms::make(spec, layout);
    const auto facts = learner_facts(spec, layout, "fake_cuda");
    ASSERT_EQ(facts.size(), 2u);
    EXPECT_EQ(facts[0].graph, "learner_critic");
    EXPECT_EQ(facts[1].graph, "learner_critic_and_actor");
    EXPECT_EQ(facts[0].program.name, programs->critic_program->name());
    EXPECT_EQ(facts[0].program.ops.size(), programs->critic_program->records().size());
    EXPECT_EQ(facts[1].program.ops.size(), programs->whole_program->records().size());
    EXPECT_NE(facts[0].program.ops[0].site.find(kSite), std::string::npos);
    EXPECT_EQ(facts[0].program.ops[0].device, "fake_cuda");
  }
}

TEST(LearnerFacts, NothingOfThemSpeaksAgainstAGraph) {
  Backend backend(fake_cuda());
  const LearnerSpec spec = parse_plan(cartpole_config()).learner;
  for (const LearnerProgramFacts& each : learner_facts(spec, {5, 1, 5}, backend.name())) {
    EXPECT_EQ(first_reason(check_graph(each.program, graph_backend_of(backend), GraphPolicy::kOn)),
              "");
  }
}

}  // namespace
}  // namespace millrace
