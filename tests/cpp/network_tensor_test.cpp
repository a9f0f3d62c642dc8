// Tests for cpp/network_tensor.cpp.
#include "network_tensor.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

const std::vector<NetworkTensor> kTensors = {
    {"l0/weight", {2, 3}, 0, 3, 6, 3, NetworkTensor::kWeight, false},
    {"l0/norm/mean", {2}, 12, 2, 2, 0, NetworkTensor::kMean, false}};

std::vector<std::string> names(int groups, bool only_trained) {
  std::vector<float> values(20);
  StateRegistry registry;
  register_tensors(registry, kTensors, groups, "critic", "/m", values.data(), only_trained);
  std::vector<std::string> found;
  for (const StateTensor& tensor : registry.tensors()) found.push_back(tensor.name);
  return found;
}

TEST(NetworkTensor, IsNamedByItsGroupWhereThereAreSeveral) {
  EXPECT_EQ(names(1, false),
            (std::vector<std::string>{"critic/l0/weight/m", "critic/l0/norm/mean/m"}));
  EXPECT_EQ(names(2, true),
            (std::vector<std::string>{"critic/0/l0/weight/m", "critic/1/l0/weight/m"}));
  EXPECT_EQ(kTensors[0].count(), 6u);
}

TEST(NetworkTensor, GroupsAreADistanceApart) {
  std::vector<float> values(20);
  StateRegistry registry;
  register_tensors(registry, kTensors, 2, "critic", "", values.data());
  EXPECT_EQ(registry.tensors()[2].name, "critic/1/l0/weight");
  EXPECT_EQ(registry.tensors()[2].data, values.data() + 6);
  EXPECT_EQ(registry.tensors()[3].data, values.data() + 14);
}

}  // namespace
}  // namespace millrace
