// Tests for cpp/state_registry.cpp.
#include "state_registry.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(StateRegistry, KeepsTensorsInOrderOfRegistration) {
  StateRegistry registry;
  float weight[6];
  int64_t counter[1];
  registry.add("actor/l0/weight", DType::kF32, {2, 3}, weight);
  registry.add("replay/counters", DType::kI64, {1}, counter, true);
  ASSERT_EQ(registry.tensors().size(), 2u);
  EXPECT_EQ(registry.tensors()[0].bytes(), 24u);
  EXPECT_FALSE(registry.tensors()[0].is_replay);
  EXPECT_EQ(registry.tensors()[1].bytes(), 8u);
  EXPECT_TRUE(registry.tensors()[1].is_replay);
}

TEST(StateRegistry, RefusesANameGivenTwice) {
  StateRegistry registry;
  float value;
  registry.add("alpha/log", DType::kF32, {1}, &value);
  EXPECT_THROW(registry.add("alpha/log", DType::kF32, {1}, &value), Failure);
}

TEST(StateRegistry, RefusesMissingMemoryAndNegativeExtents) {
  StateRegistry registry;
  float value;
  EXPECT_THROW(registry.add("a", DType::kF32, {1}, nullptr), Failure);
  EXPECT_THROW(registry.add("b", DType::kF32, {-1}, &value), Failure);
  EXPECT_NO_THROW(registry.add("empty", DType::kF32, {0}, nullptr));
}

TEST(DType, SizesAndSafetensorsNames) {
  EXPECT_EQ(bytes_of(DType::kF32), 4u);
  EXPECT_EQ(bytes_of(DType::kI32), 4u);
  EXPECT_EQ(bytes_of(DType::kF64), 8u);
  EXPECT_EQ(bytes_of(DType::kU64), 8u);
  EXPECT_STREQ(to_string(DType::kF32), "F32");
  EXPECT_STREQ(to_string(DType::kU64), "U64");
}

// Two rows of three, five apart: offsets count elements, and what lies between stays untouched.
TEST(StateRegistry, AMatrixWithGapsIsReadAndWrittenRowAfterRow) {
  std::vector<float> memory = {0, 1, 2, -1, -1, 3, 4, 5};
  StateRegistry registry;
  registry.add_matrix("weight", {2, 3}, 5, memory.data());
  const StateTensor& tensor = registry.tensors()[0];
  EXPECT_EQ(tensor.bytes(), 6 * sizeof(float));
  std::vector<float> found(4);
  tensor.read(sizeof(float), found.data(), 4 * sizeof(float));
  EXPECT_EQ(found, (std::vector<float>{1, 2, 3, 4}));
  const std::vector<float> written = {8, 9};
  tensor.write(2 * sizeof(float), written.data(), 2 * sizeof(float));
  EXPECT_EQ(memory, (std::vector<float>{0, 1, 8, -1, -1, 9, 4, 5}));
  EXPECT_THROW(tensor.read(3 * sizeof(float), found.data(), 4 * sizeof(float)), Failure);
  EXPECT_THROW(registry.add_matrix("overlapping", {2, 3}, 2, memory.data()), Failure);
}

}  // namespace
}  // namespace millrace
