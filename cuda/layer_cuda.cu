// Dense layers beside their products: a warp, or half of one, is the team of one row of one group
// and keeps it in registers, so that a row passes through memory once; the next one is on its way
// meanwhile. The group's parameters wait in shared memory.
// Gradients of the parameters add up in three steps of fixed order: each team over its rows, the
// teams of a block, then the blocks. (A block of three warps per row was measured, and slower.)
#include <algorithm>
#include <type_traits>

#include "chunk_sums_cuda.cuh"
#include "dense_layer_body.h"
#include "joined_layer.cuh"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "row_spread.cuh"
#include "stored.cuh"

namespace millrace {
namespace {

constexpr int kColumnWarps = 1536;  // of a launch
// Of a backward pass, by a lane's columns: sums leave registers for few, and where there are none,
// few columns leave them for many.
constexpr int kMany = 12, kManyWarps = 1584, kMost = 16, kMostWarps = 1056;
constexpr int kWarpsWithoutSums = 3168;
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

// A lane's columns of a vector in shared memory, read where they are used, a pack at a time: in
// registers they would leave room for few warps.
template <class Row>
class SharedColumns {
 public:
  __device__ explicit SharedColumns(const float* vector)
      : vector_(vector + typename Row::Team().lane() * Row::kVector) {}

