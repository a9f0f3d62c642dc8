// Dense layers beside their products: a warp is the team of one row of one group and keeps it in
// registers, so that a row passes through memory once; the next one is on its way meanwhile. The
// group's parameters wait in shared memory.
// Gradients of the parameters add up in three steps of fixed order: each warp over its rows, the
// warps of a block, then the blocks. (A block of three warps per row was measured, and slower.)
#include <algorithm>
#include <type_traits>

#include "chunk_sums_cuda.cuh"
#include "dense_layer_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

// Of a launch: as many as a large card's multiprocessors hold at once, since those behind them
// would begin anew; of a backward pass with sums, whose registers leave room for few, by width.
constexpr int kForwardWarps = 4096, kBackwardWarps = 2112, kColumnWarps = 1536;
constexpr int kWide = 384, kWideWarps = 1584, kWidest = 512, kWidestWarps = 1056;
constexpr int kLeastRows = 8;   // of a block; fewer would not pay for its parameters
constexpr int kLayerWarps = 4;  // of a block
constexpr int kLayerThreads = kLayerWarps * kWarp;
constexpr int kSums = 3;  // gain, shift, bias
constexpr int kSumThreads = 256;

template <class Stored>
struct Layer {
  int rows, groups, width, rows_of_a_chunk;
  const Stored* linear;
  const float *bias, *gain, *shift;
  float *mean, *inverse_deviation;
  Stored* output;    // forward
  Stored* gradient;  // backward

  // Of row r of the block's group.
  __device__ u64 row_of(int r) const { return static_cast<u64>(r) * groups + blockIdx.y; }
  __device__ u64 first_of(int r) const { return row_of(r) * width; }
};

// How a row is spread over a warp. kIsExact: it fills the lanes' columns, in whole vectors.
template <int kOwnColumns, int kVectorColumns, bool kIsExactFit>
struct Spread {
  static constexpr int kOwn = kOwnColumns, kVector = kVectorColumns;
  static constexpr bool kIsExact = kIsExactFit;
  __host__ __device__ static constexpr int width(int width) {
    return kIsExact ? kOwn * kWarp : width;
  }
};

// A lane's columns of a vector in shared memory, read where they are used, a pack at a time: in
// registers they would leave room for few warps.
template <class Row>
class SharedColumns {
 public:
  __device__ explicit SharedColumns(const float* vector)
      : vector_(vector + WarpTeam().lane() * Row::kVector) {}

  // In the order of `own`.
  __device__ float operator[](int own) const {
    if (own % Row::kVector == 0) {
      pack_ = *reinterpret_cast<const Pack*>(vector_ + own * kWarp);
    }
    return pack_.values[own % Row::kVector];
  }

 private:
  using Pack = Packed<float, Row::kVector>;
  const float* vector_;
  mutable Pack pack_;
};

template <class Row>
struct SharedParameters {
  SharedColumns<Row> bias, gain, shift;
};

constexpr int kParameterVectors = 3;

// Of gain and shift, what the row's functions want; and of their sums, what these leave.
template <class Stored>
constexpr float kShare = kIsRough<Stored> ? 0.5f : 1.0f;

// A group's parameters to shared memory; all threads of the block.
template <class Row, class Stored>
__device__ SharedParameters<Row> share_parameters(const Layer<Stored>& layer, float* shared,
                                                  int width) {
  const u64 first = static_cast<u64>(blockIdx.y) * width;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kLayerThreads) {
    shared[i] = layer.bias[first + i];
    shared[width + i] = kShare<Stored> * layer.gain[first + i];
    shared[2 * width + i] = kShare<Stored> * layer.shift[first + i];
  }
  __syncthreads();
  return {SharedColumns<Row>(shared), SharedColumns<Row>(shared + width),
          SharedColumns<Row>(shared + 2 * width)};
}

