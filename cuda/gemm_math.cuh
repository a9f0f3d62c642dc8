// What one thread block of a matrix product does with two tiles in shared memory, for each
// precision: fp32 by fused multiply-adds, TF32 and bf16 by tensor cores. Tiles lie as their
// matrices do: [m][k] or, transposed, [k][m]; [k][n] or [n][k]; rows are longer by pad(), so that
// the lanes of a warp read different banks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <tensor_core.cuh>

#include "warp_team.cuh"

namespace millrace {

constexpr int kTileM = 128, kTileN = 128, kTileK = 32;
constexpr int kGemmThreads = 256;

// From row to row of a tile.
template <class Math, bool kTranspose>
__host__ __device__ constexpr int stride_a() {
  return (kTranspose ? kTileM : kTileK) + Math::pad(kTranspose);
}
template <class Math, bool kTranspose>
__host__ __device__ constexpr int stride_b() {
  return (kTranspose ? kTileK : kTileN) + Math::pad(!kTranspose);
}

// Each thread owns 8 x 8 sums, 16 rows and 16 columns apart.
struct Fp32Math {
  using Stored = float;
  static constexpr int kSide = 16, kOwn = 8;
  __host__ __device__ static constexpr int pad(bool) { return 4; }

  __device__ static Stored stored(float value) { return value; }

  template <bool kTransposeA, bool kTransposeB>
  __device__ void multiply(const Stored* a, const Stored* b) {
    constexpr int kStrideA = stride_a<Fp32Math, kTransposeA>();
    constexpr int kStrideB = stride_b<Fp32Math, kTransposeB>();
    const int row = static_cast<int>(threadIdx.x) / kSide;
    const int column = static_cast<int>(threadIdx.x) % kSide;
#pragma unroll 4
    for (int k = 0; k < kTileK; ++k) {
      float left[kOwn], right[kOwn];
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int m = row + i * kSide, n = column + i * kSide;
        left[i] = kTransposeA ? a[k * kStrideA + m] : a[m * kStrideA + k];
        right[i] = kTransposeB ? b[n * kStrideB + k] : b[k * kStrideB + n];
      }
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sums_[i][j] = __fmaf_rn(left[i], right[j], sums_[i][j]);
      }
    }
  }

  // visit(row, column, value) of every sum of this thread.
  template <class Visit>
  __device__ void visit(const Visit& visit) const {
    const int row = static_cast<int>(threadIdx.x) / kSide;
    const int column = static_cast<int>(threadIdx.x) % kSide;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) visit(row + i * kSide, column + j * kSide, sums_[i][j]);
    }
  }

 private:
  float sums_[kOwn][kOwn] = {};
};

// The sums of a tensor-core product: eight warps, each 64 x 32 of the tile as 4 x 4 fragments of
// 16 x 8. In a fragment, lane l holds rows l/4 and l/4 + 8, columns 2(l%4) and the next.
struct WarpSums {
  static constexpr int kFragmentsM = 4, kFragmentsN = 4;
  static constexpr int kWarpsN = 4;

  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x) / kWarp / kWarpsN * (kFragmentsM * 16);
  }
  __device__ static int first_column() {
    return static_cast<int>(threadIdx.x) / kWarp % kWarpsN * (kFragmentsN * 8);
  }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

  template <class Visit>
  __device__ void visit(const Visit& visit) const {
    const int row = first_row() + lane() / 4, column = first_column() + lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          visit(row + i * 16 + part / 2 * 8, column + j * 8 + part % 2, sums[i][j][part]);
        }
      }
    }
  }

  float sums[kFragmentsM][kFragmentsN][4] = {};
};

struct Tf32Math : WarpSums {
  using Stored = unsigned;  // a float's bits, rounded to ten of mantissa
  // Lanes read eight rows four columns wide where k is inner, four rows eight columns wide else.
  __host__ __device__ static constexpr int pad(bool is_k_outer) { return is_k_outer ? 8 : 4; }

  __device__ static Stored stored(float value) { return round_to_tf32(value); }

  template <bool kTransposeA, bool kTransposeB>
  __device__ void multiply(const Stored* a, const Stored* b) {
    constexpr int kStrideA = stride_a<Tf32Math, kTransposeA>();
    constexpr int kStrideB = stride_b<Tf32Math, kTransposeB>();
    const int row = first_row() + lane() / 4, column = first_column() + lane() / 4;
#pragma unroll
    for (int step = 0; step < kTileK; step += 8) {
      const int k = step + lane() % 4;
      unsigned left[kFragmentsM][4], right[kFragmentsN][2];
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          const int m = row + i * 16 + part % 2 * 8, at = k + part / 2 * 4;
          left[i][part] = kTransposeA ? a[at * kStrideA + m] : a[m * kStrideA + at];
        }
      }
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const int n = column + j * 8, at = k + part * 4;
          right[j][part] = kTransposeB ? b[n * kStrideB + at] : b[at * kStrideB + n];
        }
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) {
          multiply_tf32(sums[i][j], left[i], right[j]);
        }
      }
    }
  }
};

struct Bf16Math : WarpSums {
  using Stored = __nv_bfloat16;
  __host__ __device__ static constexpr int pad(bool) { return 8; }  // rows stay aligned to 16 bytes

  __device__ static Stored stored(float value) { return __float2bfloat16_rn(value); }

  template <bool kTransposeA, bool kTransposeB>
  __device__ void multiply(const Stored* a, const Stored* b) {
    constexpr int kStrideA = stride_a<Bf16Math, kTransposeA>();
    constexpr int kStrideB = stride_b<Bf16Math, kTransposeB>();
    const int in_eight = lane() % 8, low = lane() / 8 % 2 * 8, high = lane() / 16 * 8;
#pragma unroll
    for (int step = 0; step < kTileK; step += 16) {
      unsigned left[kFragmentsM][4], right[kFragmentsN / 2][4];
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        const int m = first_row() + i * 16;
        if (kTransposeA) {
          load_matrices<true>(left[i], a + (step + in_eight + high) * kStrideA + m + low);
        } else {
          load_matrices<false>(left[i], a + (m + in_eight + low) * kStrideA + step + high);
        }
      }
#pragma unroll
      for (int j = 0; j < kFragmentsN / 2; ++j) {  // two fragments at a time
        const int n = first_column() + j * 16;
        if (kTransposeB) {
          load_matrices<false>(right[j], b + (n + in_eight + high) * kStrideB + step + low);
        } else {
          load_matrices<true>(right[j], b + (step + in_eight + low) * kStrideB + n + high);
        }
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) {
          const unsigned* pair = right[j / 2] + j % 2 * 2;
          multiply_bf16(sums[i][j], left[i], pair[0], pair[1]);
        }
      }
    }
  }
};

}  // namespace millrace
