// Tests for cpp/op_facts.cpp: what preflight then says of general programs.
#include "op_facts.h"

#include <gtest/gtest.h>

#include "graph_preflight.h"
#include "random_program.h"

namespace millrace {
namespace {

class OpFactsTest : public testing::Test {
 protected:
  PointwiseOp add() const {
    PointwiseOp op{};
    op.function = Pointwise::kAdd;
    op.count = 8;
    op.a = a_;
    op.b = op.y = b_;
    return op;
  }
  std::string findings(InputUse inputs) const {
    const GraphBackend backend = {"cuda", true, "", {12080, 12080, 0, 0, ""}};
    std::string text;
    for (const Finding& finding :
         check_graph(facts_of(program_, "cuda", inputs), backend, GraphPolicy::kAuto)) {
      text += finding.id + " " + finding.subject + "; ";
    }
    return text;
  }

  Workspace workspace_;
  const Operand a_ = workspace_.add_floats("a", 8), b_ = workspace_.add_floats("b", 8);
  Program program_{"p", workspace_};
};

TEST_F(OpFactsTest, APlainProgramHasNothingAgainstIt) {
  program_.record(add());
  EXPECT_EQ(findings(InputUse::kByValue), "");
  const ProgramFacts facts = facts_of(program_, "cuda", InputUse::kByValue);
  EXPECT_EQ(facts.ops[0].reads, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(facts.ops[0].writes, std::vector<std::string>{"b"});
  EXPECT_EQ(facts.ops[0].site.rfind("op_facts_test.cpp:", 0), 0u);
}

TEST_F(OpFactsTest, WhatTakesFromTheHostIsRefusedByName) {
  PointwiseOp scaled = add();
  scaled.scalar = {ScalarSource::From::kHost, 0, 7, {}};
  program_.record(scaled);
  program_.record(CopyInOp{0, 8, a_});
  program_.record_on_host(add());
  program_.record(HostFunctionOp{"reverse", reverse_copy, a_, b_, 8, 8});
  EXPECT_EQ(findings(InputUse::kByValue),
            "BY_VALUE_VARYING p.0 pointwise; UNPINNED_HOST p.1 copy_in; HOST_READ p.2 pointwise; "
            "HOST_READ p.3 host_function; ");
}

TEST_F(OpFactsTest, AnInputIsInTheWayOnlyByValue) {
  PointwiseOp op = add();
  op.a = Operand::of_input(1);
  program_.record(op);
  EXPECT_EQ(findings(InputUse::kByValue), "BY_VALUE_VARYING p.0 pointwise; ");
  EXPECT_EQ(findings(InputUse::kCopied), "");
  EXPECT_EQ(findings(InputUse::kThroughBlock), "");
}

TEST_F(OpFactsTest, AScalarFromTheBlockIsInNobodysWay) {
  PointwiseOp op = add();
  op.scalar = {ScalarSource::From::kBlock, 0, 7, {}};
  program_.record(op);
  EXPECT_EQ(findings(InputUse::kByValue), "");
}

}  // namespace
}  // namespace millrace