  // In the order of `own`.
  __device__ float operator[](int own) const {
    if (own % Row::kVector == 0) {
      pack_ = *reinterpret_cast<const Pack*>(vector_ + own * Row::kLanes);
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
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kRowThreads) {
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
__global__ void __launch_bounds__(kRowThreads) layer_forward(const Layer<Stored> layer) {
  wait_for_kernels_before();
  using Own = typename Row::template Own<Stored>;
  extern __shared__ float4 shared[];
  const typename Row::Team team;
  const int width = Row::width(layer.width);
  const TeamRows<Row> rows(layer.rows, layer.rows_of_a_chunk);
  Own next;
  const auto read = [&](int first) {
    next.read(layer.linear + layer.first_of(rows.row(first)), width);
  };
  if (rows.begin < rows.end) read(rows.begin);
  const SharedParameters<Row> parameters =
      share_parameters<Row>(layer, reinterpret_cast<float*>(shared), width);
  for (int first = rows.begin; first < rows.end; first += Row::kTeams) {
    float row[Row::kOwn];
    next.unpack(row);
    if (first + Row::kTeams < rows.end) read(first + Row::kTeams);
    forget_shared();
    LayerNorm norm;
    if constexpr (kIsRough<Stored>) {
      norm = layer_forward_row_rough<Row::kOwn, Row::kVector>(team, parameters, row, width);
    } else {
      norm = layer_forward_row<Row::kOwn, Row::kVector>(team, parameters, row, width);
    }
    if (!rows.has_row(first)) continue;
    const int r = rows.row(first);
    Own::write(row, layer.output + layer.first_of(r), width);
    if (!team.leads()) continue;
    layer.mean[layer.row_of(r)] = norm.mean;
    layer.inverse_deviation[layer.row_of(r)] = norm.inverse_deviation;
  }
}

// Block (chunk, group). With sums: partial[chunk][gain, shift, bias][group][column].
template <class Row, class Stored, bool kHasSums>
__global__ void __launch_bounds__(kRowThreads)
    layer_backward(const Layer<Stored> layer, float* partial) {
  wait_for_kernels_before();
  using Own = typename Row::template Own<Stored>;
  extern __shared__ float4 shared[];
  float* const room = reinterpret_cast<float*>(shared);
  const typename Row::Team team;
  const int width = Row::width(layer.width);
  LayerSums<Row::kOwn> sums;
  const TeamRows<Row> rows(layer.rows, layer.rows_of_a_chunk);
  Own next_linear, next_gradient;
  LayerNorm next_norm{};
  const auto read = [&](int first) {
    const int row = rows.row(first);
    next_linear.read(layer.linear + layer.first_of(row), width);
    next_gradient.read(layer.gradient + layer.first_of(row), width);
    next_norm = {layer.mean[layer.row_of(row)], layer.inverse_deviation[layer.row_of(row)]};
  };
  if (rows.begin < rows.end) read(rows.begin);
  const SharedParameters<Row> parameters = share_parameters<Row>(layer, room, width);
  for (int first = rows.begin; first < rows.end; first += Row::kTeams) {
    float linear[Row::kOwn], gradient[Row::kOwn];
    next_linear.unpack(linear);
    next_gradient.unpack(gradient);
    const LayerNorm norm = next_norm;
    const bool has_row = rows.has_row(first);
    if (!has_row) forget(gradient);
    if (first + Row::kTeams < rows.end) read(first + Row::kTeams);
    forget_shared();
    if constexpr (kIsRough<Stored>) {
      layer_backward_row_rough<kHasSums, Row::kOwn, Row::kVector>(team, parameters, norm, linear,
                                                                  gradient, width, sums);
    } else {
      layer_backward_row<kHasSums, Row::kOwn, Row::kVector>(team, parameters, norm, linear,
                                                            gradient, width, sums);
    }
    if (has_row) Own::write(gradient, layer.gradient + layer.first_of(rows.row(first)), width);
  }
  if (!kHasSums) return;
  const u64 all = static_cast<u64>(layer.groups) * width;
  partial += blockIdx.x * kSums * all + static_cast<u64>(blockIdx.y) * width;
  add_teams<Row>(sums.gain, kShare<Stored>, room, width, partial);
  add_teams<Row>(sums.shift, kShare<Stored>, room, width, partial + all);
  add_teams<Row>(sums.bias, 1.0f, room, width, partial + 2 * all);
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

Chunks chunks_of(const ColumnSumOp& op) {
  const unsigned blocks = blocks_for(static_cast<u64>(op.width), kSumThreads);
  return row_chunks(op.rows, static_cast<int>(blocks) * (kSumThreads / kWarp), kColumnWarps);
}

Chunks forward_chunks(const LayerForwardOp& op) {
  return row_chunks(op.rows, op.groups * kRowWarps, kForwardWarps);
}

Chunks backward_chunks(const LayerBackwardOp& op) {
  int warps = kBackwardWarps;
  with_spread(op.width, [&](auto row) {
    constexpr int kOwn = decltype(row)::kOwn;
    if (!op.bias_gradient.used()) {
      warps = kOwn > kMost ? kBackwardWarps : kWarpsWithoutSums;
    } else {
      warps = kOwn > kMost ? kMostWarps : kOwn > kMany ? kManyWarps : kBackwardWarps;
    }
    return cudaSuccess;
  });
  return row_chunks(op.rows, op.groups * kRowWarps, warps);
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

cudaError_t launch_layer(const CudaFrame& frame, const LayerForwardOp& op) {
  const Chunks chunks = forward_chunks(op);
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  const size_t shared_bytes = static_cast<size_t>(kParameterVectors * op.width) * sizeof(float);
  return with_stored(frame, op.output, [&](auto* output) {
    using Stored = std::remove_pointer_t<decltype(output)>;
    const Layer<Stored> layer =
        layer_of<LayerForwardOp, Stored>(frame, op, chunks.rows_of_each, output, nullptr);
    return with_spread(op.width, [&](auto row) {
      return launch_kernel(frame.stream, grid, kRowThreads, shared_bytes,
                           layer_forward<decltype(row), Stored>, layer);
    });
  });
}

}  // namespace

u64 scratch_floats(const DenseForwardOp& op) { return scratch_floats(op.product); }

u64 scratch_floats(const LayerBackwardOp& op) {
  if (!op.bias_gradient.used()) return 0;
  return static_cast<u64>(backward_chunks(op).count) * kSums * op.groups * op.width;
}

u64 scratch_floats(const ColumnSumOp& op) {
  return static_cast<u64>(chunks_of(op).count) * op.width;
}

cudaError_t launch_op(const CudaFrame& frame, const DenseForwardOp& op) {
  if (frame.joins_layers) {
    const cudaError_t code = launch_joined_layer(frame, op);
    if (code != cudaErrorNotSupported) return code;
  }
  const cudaError_t code = launch_op(frame, op.product);
  return code != cudaSuccess ? code : launch_layer(frame, op.layer);
}

cudaError_t launch_op(const CudaFrame& frame, const LayerBackwardOp& op) {
  const Chunks chunks = backward_chunks(op);
  const bool has_sums = op.bias_gradient.used();
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  const cudaError_t code = with_stored(frame, op.gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    const Layer<Stored> layer =
        layer_of<LayerBackwardOp, Stored>(frame, op, chunks.rows_of_each, nullptr, gradient);
    return with_spread(op.width, [&](auto row) {
      using Row = decltype(row);
      const size_t shared_bytes =
          static_cast<size_t>(std::max(kParameterVectors, Row::kTeams) * op.width) * sizeof(float);
      return has_sums ? launch_kernel(frame.stream, grid, kRowThreads, shared_bytes,
                                      layer_backward<Row, Stored, true>, layer, frame.scratch)
                      : launch_kernel(frame.stream, grid, kRowThreads, shared_bytes,
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
