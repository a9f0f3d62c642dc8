// Tests for cpp/carrier.cpp.
#include "carrier.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

float memory_a[12], memory_b[12];

uint32_t add(CarrierTable& table, const std::string& name, void* memory = memory_a) {
  return table.add(name, "update", DType::kF32, {3, 4}, "cpu", memory);
}

TEST(CarrierTable, GivesIdsFromOneAndCountsBytes) {
  CarrierTable table;
  EXPECT_EQ(add(table, "observation"), 1u);
  EXPECT_EQ(add(table, "critic"), 2u);
  EXPECT_EQ(table.at(1).bytes(), 48u);
  EXPECT_EQ(table.total_bytes(), 96u);
  EXPECT_EQ(table.at(2).generation, 1u);
}

TEST(CarrierTable, MovingCountsTheGeneration) {
  CarrierTable table;
  const uint32_t id = add(table, "observation");
  table.move(id, memory_b);
  EXPECT_EQ(table.at(id).generation, 2u);
  EXPECT_EQ(table.at(id).memory, memory_b);
}

TEST(CarrierTable, NothingChangesAfterSeal) {
  CarrierTable table;
  const uint32_t id = add(table, "observation");
  table.rename(id, "obs");
  table.seal();
  EXPECT_TRUE(table.is_sealed());
  EXPECT_THROW(table.move(id, memory_b), Failure);
  EXPECT_THROW(table.rename(id, "other"), Failure);
  EXPECT_THROW(add(table, "critic"), Failure);
  EXPECT_EQ(table.at(id).name, "obs");
  EXPECT_EQ(table.at(id).generation, 1u);
}

TEST(CarrierTable, RefusesDuplicatesUnknownIdsAndMissingMemory) {
  CarrierTable table;
  add(table, "a");
  const uint32_t b = add(table, "b");
  EXPECT_THROW(add(table, "a"), Failure);
  EXPECT_THROW(table.rename(b, "a"), Failure);
  EXPECT_THROW(table.at(3), Failure);
  EXPECT_THROW(table.at(0), Failure);
  EXPECT_THROW(add(table, "c", nullptr), Failure);
}

TEST(CarrierTable, DigestIsOfTheDescriptionNotOfAddresses) {
  CarrierTable one, other, moved;
  add(one, "a", memory_a);
  add(other, "a", memory_b);
  EXPECT_EQ(one.digest(), other.digest());
  moved.move(add(moved, "a"), memory_b);
  EXPECT_NE(one.digest(), moved.digest());
  EXPECT_EQ(one.describe()[0]["name"], "a");
  EXPECT_EQ(one.describe()[0]["dtype"], "F32");
  EXPECT_EQ(one.describe()[0]["bytes"], 48);
}

}  // namespace
}  // namespace millrace
