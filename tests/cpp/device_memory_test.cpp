// Tests for cpp/device_memory.cpp.
#include "device_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "each_backend.h"

namespace millrace {
namespace {

class DeviceMemoryTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(DeviceMemoryTest);

TEST_P(DeviceMemoryTest, ReadsAndWritesAnyPiece) {
  Backend backend(test_backend_api(GetParam()));
  Memory memory(backend, Memory::Kind::kDevice, 64);
  DeviceMemory access(backend, memory);
  const std::vector<char> written = {'m', 'i', 'l', 'l'};
  access.write(7, written.data(), written.size());
  std::vector<char> all(64);
  access.read(0, all.data(), all.size());
  EXPECT_EQ(std::vector<char>(all.begin() + 7, all.begin() + 11), written);
  EXPECT_EQ(all[6], 0);
  EXPECT_EQ(all[11], 0);
  std::vector<char> piece(2);
  access.read(8, piece.data(), piece.size());
  EXPECT_EQ(piece, (std::vector<char>{'i', 'l'}));
}

}  // namespace
}  // namespace millrace