// Keeps the compiler from reading parameters once for all rows, into registers.
__device__ inline void forget_shared() { asm volatile("" ::: "memory"); }

// Block (chunk, group).
template <class Row, class Stored>
__global__ void __launch_bounds__(kLayerThreads) layer_forward(const Layer<Stored> layer) {
  wait_for_kernels_before();
  using Own = OwnRow<Stored, Row::kOwn, Row::kVector>;
  extern __shared__ float4 shared[];
  const WarpTeam team;
  const int width = Row::width(layer.width);
  const int begin = static_cast<int>(blockIdx.x) * layer.rows_of_a_chunk;
  const int end = min(begin + layer.rows_of_a_chunk, layer.rows);
  int r = begin + static_cast<int>(threadIdx.x) / kWarp;
  Own next;
  if (r < end) next.read(layer.linear + layer.first_of(r), width);
  const SharedParameters<Row> parameters =
      share_parameters<Row>(layer, reinterpret_cast<float*>(shared), width);
  for (; r < end; r += kLayerWarps) {
    float row[Row::kOwn];
    next.unpack(row);
    const int after = r + kLayerWarps;
    if (after < end) next.read(layer.linear + layer.first_of(after), width);
    forget_shared();
    LayerNorm norm;
    if constexpr (kIsRough<Stored>) {
      norm = layer_forward_row_rough<Row::kOwn, Row::kVector>(team, parameters, row, width);
    } else {
      norm = layer_forward_row<Row::kOwn, Row::kVector>(team, parameters, row, width);
    }
    Own::write(row, layer.output + layer.first_of(r), width);
    if (!team.leads()) continue;
    layer.mean[layer.row_of(r)] = norm.mean;
    layer.inverse_deviation[layer.row_of(r)] = norm.inverse_deviation;
  }
}

// Of one kind of sums, over the block's warps, that share; `room` holds a row per warp.
template <class Row>
__device__ void add_warps(const float (&own)[Row::kOwn], float share, float* room, int width,
                          float* sums) {
  float* const row = room + static_cast<int>(threadIdx.x) / kWarp * width;
  __syncthreads();  // the room is free
  each_own_column<Row::kOwn, Row::kVector>(WarpTeam(), width,
                                           [&](int at, int column) { row[column] = own[at]; });
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kLayerThreads) {
    float sum = room[i];
    for (int other = 1; other < kLayerWarps; ++other) sum += room[other * width + i];
    sums[i] = share * sum;
  }
}

// Block (chunk, group). With sums: partial[chunk][gain, shift, bias][group][column].
template <class Row, class Stored, bool kHasSums>
__global__ void __launch_bounds__(kLayerThreads)
    layer_backward(const Layer<Stored> layer, float* partial) {
  wait_for_kernels_before();
  using Own = OwnRow<Stored, Row::kOwn, Row::kVector>;
  extern __shared__ float4 shared[];
  float* const room = reinterpret_cast<float*>(shared);
  const WarpTeam team;
  const int width = Row::width(layer.width);
  LayerSums<Row::kOwn> sums;
  const int begin = static_cast<int>(blockIdx.x) * layer.rows_of_a_chunk;
  const int end = min(begin + layer.rows_of_a_chunk, layer.rows);
  Own next_linear, next_gradient;
  LayerNorm next_norm{};
  const auto read = [&](int row) {
    next_linear.read(layer.linear + layer.first_of(row), width);
    next_gradient.read(layer.gradient + layer.first_of(row), width);
    next_norm = {layer.mean[layer.row_of(row)], layer.inverse_deviation[layer.row_of(row)]};
  };
  int r = begin + static_cast<int>(threadIdx.x) / kWarp;
  if (r < end) read(r);
  const SharedParameters<Row> parameters = share_parameters<Row>(layer, room, width);
  for (; r < end; r += kLayerWarps) {
    float linear[Row::kOwn], gradient[Row::kOwn];
    next_linear.unpack(linear);
    next_gradient.unpack(gradient);
    const LayerNorm norm = next_norm;
    if (r + kLayerWarps < end) read(r + kLayerWarps);
    forget_shared();
    if constexpr (kIsRough<Stored>) {
      layer_backward_row_rough<kHasSums, Row::kOwn, Row::kVector>(team, parameters, norm, linear,
                                                                  gradient, width, sums);
    } else {
      layer_backward_row<kHasSums, Row::kOwn, Row::kVector>(team, parameters, norm, linear,
                                                            gradient, width, sums);
    }
    Own::write(gradient, layer.gradient + layer.first_of(r), width);
  }
  if (!kHasSums) return;
  const u64 all = static_cast<u64>(layer.groups) * width;
  partial += blockIdx.x * kSums * all + static_cast<u64>(blockIdx.y) * width;
  add_warps<Row>(sums.gain, kShare<Stored>, room, width, partial);
  add_warps<Row>(sums.shift, kShare<Stored>, room, width, partial + all);
  add_warps<Row>(sums.bias, 1.0f, room, width, partial + 2 * all);
}

