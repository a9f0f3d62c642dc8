// Tests for tests/shim/cuda/tensor_core.cuh: products of fragments, laid out by hand as the PTX
// manual has them, against plain ones.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <tensor_core.cuh>
#include <vector>

namespace millrace {
namespace {

constexpr int kRows = 16, kColumns = 8;

struct Matrices {
  int depth;
  std::vector<float> a, b, c;  // row-major

  explicit Matrices(int depth)
      : depth(depth), a(kRows * depth), b(depth * kColumns), c(kRows * kColumns) {
    // Small whole numbers: every product and sum is exact, in any order.
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 23) - 11.0f;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 19) - 9.0f;
    for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i);
  }
  float sum(int row, int column) const {
    float sum = c[static_cast<size_t>(row * kColumns + column)];
    for (int k = 0; k < depth; ++k) {
      sum +=
          a[static_cast<size_t>(row * depth + k)] * b[static_cast<size_t>(k * kColumns + column)];
    }
    return sum;
  }
};

template <class... Parameters, class... Arguments>
void launch_warp(void (*kernel)(Parameters...), const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  ASSERT_EQ(cudaLaunchKernelEx(&config, kernel, arguments...), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

template <class Multiply>
void multiply_and_store(float* c, const Multiply& multiply) {
  const int group = static_cast<int>(threadIdx.x) / 4, pair = static_cast<int>(threadIdx.x) % 4;
  float* const places[4] = {c + group * kColumns + 2 * pair, c + group * kColumns + 2 * pair + 1,
                            c + (group + 8) * kColumns + 2 * pair,
                            c + (group + 8) * kColumns + 2 * pair + 1};
  float own[4];
  for (int i = 0; i < 4; ++i) own[i] = *places[i];
  multiply(own, group, pair);
  for (int i = 0; i < 4; ++i) *places[i] = own[i];
}

void multiply_tf32_tile(const float* a, const float* b, float* c) {
  multiply_and_store(c, [&](float(&own)[4], int group, int pair) {
    const unsigned left[4] = {
        round_to_tf32(a[group * 8 + pair]), round_to_tf32(a[(group + 8) * 8 + pair]),
        round_to_tf32(a[group * 8 + pair + 4]), round_to_tf32(a[(group + 8) * 8 + pair + 4])};
    const unsigned right[2] = {round_to_tf32(b[pair * kColumns + group]),
                               round_to_tf32(b[(pair + 4) * kColumns + group])};
    multiply_tf32(own, left, right);
  });
}

unsigned word_of(float low, float high) {
  return static_cast<unsigned>(to_bf16(high)) << 16 | to_bf16(low);
}

void multiply_bf16_tile(const float* a, const float* b, float* c) {
  multiply_and_store(c, [&](float(&own)[4], int group, int pair) {
    const auto of_a = [&](int row, int k) { return word_of(a[row * 16 + k], a[row * 16 + k + 1]); };
    const auto of_b = [&](int k) {
      return word_of(b[k * kColumns + group], b[(k + 1) * kColumns + group]);
    };
    const unsigned left[4] = {of_a(group, 2 * pair), of_a(group + 8, 2 * pair),
                              of_a(group, 2 * pair + 8), of_a(group + 8, 2 * pair + 8)};
    multiply_bf16(own, left, of_b(2 * pair), of_b(2 * pair + 8));
  });
}

void expect_product(const Matrices& m, void (*kernel)(const float*, const float*, float*)) {
  std::vector<float> c = m.c;
  launch_warp(kernel, m.a.data(), m.b.data(), c.data());
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      EXPECT_EQ(c[static_cast<size_t>(row * kColumns + column)], m.sum(row, column))
          << row << " " << column;
    }
  }
}

TEST(TensorCore, Tf32FragmentsMultiplyAsAPlainProduct) {
  expect_product(Matrices(8), multiply_tf32_tile);
}

TEST(TensorCore, Bf16FragmentsMultiplyAsAPlainProduct) {
  expect_product(Matrices(16), multiply_bf16_tile);
}

struct alignas(16) Loaded {
  __nv_bfloat16 matrices[4][8][8];
  unsigned as_they_lie[32][4], transposed[32][4];
};

void load_both_ways(Loaded* loaded) {
  const __nv_bfloat16* const row = loaded->matrices[threadIdx.x / 8][threadIdx.x % 8];
  load_matrices<false>(loaded->as_they_lie[threadIdx.x], row);
  load_matrices<true>(loaded->transposed[threadIdx.x], row);
}

TEST(TensorCore, MatricesAreLoadedAsFragments) {
  Loaded loaded;
  const auto number = [](int matrix, int row, int column) {
    return static_cast<float>(matrix * 64 + row * 8 + column);  // exact in bf16
  };
  for (int i = 0; i < 4 * 64; ++i) {
    loaded.matrices[i / 64][i / 8 % 8][i % 8] = __nv_bfloat16(number(0, 0, i));
  }
  launch_warp(load_both_ways, &loaded);
  for (int lane = 0; lane < 32; ++lane) {
    const int outer = lane / 4, inner = lane % 4 * 2;
    for (int m = 0; m < 4; ++m) {
      EXPECT_EQ(loaded.as_they_lie[lane][m],
                word_of(number(m, outer, inner), number(m, outer, inner + 1)));
      EXPECT_EQ(loaded.transposed[lane][m],
                word_of(number(m, inner, outer), number(m, inner + 1, outer)));
    }
  }
}

float as_tf32(float value) {
  const unsigned bits = round_to_tf32(value);
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(TensorCore, Tf32HasTenBitsRoundedToNearestTiesAwayFromZero) {
  constexpr float kStep = 1.0f / 1024.0f;
  EXPECT_EQ(as_tf32(1.0f + kStep), 1.0f + kStep);
  EXPECT_EQ(as_tf32(1.0f + kStep / 2), 1.0f + kStep);
  EXPECT_EQ(as_tf32(-1.0f - kStep / 2), -1.0f - kStep);
  EXPECT_EQ(as_tf32(1.0f + kStep / 2 - kStep / 4096), 1.0f);
  EXPECT_EQ(as_tf32(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_NE(as_tf32(std::numeric_limits<float>::quiet_NaN()),
            as_tf32(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace
}  // namespace millrace
