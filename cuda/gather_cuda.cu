#include <cstdint>

#include "gather_cuda.cuh"

namespace millrace {
namespace {

constexpr u32 kWarp = 32;
constexpr u32 kThreads = 128;  // small blocks spread a batch of 2,048 rows evenly
constexpr u64 kRowsOfABlock = kThreads / kWarp;
constexpr int kLoads = 4;  // in flight per thread: what hides the latency of a row's first byte
constexpr int kFloatLoads = 8;

// One warp moves one row. Every lane draws the row's index itself: cheaper than telling the others.
template <class Piece>
__global__ void __launch_bounds__(kThreads)
    gather_rows(const Gather gather, const u64 pieces_of_a_row) {
  const u64 sample = static_cast<u64>(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
  if (sample >= gather.count) return;
  const u64 row = gather_row(gather, sample) % gather.capacity_rows;
  const Piece* __restrict__ from =
      reinterpret_cast<const Piece*>(gather.ring) + row * pieces_of_a_row;
  Piece* __restrict__ to = reinterpret_cast<Piece*>(gather.batch) + sample * pieces_of_a_row;
  for (u64 first = threadIdx.x % kWarp; first < pieces_of_a_row; first += kLoads * kWarp) {
    Piece pieces[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (first + i * kWarp < pieces_of_a_row) pieces[i] = from[first + i * kWarp];
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (first + i * kWarp < pieces_of_a_row) to[first + i * kWarp] = pieces[i];
    }
  }
}

// The column of the ring's row that belongs at column `to` of the batch.
__device__ u32 source_column(const BatchColumns& columns, u32 to) {
  u32 from = to;
#pragma unroll
  for (u32 s = 0; s < kMaxColumnSegments; ++s) {
    const ColumnSegment& segment = columns.segments[s];
    if (s < columns.segment_count && to >= segment.to) from = segment.from + (to - segment.to);
  }
  return from;
}

// The same with the columns in another order: four bytes at a time, as parts of rows have no
// alignment of their own. Reads of a warp are contiguous but at the seams.
__global__ void __launch_bounds__(kThreads) gather_columns(const Gather gather) {
  const u64 sample = static_cast<u64>(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
  if (sample >= gather.count) return;
  const u64 row = gather_row(gather, sample) % gather.capacity_rows;
  const float* __restrict__ from = gather.ring + row * gather.row_stride;
  float* __restrict__ to = gather.batch + sample * gather.columns.stride;
  const u32 width = gather.columns.width();
  for (u32 first = threadIdx.x % kWarp; first < width; first += kFloatLoads * kWarp) {
    float values[kFloatLoads];
#pragma unroll
    for (int i = 0; i < kFloatLoads; ++i) {
      const u32 column = first + i * kWarp;
      if (column < width) values[i] = from[source_column(gather.columns, column)];
    }
#pragma unroll
    for (int i = 0; i < kFloatLoads; ++i) {
      if (first + i * kWarp < width) to[first + i * kWarp] = values[i];
    }
  }
}

template <class... Parameters, class... Arguments>
cudaError_t launch(cudaStream_t stream, u64 count, void (*kernel)(Parameters...),
                   const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<u32>((count + kRowsOfABlock - 1) / kRowsOfABlock));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <class Piece>
cudaError_t launch_rows(cudaStream_t stream, const Gather& gather) {
  const u64 pieces_of_a_row = gather.row_stride * sizeof(float) / sizeof(Piece);
  return launch(stream, gather.count, gather_rows<Piece>, gather, pieces_of_a_row);
}

bool is_aligned(const Gather& gather) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(gather.batch) |
                         reinterpret_cast<uintptr_t>(gather.ring) |
                         gather.row_stride * sizeof(float);
  return bits % sizeof(float4) == 0;
}

}  // namespace

cudaError_t launch_gather(cudaStream_t stream, const Gather& gather) {
  if (gather.count == 0) return cudaSuccess;
  // Row numbers grow for ever. These name the same places of the ring and keep the division of the
  // kernel in 32 bits, where it is fast.
  Gather near = gather;
  near.low = gather.low % gather.capacity_rows;
  near.high = near.low + (gather.high - gather.low);
  if (gather.columns.segment_count > 0) return launch(stream, gather.count, gather_columns, near);
  return is_aligned(gather) ? launch_rows<float4>(stream, near) : launch_rows<float>(stream, near);
}

}  // namespace millrace
