// Matrix products: a threadgroup computes one 64 x 64 tile of one product, 16 of k at a time
// through threadgroup memory; a thread has 8 x 4 of it in registers. Few tiles with a long k, as
// weight gradients have, are split along k; the pieces are added up in order.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

// Of a thread: rows and columns of the tile that lie apart, so that neighbours read neighbours.
MR_CONSTEXPR int kOwnM = 8, kOwnN = 4;
MR_CONSTEXPR int kThreadsM = (int)kTileM / kOwnM, kThreadsN = (int)kTileN / kOwnN;
// Rows of the tiles in threadgroup memory are one float apart from a multiple of the banks.
MR_CONSTEXPR int kPaddedM = (int)kTileM + 1, kPaddedN = (int)kTileN + 1;

// Copies a tile to `to`[k][outer]. Of the matrix, `outer_left` and `k_left` are left from the
// tile's corner, and elements beyond are zero; a step of k is k_stride floats, one of the other
// dimension outer_stride.
inline void fetch_tile(device const float* from, u64 outer_stride, u64 k_stride, int outer_left,
                       int k_left, threadgroup float* to, int padded, uint thread_index) {
  const bool is_k_inner = k_stride == 1;
  for (int at = (int)thread_index; at < (int)(kTileM * kTileK); at += kGemmThreads) {
    // Neighbours read neighbours, whichever way the matrix lies.
    const int outer = is_k_inner ? at / (int)kTileK : at % (int)kTileM;
    const int k = is_k_inner ? at % (int)kTileK : at / (int)kTileM;
    const bool is_inside = outer < outer_left && k < k_left;
    to[k * padded + outer] = is_inside ? from[(u64)outer * outer_stride + (u64)k * k_stride] : 0.0f;
  }
}

inline void put_product(constant const ProductArgs& args, u64 product, int row, int column,
                        float value) {
  device float* place =
      args.c + product * args.c_distance + (u64)row * (u64)args.c_stride + (u64)column;
  if (args.bias != nullptr) value += args.bias[product * (u64)args.n + (u64)column];
  if (args.has_relu && value < 0.0f) value = 0.0f;
  *place = args.accumulates ? *place + value : value;
}

}  // namespace millrace

// Threadgroup (tile of n, tile of m, product and piece). The room: both tiles.
kernel void multiply(constant const ProductArgs& args [[buffer(0)]],
                     uint3 group [[threadgroup_position_in_grid]],
                     uint thread_index [[thread_index_in_threadgroup]],
                     threadgroup float* room [[threadgroup(0)]]) {
  threadgroup float* a_tile = room;
  threadgroup float* b_tile = room + (int)kTileK * kPaddedM;
  const int first_n = (int)(group.x * kTileN), first_m = (int)(group.y * kTileM);
  const u64 product = group.z / (uint)args.pieces;
  const int first_k = (int)(group.z % (uint)args.pieces) * args.k_of_a_piece;
  const int last_k = first_k + args.k_of_a_piece < args.k ? first_k + args.k_of_a_piece : args.k;
  const InputSource from_a = args.a, from_b = args.b;
  // a: m x k, b: k x n, as they are meant.
  const u64 a_m = args.transpose_a ? 1 : (u64)args.a_stride;
  const u64 a_k = args.transpose_a ? (u64)args.a_stride : 1;
  const u64 b_n = args.transpose_b ? (u64)args.b_stride : 1;
  const u64 b_k = args.transpose_b ? 1 : (u64)args.b_stride;
  device const float* a = from_a.get() + product * args.a_distance + (u64)first_m * a_m;
  device const float* b = from_b.get() + product * args.b_distance + (u64)first_n * b_n;

  const int own_m = (int)thread_index / kThreadsN, own_n = (int)thread_index % kThreadsN;
  float sums[kOwnM][kOwnN] = {};
  for (int k = first_k; k < last_k; k += kTileK) {
    fetch_tile(a + (u64)k * a_k, a_m, a_k, args.m - first_m, last_k - k, a_tile, kPaddedM,
               thread_index);
    fetch_tile(b + (u64)k * b_k, b_n, b_k, args.n - first_n, last_k - k, b_tile, kPaddedN,
               thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int step = 0; step < (int)kTileK; ++step) {
      float b_own[kOwnN];
      for (int j = 0; j < kOwnN; ++j) b_own[j] = b_tile[step * kPaddedN + j * kThreadsN + own_n];
      for (int i = 0; i < kOwnM; ++i) {
        const float a_own = a_tile[step * kPaddedM + i * kThreadsM + own_m];
        for (int j = 0; j < kOwnN; ++j) sums[i][j] += a_own * b_own[j];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the tiles have been read
  }

  device float* piece = args.scratch + (u64)group.z * (u64)args.m * (u64)args.n;
  for (int i = 0; i < kOwnM; ++i) {
    for (int j = 0; j < kOwnN; ++j) {
      const int m = first_m + i * kThreadsM + own_m, n = first_n + j * kThreadsN + own_n;
      if (m >= args.m || n >= args.n) continue;
      if (args.pieces == 1) {
        put_product(args, product, m, n, sums[i][j]);
      } else {
        piece[(u64)m * (u64)args.n + (u64)n] = sums[i][j];
      }
    }
  }
}

// Threadgroup (elements, product).
kernel void add_pieces(constant const ProductArgs& args [[buffer(0)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint thread_index [[thread_index_in_threadgroup]]) {
  const u32 size = (u32)args.m * (u32)args.n, i = group.x * kElementThreads + thread_index;
  if (i >= size) return;
  device const float* pieces = args.scratch + (u64)group.y * (u64)args.pieces * (u64)size + i;
  float sum = 0.0f;
  for (int piece = 0; piece < args.pieces; ++piece) sum += pieces[(u64)piece * size];
  put_product(args, group.y, (int)(i / (u32)args.n), (int)(i % (u32)args.n), sum);
}