// Block (columns, chunk): partial[chunk][column].
template <class Stored>
__global__ void __launch_bounds__(kSumThreads)
    sum_columns(const Stored* values, int rows, int rows_of_a_chunk, u64 width, float* partial) {
  wait_for_kernels_before();
  const u64 i = static_cast<u64>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (i >= width) return;
  const int begin = static_cast<int>(blockIdx.y) * rows_of_a_chunk;
  const int end = min(begin + rows_of_a_chunk, rows);
  float sum = 0.0f;
#pragma unroll 8
  for (int r = begin; r < end; ++r) sum += to_float(values[r * width + i]);
  partial[blockIdx.y * width + i] = sum;
}

struct Chunks {
  int count, rows_of_each;
};

// For chunks of `warps`, over all groups, of a launch of about `wanted`.
Chunks chunks_of(int rows, int warps, int wanted) {
  const int most = std::max(wanted / warps, 1);
  const int rows_of_each = std::max((rows + most - 1) / most, kLeastRows);
  return {(rows + rows_of_each - 1) / rows_of_each, rows_of_each};
}

Chunks chunks_of(const ColumnSumOp& op) {
  const unsigned blocks = blocks_for(static_cast<u64>(op.width), kSumThreads);
  return chunks_of(op.rows, static_cast<int>(blocks) * (kSumThreads / kWarp), kColumnWarps);
}

// Calls launch(spread) for rows of this width: exact ones for the widths of common networks.
template <class Launch>
cudaError_t with_spread(int width, const Launch& launch) {
  switch (width) {
    case 24 * kWarp:
      return launch(Spread<24, 4, true>());
    case 16 * kWarp:
      return launch(Spread<16, 4, true>());
    case 12 * kWarp:
      return launch(Spread<12, 4, true>());
    case 8 * kWarp:
      return launch(Spread<8, 4, true>());
    case 6 * kWarp:
      return launch(Spread<6, 2, true>());
    case 4 * kWarp:
      return launch(Spread<4, 4, true>());
    default:
      break;
  }
  if (width <= 8 * kWarp) return launch(Spread<8, 1, false>());
  if (width <= 32 * kWarp) return launch(Spread<32, 1, false>());
  if (width <= 128 * kWarp) return launch(Spread<128, 1, false>());
  return cudaErrorInvalidValue;
}

Chunks forward_chunks(const LayerForwardOp& op) {
  return chunks_of(op.rows, op.groups * kLayerWarps, kForwardWarps);
}

Chunks backward_chunks(const LayerBackwardOp& op) {
  const bool has_sums = op.bias_gradient.used();
  const int warps = has_sums && op.width > kWidest ? kWidestWarps
                    : has_sums && op.width > kWide ? kWideWarps
                                                   : kBackwardWarps;
  return chunks_of(op.rows, op.groups * kLayerWarps, warps);
}

