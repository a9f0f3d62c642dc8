// Every built-in term and expression terms, certified on fake_cuda and on every device with graphs;
// and that the certification fails mutants of the update step.
#include "certification.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph_backends.h"
#include "mutants.h"

namespace millrace {
namespace {

using Failures = std::vector<std::string>;
using millrace_mutants::Mutant;

std::string title(const TermRow& row) {
  return std::string(to_string(row.kind)) + " " + row.name +
         (row.steers_to_heading ? " with heading" : "");
}

class Certification : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), Failures{}); }
};

MR_ON_EACH_GRAPH_BACKEND(Certification);

TEST_P(Certification, EveryTermIsCertified) {
  for (const TermRow& row : certification_table()) {
    EXPECT_EQ(certify(row, graph_backend_api(GetParam())), Failures{}) << title(row);
  }
}

TEST(CertificationTable, HasARowForEveryTermAndNoOther) {
  const auto& table = certification_table();
  for (const TermInfo& info : term_table()) {
    const auto is_it = [&](const TermRow& row) {
      return row.kind == info.kind && row.name == info.name && row.expression.empty();
    };
    EXPECT_TRUE(std::any_of(table.begin(), table.end(), is_it))
        << "no row certifies the " << to_string(info.kind) << " " << info.name;
  }
  for (const TermRow& row : table) {
    if (!row.expression.empty()) continue;
    EXPECT_STREQ(term_info(row.kind, row.name).name, row.name.c_str());
  }
}

// The checks can fail: rows that claim what is not so.
TEST(CertificationTable, AFalseRowIsFound) {
  const TermRow noisy = {TermKind::kObservation, "gyro", Draws::kNever};
  EXPECT_EQ(certify(noisy, fake_cuda()),
            (Failures{"draws: in the update step: the seed matters",
                      "draws: in the update step: it can be switched off"}));
  const TermRow calm = {TermKind::kReward, "upright", Draws::kInUpdate};
  EXPECT_EQ(certify(calm, fake_cuda()),
            (Failures{"draws: in the update step: the seed does not matter",
                      "draws: in the update step: switched off nothing changes"}));
  const TermRow constant = {TermKind::kReward, "nothing", Draws::kNever, "2 + 3"};
  EXPECT_EQ(certify(constant, fake_cuda()), Failures{"vacuous: the reward never changes"});
}

// ---- mutants ----

const Mutant* running_mutant = nullptr;

int run_mutant(void*, const UpdateLaunch* launch) {
  running_mutant->run(launch);
  return 0;
}

// Replays of the mutant fail exactly the rows that it must fail.
void expect_caught(const Mutant& mutant, const std::function<bool(const TermRow&)>& must_fail) {
  running_mutant = &mutant;
  int caught = 0;
  for (const TermRow& row : certification_table()) {
    mutant.begin();
    const Failures found = certify_bits(row, fake_cuda(), run_mutant);
    if (!must_fail(row)) {
      EXPECT_EQ(found, Failures{}) << title(row);
      continue;
    }
    ++caught;
    ASSERT_EQ(found.size(), 1u) << title(row);
    EXPECT_EQ(found[0].find("host: graph, tick "), 0u) << title(row) << ": " << found[0];
  }
  EXPECT_GT(caught, 0);
  EXPECT_EQ(FakeCuda::take_violations(), Failures{});
}

TEST(CertificationMutants, FrozenRandomnessFailsWhateverDraws) {
  expect_caught(millrace_mutants::kFrozenRandomness,
                [](const TermRow& row) { return row.draws == Draws::kInUpdate; });
}

TEST(CertificationMutants, AFrozenStepFailsEveryTerm) {
  expect_caught(millrace_mutants::kFrozenStep, [](const TermRow&) { return true; });
}

TEST(CertificationMutants, FrozenCommandRangesFailTheCommand) {
  expect_caught(millrace_mutants::kFrozenCommand,
                [](const TermRow& row) { return row.name == "velocity"; });
}

TEST(CertificationMutants, AFrozenPenaltyScaleFailsEveryPenalty) {
  expect_caught(millrace_mutants::kFrozenPenalty, [](const TermRow& row) {
    return row.kind == TermKind::kReward || row.kind == TermKind::kCurriculum;
  });
}

}  // namespace
}  // namespace millrace
