// Tests for cpp/flashsac_network.cpp: layout and initial weights. What it computes is compared with
// a reference in learner_flashsac_test.cpp.
#include "flashsac_network.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace {
namespace {

constexpr NetworkShape kShape = {5, 8, 3, 2};

int columns_of(const NetworkTensor& tensor) { return static_cast<int>(tensor.shape.back()); }

// The place of a tensor's element i.
uint64_t place_of(const NetworkTensor& tensor, uint64_t i) {
  const uint64_t columns = static_cast<uint64_t>(columns_of(tensor));
  return tensor.offset + i / columns * tensor.row_stride + i % columns;
}

// What fills rows up belongs to no tensor, starts at zero, and stays with its row's block.
TEST(FlashSacNetwork, EveryParameterBelongsToOneTensorAndOneBlockOfRows) {
  const FlashSacNetwork network(kShape);
  std::vector<int> tensors(network.span()), blocks(network.span());
  std::vector<float> parameters(network.span(), -1.0f);
  network.initialise(parameters.data(), 1, 0);
  uint64_t elements = 0;
  for (const NetworkTensor& tensor : network.tensors()) {
    for (int g = 0; g < kShape.groups; ++g) {
      for (uint64_t i = 0; i < tensor.count(); ++i) {
        ++tensors[place_of(tensor, i) + static_cast<uint64_t>(g) * tensor.distance];
      }
      if (tensor.is_trained()) elements += tensor.count();
    }
    EXPECT_EQ(tensor.is_trained(), tensor.offset < network.parameter_count()) << tensor.name;
  }
  for (const RowBlock& block : network.row_blocks()) {
    for (int i = 0; i < block.rows * block.width; ++i) {
      ++blocks[block.first + static_cast<uint64_t>(i)];
    }
  }
  for (uint64_t i = 0; i < network.span(); ++i) {
    EXPECT_LE(tensors[i], 1) << i;
    if (tensors[i] == 0) {
      EXPECT_EQ(parameters[i], 0.0f) << i;
    }
    EXPECT_EQ(blocks[i], i < network.parameter_count() ? 1 : 0) << i;
  }
  // Per group: inputs 5 x 2 + 5 x 8; blocks 2 x (8 x 32 + 2 x 32 + 32 x 8 + 2 x 8); 8; 8 x 3 + 3.
  EXPECT_EQ(elements, 2u * (10 + 40 + 2 * (256 + 64 + 256 + 16) + 8 + 24 + 3));
  // Inputs fill up from 5 to 8, heads from 3 to 8.
  EXPECT_EQ(network.parameter_count(), 2u * (16 + 64 + 2 * (256 + 64 + 256 + 16) + 8 + 64 + 8));
  EXPECT_EQ(network.statistics_count(), 2u * (8 + 2 * (32 + 8)));
}

TEST(FlashSacNetwork, StartsWithOrthogonalRowsOfLengthOneEachTensorWithItsOwnDraws) {
  const FlashSacNetwork network(kShape);
  std::vector<float> parameters(network.span(), -1.0f), again(network.span());
  network.initialise(parameters.data(), 1, 0);
  for (const NetworkTensor& tensor : network.tensors()) {
    const float* values = parameters.data() + tensor.offset;
    const int stride = static_cast<int>(tensor.row_stride);
    if (tensor.kind != NetworkTensor::kWeight) {
      const bool is_one =
          tensor.kind == NetworkTensor::kGain || tensor.kind == NetworkTensor::kVariance;
      for (uint64_t i = 0; i < tensor.count(); ++i) EXPECT_EQ(values[i], is_one ? 1.0f : 0.0f);
      continue;
    }
    const int rows = static_cast<int>(tensor.shape[0]), width = static_cast<int>(tensor.shape[1]);
    for (int a = 0; a < rows; ++a) {
      for (int b = 0; b <= a; ++b) {
        double product = 0;
        for (int i = 0; i < width; ++i)
          product += double{values[a * stride + i]} * values[b * stride + i];
        if (a == b) {
          EXPECT_NEAR(product, 1.0, 1e-6) << tensor.name;
        } else if (rows <= width) {
          EXPECT_NEAR(product, 0.0, 1e-6) << tensor.name;
        }
      }
    }
    EXPECT_NE(values[0], values[tensor.distance]) << tensor.name;
  }
  network.initialise(again.data(), 1, 0);
  EXPECT_EQ(again, parameters);
  network.initialise(again.data(), 2, 0);
  EXPECT_NE(again, parameters);
}

TEST(FlashSacNetwork, ANetworkWithoutASideIsABug) {
  EXPECT_THROW(FlashSacNetwork({0, 8, 3, 1}), Failure);
}

}  // namespace
}  // namespace millrace
