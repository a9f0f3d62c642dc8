// The launches of gemm.metal.
#include <algorithm>

#include "program_metal.h"

namespace millrace {
namespace {

constexpr int kWantedGroups = 128;
constexpr int kLeastKTiles = 16;  // of a piece; below, adding the pieces up costs more
constexpr uint32_t kTileBytes = kTileK * (kTileM + 1 + kTileN + 1) * sizeof(float);

int tiles_of(int extent, u32 tile) {
  return static_cast<int>(groups_for(static_cast<u64>(extent), tile));
}

struct Split {
  int pieces, k_of_a_piece;
};

// Few tiles with a long k are split along k.
Split split_of(const GemmOp& op) {
  const int tiles = tiles_of(op.m, kTileM) * tiles_of(op.n, kTileN) * op.count;
  const int k_tiles = tiles_of(op.k, kTileK);
  const int pieces = std::max(std::min(kWantedGroups / tiles, k_tiles / kLeastKTiles), 1);
  const int k_tiles_of_a_piece = tiles_of(k_tiles, static_cast<u32>(pieces));
  return {tiles_of(k_tiles, static_cast<u32>(k_tiles_of_a_piece)),
          k_tiles_of_a_piece * static_cast<int>(kTileK)};
}

u64 size_of(const GemmOp& op) { return static_cast<u64>(op.m) * static_cast<u64>(op.n); }

}  // namespace

u64 metal_scratch_floats(const GemmOp& op) {
  const int pieces = split_of(op).pieces;
  return pieces == 1 ? 0 : size_of(op) * static_cast<u64>(op.count) * static_cast<u64>(pieces);
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const GemmOp& op) {
  if (size_of(op) > UINT32_MAX) return false;  // add_pieces counts in 32 bits
  const Split split = split_of(op);
  const ProductArgs arguments = {op.m,
                                 op.n,
                                 op.k,
                                 op.transpose_a ? 1 : 0,
                                 op.transpose_b ? 1 : 0,
                                 op.accumulates ? 1 : 0,
                                 op.has_relu ? 1 : 0,
                                 split.pieces,
                                 frame.source(op.a),
                                 frame.source(op.b),
                                 frame.floats(op.c),
                                 op.a_stride,
                                 op.b_stride,
                                 op.c_stride,
                                 split.k_of_a_piece,
                                 op.a_distance,
                                 op.b_distance,
                                 op.c_distance,
                                 split.pieces > 1 ? frame.scratch : nullptr,
                                 frame.floats(op.bias)};
  to.add_grid("multiply", arguments, static_cast<u64>(tiles_of(op.n, kTileN)),
              static_cast<u64>(tiles_of(op.m, kTileM)),
              static_cast<u64>(op.count) * static_cast<u64>(split.pieces), kGemmThreads,
              kTileBytes);
  if (split.pieces > 1) {
    to.add_grid("add_pieces", arguments, groups_for(size_of(op), kElementThreads),
                static_cast<u64>(op.count), 1, kElementThreads);
  }
  return true;
}

}  // namespace millrace
