// Unpacking of a gathered batch, all parts in one launch: a thread moves two columns of a few rows,
// and all that it reads of them is under way before it waits for the first.
#include <algorithm>
#include <climits>

#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"

namespace millrace {
namespace {

constexpr int kThreads = 256;
constexpr int kColumnsOfAThread = 2, kRowsOfAThread = 4;

template <class Stored>
struct Part {
  int column, width;
  Stored* target;
  int target_stride;
  bool takes_pairs;          // its columns may be written two at a time
  const int* mirror_source;  // these two null without mirrored rows
  const float* mirror_sign;
  const float *mean, *scale;  // null without a normaliser
};

template <class Stored>
struct Unpack {
  int rows, source_rows;
  unsigned pairs;                        // of columns, of all parts
  unsigned first_pair[kMaxUnpackParts];  // of each part; of none that is not there
  Part<Stored> parts[kMaxUnpackParts];
};

// A thread's columns, and what is the same for all its rows.
struct OwnColumns {
  int plain[kColumnsOfAThread], mirrored[kColumnsOfAThread];  // where rows have them
  float sign[kColumnsOfAThread], mean[kColumnsOfAThread], scale[kColumnsOfAThread];

  // A column past the end is the last one again. What a part does not use changes no bit.
  template <class Stored>
  __device__ OwnColumns(const Part<Stored>& part, int first) {
#pragma unroll
    for (int j = 0; j < kColumnsOfAThread; ++j) {
      const int i = min(first + j, part.width - 1);
      const bool has_mirror = part.mirror_source != nullptr, has_mean = part.mean != nullptr;
      plain[j] = part.column + i;
      mirrored[j] = part.column + (has_mirror ? part.mirror_source[i] : i);
      sign[j] = has_mirror ? part.mirror_sign[i] : 1.0f;
      mean[j] = has_mean ? part.mean[i] : 0.0f;
      scale[j] = has_mean ? part.scale[i] : 1.0f;
    }
  }

  // The product is not to be fused with the mean's subtraction: the CPU rounds both.
  __device__ float read(const float* row, bool is_mirrored, int j) const {
    return __fmul_rn(is_mirrored ? sign[j] : 1.0f, row[is_mirrored ? mirrored[j] : plain[j]]);
  }
};

// Threads beside each other have columns beside each other, part by part.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    unpack_rows(const Arguments* arguments, const __grid_constant__ Unpack<Stored> unpack) {
  wait_for_kernels_before();
  const unsigned own = blockIdx.x * kThreads + threadIdx.x;
  const int first_row = static_cast<int>(own / unpack.pairs) * kRowsOfAThread;
  const unsigned pair = own % unpack.pairs;
  if (first_row >= unpack.rows) return;
  int p = 0;
#pragma unroll
  for (int i = 1; i < kMaxUnpackParts; ++i) p += pair >= unpack.first_pair[i] ? 1 : 0;
  const Part<Stored>& part = unpack.parts[p];
  const int first = static_cast<int>(pair - unpack.first_pair[p]) * kColumnsOfAThread;
  const OwnColumns columns(part, first);
  const float* const rows = arguments->rows;
  const u64 row_stride = arguments->row_stride;
  float x[kRowsOfAThread][kColumnsOfAThread];
#pragma unroll
  for (int i = 0; i < kRowsOfAThread; ++i) {
    const int r = min(first_row + i, unpack.rows - 1);
    const bool is_mirrored = r >= unpack.source_rows;
    const float* const row = rows + (is_mirrored ? r - unpack.source_rows : r) * row_stride;
#pragma unroll
    for (int j = 0; j < kColumnsOfAThread; ++j) x[i][j] = columns.read(row, is_mirrored, j);
  }
#pragma unroll
  for (int i = 0; i < kRowsOfAThread; ++i) {
    const int r = first_row + i;
    if (r >= unpack.rows) return;
#pragma unroll
    for (int j = 0; j < kColumnsOfAThread; ++j) {
      x[i][j] = (x[i][j] - columns.mean[j]) * columns.scale[j];
    }
    Stored* const target = part.target + static_cast<u64>(r) * part.target_stride + first;
    const auto pack = packed<Stored, kColumnsOfAThread>(x[i]);
    if (part.takes_pairs && first + kColumnsOfAThread <= part.width) {
      *reinterpret_cast<Packed<Stored, kColumnsOfAThread>*>(target) = pack;
    } else {
#pragma unroll
      for (int j = 0; j < kColumnsOfAThread; ++j) {
        if (first + j < part.width) target[j] = pack.values[j];
      }
    }
  }
}

template <class Stored>
Part<Stored> part_of(const CudaFrame& frame, const UnpackPart& part) {
  Stored* const target = frame.at<Stored>(part.target);
  const bool takes_pairs = part.target_stride % kColumnsOfAThread == 0 &&
                           are_aligned({target}, kColumnsOfAThread * sizeof(Stored));
  return {part.column,
          part.width,
          target,
          part.target_stride,
          takes_pairs,
          frame.integers(part.mirror_source),
          frame.floats(part.mirror_sign),
          frame.floats(part.mean),
          frame.floats(part.scale)};
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const UnpackOp& op) {
  return with_stored(frame, op.parts.front().target, [&](auto* target) {
    using Stored = std::remove_pointer_t<decltype(target)>;
    Unpack<Stored> unpack{};
    unpack.rows = op.rows;
    unpack.source_rows = op.source_rows;
    std::fill_n(unpack.first_pair, kMaxUnpackParts, UINT_MAX);
    for (size_t i = 0; i < op.parts.size(); ++i) {
      unpack.parts[i] = part_of<Stored>(frame, op.parts[i]);
      unpack.first_pair[i] = unpack.pairs;
      unpack.pairs += blocks_for(op.parts[i].width, kColumnsOfAThread);
    }
    const u64 threads = static_cast<u64>(blocks_for(op.rows, kRowsOfAThread)) * unpack.pairs;
    return launch_kernel(frame.stream, blocks_for(threads, kThreads), kThreads, 0,
                         unpack_rows<Stored>, frame.arguments, unpack);
  });
}

}  // namespace millrace
