// Tests for cpp/program.cpp and cpp/program_cpu.cpp.
#include "program.h"

#include <gtest/gtest.h>

#include <tuple>

#include "program_cpu.h"

namespace millrace {
namespace {

GemmOp product(Operand a, Operand b, Operand c, int m, int n, int k) {
  GemmOp op{};
  op.m = m;
  op.n = op.b_stride = op.c_stride = n;
  op.k = op.a_stride = k;
  op.a = a;
  op.b = b;
  op.c = c;
  op.count = 1;
  return op;
}

TEST(Program, RunsItsOpsInOrder) {
  Workspace workspace;
  const Operand a = workspace.add_floats("a", 4), b = workspace.add_floats("b", 4);
  const Operand c = workspace.add_floats("c", 4);
  Program program("twice", workspace);
  program.record(product(a, b, c, 2, 2, 2));
  program.record(product(c, c, b, 2, 2, 2));
  workspace.allocate();
  for (int i = 0; i < 4; ++i) workspace.floats(a)[i] = workspace.floats(b)[i] = i + 1.0f;
  run_on_cpu(program, {workspace, Arguments{}});
  const std::vector<float> square = {7, 10, 15, 22};  // of [1 2; 3 4]
  EXPECT_EQ(std::vector<float>(workspace.floats(c), workspace.floats(c) + 4), square);
  EXPECT_EQ(workspace.floats(b)[0], 7 * 7 + 10 * 15);
  EXPECT_EQ(program.gemm_flops(), 32.0);
}

// a b -> c; a b -> d; c d -> e; then c is written over, which waits for its reader.
TEST(Program, KnowsTheFewestRecordsThatEachMustRunAfter) {
  Workspace workspace;
  std::vector<Operand> carriers;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    carriers.push_back(workspace.add_floats(name, 4));
  }
  const auto [a, b, c, d, e] =
      std::tie(carriers[0], carriers[1], carriers[2], carriers[3], carriers[4]);
  Program program("diamond", workspace);
  program.record(product(a, b, c, 2, 2, 2));
  program.record(product(a, b, d, 2, 2, 2));
  program.record(product(c, d, e, 2, 2, 2));
  program.record(product(a, a, c, 2, 2, 2));
  const std::vector<Program::Record>& records = program.records();
  EXPECT_TRUE(records[0].after.empty());
  EXPECT_TRUE(records[1].after.empty());
  EXPECT_EQ(records[2].after, (std::vector<int>{1, 0}));
  EXPECT_EQ(records[3].after, (std::vector<int>{2}));
  EXPECT_NE(records[0].lane, records[1].lane);
  EXPECT_EQ(records[3].lane, records[2].lane);
}

TEST(Program, PartsOfACarrierThatDoNotOverlapAreIndependent) {
  Workspace workspace;
  const Operand a = workspace.add_floats("a", 12);
  Program program("parts", workspace);
  program.record(product(a, a, a + 4, 2, 2, 2));
  program.record(product(a, a, a + 8, 2, 2, 2));
  program.record(product(a, a + 7, a + 8, 2, 2, 2));
  EXPECT_TRUE(program.records()[1].after.empty());
  EXPECT_EQ(program.records()[2].after, (std::vector<int>{1, 0}));
}

TEST(Program, RecordsKnowTheirSite) {
  Workspace workspace;
  const Operand a = workspace.add_floats("a", 4);
  Program program("site", workspace);
  program.record(product(a, a, a, 2, 2, 2));
  const int line = __LINE__ - 1;
  EXPECT_EQ(program.records()[0].site.line, line);
  EXPECT_NE(std::string(program.records()[0].site.file).find("program_test.cpp"),
            std::string::npos);
  EXPECT_STREQ(kind_of(program.records()[0].op), "gemm");
}

TEST(Program, AnOperandBeyondItsCarrierIsRefusedWhenRecorded) {
  Workspace workspace;
  const Operand a = workspace.add_floats("a", 4);
  Program program("beyond", workspace);
  try {
    program.record(product(a, a + 1, a, 2, 2, 2));
    FAIL();
  } catch (const Failure& failure) {
    const std::string message = failure.what();
    EXPECT_NE(message.find("gemm of program 'beyond'"), std::string::npos) << message;
    EXPECT_NE(message.find("carrier 'a'"), std::string::npos) << message;
  }
}

TEST(Program, AnUnpackHasSomePartsWhoseTargetsAreStoredAlike) {
  Workspace workspace;
  UnpackPart plain{}, activation{};
  plain.width = plain.target_stride = activation.width = activation.target_stride = 2;
  plain.target = workspace.add_floats("plain", 4);
  activation.target = workspace.add_activation("activation", 4);
  Program program("parts", workspace);
  program.record(UnpackOp{2, 2, std::vector<UnpackPart>(kMaxUnpackParts, plain)});
  program.record(UnpackOp{2, 2, {activation, activation}});
  const std::vector<UnpackPart> too_many(kMaxUnpackParts + 1, plain);
  for (const std::vector<UnpackPart>& parts : {{}, too_many, {plain, activation}}) {
    EXPECT_THROW(program.record(UnpackOp{2, 2, parts}), Failure);
  }
  EXPECT_EQ(program.records().size(), 2u);
}

// Whoever writes to any of its parts runs after it.
TEST(Program, AnUnpackWritesTheTargetsOfAllItsParts) {
  Workspace workspace;
  const Operand a = workspace.add_floats("a", 4), b = workspace.add_floats("b", 4);
  UnpackPart first{}, second{};
  first.width = first.target_stride = second.width = second.target_stride = 2;
  first.target = a;
  second.target = b;
  Program program("parts", workspace);
  program.record(UnpackOp{2, 2, {first, second}});
  program.record(RandomFillOp{4, kStreamEvent, 0, b});
  EXPECT_EQ(program.records()[1].after, (std::vector<int>{0}));
  first.target = b + 1;
  EXPECT_THROW(program.record(UnpackOp{2, 2, {second, first}}), Failure);
}

}  // namespace
}  // namespace millrace