template <class LayerOp, class Stored>
Layer<Stored> layer_of(const CudaFrame& frame, const LayerOp& op, int rows_of_a_chunk,
                       Stored* output, Stored* gradient) {
  return {op.rows,
          op.groups,
          op.width,
          rows_of_a_chunk,
          frame.at<Stored>(op.linear),
          frame.floats(op.bias),
          frame.floats(op.gain),
          frame.floats(op.shift),
          frame.floats(op.mean),
          frame.floats(op.inverse_deviation),
          output,
          gradient};
}

}  // namespace

u64 scratch_floats(const LayerBackwardOp& op) {
  if (!op.bias_gradient.used()) return 0;
  return static_cast<u64>(backward_chunks(op).count) * kSums * op.groups * op.width;
}

u64 scratch_floats(const ColumnSumOp& op) {
  return static_cast<u64>(chunks_of(op).count) * op.width;
}

cudaError_t launch_op(const CudaFrame& frame, const LayerForwardOp& op) {
  const Chunks chunks = forward_chunks(op);
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  const size_t shared_bytes = static_cast<size_t>(kParameterVectors * op.width) * sizeof(float);
  return with_stored(frame, op.output, [&](auto* output) {
    using Stored = std::remove_pointer_t<decltype(output)>;
    const Layer<Stored> layer =
        layer_of<LayerForwardOp, Stored>(frame, op, chunks.rows_of_each, output, nullptr);
    return with_spread(op.width, [&](auto row) {
      return launch_kernel(frame.stream, grid, kLayerThreads, shared_bytes,
                           layer_forward<decltype(row), Stored>, layer);
    });
  });
}

cudaError_t launch_op(const CudaFrame& frame, const LayerBackwardOp& op) {
  const Chunks chunks = backward_chunks(op);
  const bool has_sums = op.bias_gradient.used();
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  const size_t shared_bytes =
      static_cast<size_t>(std::max(kParameterVectors, kLayerWarps) * op.width) * sizeof(float);
  const cudaError_t code = with_stored(frame, op.gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    const Layer<Stored> layer =
        layer_of<LayerBackwardOp, Stored>(frame, op, chunks.rows_of_each, nullptr, gradient);
    return with_spread(op.width, [&](auto row) {
      using Row = decltype(row);
      return has_sums ? launch_kernel(frame.stream, grid, kLayerThreads, shared_bytes,
                                      layer_backward<Row, Stored, true>, layer, frame.scratch)
                      : launch_kernel(frame.stream, grid, kLayerThreads, shared_bytes,
                                      layer_backward<Row, Stored, false>, layer, nullptr);
    });
  });
  if (code != cudaSuccess || !has_sums) return code;
  return launch_add_chunks(frame.stream,
                           {frame.scratch,
                            static_cast<u64>(op.groups) * op.width,
                            chunks.count,
                            kSums,
                            {frame.floats(op.gain_gradient), frame.floats(op.shift_gradient),
                             frame.floats(op.bias_gradient)}});
}

cudaError_t launch_op(const CudaFrame& frame, const ColumnSumOp& op) {
  const u64 width = static_cast<u64>(op.width);
  const Chunks chunks = chunks_of(op);
  const dim3 grid(blocks_for(width, kSumThreads), static_cast<unsigned>(chunks.count));
  const cudaError_t code = with_stored(frame, op.values, [&](auto* values) {
    using Stored = std::remove_pointer_t<decltype(values)>;
    return launch_kernel(frame.stream, grid, kSumThreads, 0, sum_columns<Stored>, values, op.rows,
                         chunks.rows_of_each, width, frame.scratch);
  });
  if (code != cudaSuccess) return code;
  return launch_add_chunks(frame.stream,
                           {frame.scratch, width, chunks.count, 1, {frame.floats(op.sums)}});
}

}  // namespace millrace
