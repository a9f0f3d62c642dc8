// Unpacking of a gathered batch: a warp moves one row.
#include "batch_rows_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsOfABlock = kThreads / kWarp;

template <class Stored>
struct Unpack {
  int rows, source_rows, column, width;
  Stored* target;
  int target_stride;
  UnpackMaps maps;
};

template <class Stored>
__global__ void __launch_bounds__(kThreads)
    unpack_rows(const Arguments* arguments, const Unpack<Stored> unpack) {
  wait_for_kernels_before();
  const int r = static_cast<int>(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
  if (r >= unpack.rows) return;
  const bool is_mirrored = r >= unpack.source_rows;
  const u64 source_row = is_mirrored ? r - unpack.source_rows : r;
  unpack_row(WarpTeam(), arguments->rows + source_row * arguments->row_stride + unpack.column,
             is_mirrored, unpack.maps, unpack.target + static_cast<u64>(r) * unpack.target_stride,
             unpack.width);
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const UnpackOp& op) {
  return with_stored(frame, op.target, [&](auto* target) {
    using Stored = std::remove_pointer_t<decltype(target)>;
    const Unpack<Stored> unpack = {op.rows,
                                   op.source_rows,
                                   op.column,
                                   op.width,
                                   target,
                                   op.target_stride,
                                   {frame.integers(op.mirror_source), frame.floats(op.mirror_sign),
                                    frame.floats(op.mean), frame.floats(op.scale)}};
    return launch_kernel(frame.stream, blocks_for(op.rows, kRowsOfABlock), kThreads, 0,
                         unpack_rows<Stored>, frame.arguments, unpack);
  });
}

}  // namespace millrace
