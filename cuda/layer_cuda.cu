// Dense layers beside their products: one warp, or a block of a few, is the team of one row of one
// group and keeps it in registers, so that a row passes through memory once; the next one is on its
// way meanwhile. Gradients of the parameters add up in three steps of fixed order: each team over
// its rows, the teams of a block, then the blocks.
#include <algorithm>

#include "dense_layer_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

// Of a launch: so many that a large card's multiprocessors have enough to do while they wait for
// memory; but the backward pass writes sums per block.
constexpr int kForwardWarps = 4096, kBackwardWarps = 2048, kColumnWarps = 1536;
constexpr int kLeastRows = 8;  // of a block; fewer would not pay for its parameters
constexpr int kSums = 3;       // gain, shift, bias
constexpr int kSumThreads = 256;
constexpr int kAddThreads = 1024;
constexpr int kAddColumns = kWarp;  // of a block that adds chunks up
constexpr int kAddLanes = kAddThreads / kAddColumns;

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

// The team of a row as a whole block: two rooms take turns, so that one wait per sum is enough.
template <int kWarps>
class BlockTeam {
 public:
  static constexpr int kTeams = 1;  // of a block
  using Rooms = float[2][kWarps];

  __device__ explicit BlockTeam(Rooms& rooms) : rooms_(rooms) {}
  __device__ static int index() { return 0; }  // among the teams of a block
  __device__ int lane() const { return static_cast<int>(threadIdx.x); }
  __device__ static constexpr int size() { return kWarps * kWarp; }
  __device__ bool leads() const { return lane() == 0; }
  __device__ float sum(float value) const {
    value = warp_sum(value);
    float* room = rooms_[turn_];
    turn_ = 1 - turn_;
    if (lane() % kWarp == 0) room[lane() / kWarp] = value;
    __syncthreads();
    float all = room[0];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) all += room[warp];
    return all;
  }

 private:
  Rooms& rooms_;
  mutable int turn_ = 0;
};

template <>
class BlockTeam<1> : public WarpTeam {
 public:
  static constexpr int kTeams = 4;
  using Rooms = float[1];

  __device__ explicit BlockTeam(Rooms&) {}
  __device__ static int index() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static constexpr int size() { return kWarp; }
};

// How a row is spread over its team. kIsExact: it fills the lanes' columns, in whole vectors.
template <int kWarps, int kOwnColumns, int kVectorColumns, bool kIsExactFit>
struct Spread {
  using Team = BlockTeam<kWarps>;
  static constexpr int kOwn = kOwnColumns, kVector = kVectorColumns;
  static constexpr bool kIsExact = kIsExactFit;
  static constexpr int kThreads = Team::kTeams * kWarps * kWarp;
  __host__ __device__ static constexpr int width(int width) {
    return kIsExact ? kOwn * kWarps * kWarp : width;
  }
};

template <class Row>
__device__ LayerParameters<Row::kOwn> own_parameters(const typename Row::Team& team,
                                                     const float* bias, const float* gain,
                                                     const float* shift, int width) {
  LayerParameters<Row::kOwn> parameters;
  read_own_columns<Row::kOwn, Row::kVector>(team, bias, width, parameters.bias);
  read_own_columns<Row::kOwn, Row::kVector>(team, gain, width, parameters.gain);
  read_own_columns<Row::kOwn, Row::kVector>(team, shift, width, parameters.shift);
  return parameters;
}

// Block (chunk, group).
template <class Row, class Stored>
__global__ void __launch_bounds__(Row::kThreads) layer_forward(const Layer<Stored> layer) {
  using Team = typename Row::Team;
  using Own = OwnRow<Stored, Row::kOwn, Row::kVector>;
  __shared__ typename Team::Rooms rooms;
  const Team team(rooms);
  const int width = Row::width(layer.width);
  const u64 first = static_cast<u64>(blockIdx.y) * width;
  const LayerParameters<Row::kOwn> parameters =
      own_parameters<Row>(team, layer.bias + first, layer.gain + first, layer.shift + first, width);
  const int begin = static_cast<int>(blockIdx.x) * layer.rows_of_a_chunk;
  const int end = min(begin + layer.rows_of_a_chunk, layer.rows);
  int r = begin + team.index();
  Own next;
  if (r < end) next.read(team, layer.linear + layer.first_of(r), width);
  for (; r < end; r += Team::kTeams) {
    float row[Row::kOwn];
    next.unpack(row);
    const int after = r + Team::kTeams;
    if (after < end) next.read(team, layer.linear + layer.first_of(after), width);
    const LayerNorm norm = layer_forward_row<Row::kOwn, Row::kVector>(team, parameters, row, width);
    Own::write(team, row, layer.output + layer.first_of(r), width);
    if (!team.leads()) continue;
    layer.mean[layer.row_of(r)] = norm.mean;
    layer.inverse_deviation[layer.row_of(r)] = norm.inverse_deviation;
  }
}

// Of one kind of sums, over the block's teams; `room` holds a row per team.
template <class Row>
__device__ void add_teams(const typename Row::Team& team, const float (&own)[Row::kOwn],
                          float* room, int width, float* sums) {
  using Team = typename Row::Team;
  float* const row = Team::kTeams == 1 ? sums : room + team.index() * width;
  if (Team::kTeams > 1) __syncthreads();  // the room is free
  each_own_column<Row::kOwn, Row::kVector>(team, width,
                                           [&](int at, int column) { row[column] = own[at]; });
  if (Team::kTeams == 1) return;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < width; i += Row::kThreads) {
    float sum = room[i];
    for (int other = 1; other < Team::kTeams; ++other) sum += room[other * width + i];
    sums[i] = sum;
  }
}

// Block (chunk, group). With sums: partial[chunk][gain, shift, bias][group][column]. Shared memory
// holds the parameters, which would leave few registers for the rows, and then the teams' sums.
template <class Row, class Stored, bool kHasSums>
__global__ void __launch_bounds__(Row::kThreads)
    layer_backward(const Layer<Stored> layer, float* partial) {
  using Team = typename Row::Team;
  using Own = OwnRow<Stored, Row::kOwn, Row::kVector>;
  extern __shared__ float shared[];
  __shared__ typename Team::Rooms rooms;
  const Team team(rooms);
  const int width = Row::width(layer.width);
  const u64 first = static_cast<u64>(blockIdx.y) * width;
  float *const bias = shared, *const gain = bias + width, *const shift = gain + width;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += Row::kThreads) {
    bias[i] = layer.bias[first + i];
    gain[i] = layer.gain[first + i];
    shift[i] = layer.shift[first + i];
  }
  __syncthreads();
  LayerSums<Row::kOwn> sums;
  const int begin = static_cast<int>(blockIdx.x) * layer.rows_of_a_chunk;
  const int end = min(begin + layer.rows_of_a_chunk, layer.rows);
  Own next_linear, next_gradient;
  LayerNorm next_norm{};
  const auto read = [&](int row) {
    next_linear.read(team, layer.linear + layer.first_of(row), width);
    next_gradient.read(team, layer.gradient + layer.first_of(row), width);
    next_norm = {layer.mean[layer.row_of(row)], layer.inverse_deviation[layer.row_of(row)]};
  };
  int r = begin + team.index();
  if (r < end) read(r);
  for (; r < end; r += Team::kTeams) {
    asm volatile("" ::: "memory");  // parameters are read again for each row, not kept
    float linear[Row::kOwn], gradient[Row::kOwn];
    next_linear.unpack(linear);
    next_gradient.unpack(gradient);
    const LayerNorm norm = next_norm;
    if (r + Team::kTeams < end) read(r + Team::kTeams);
    const LayerParameters<Row::kOwn> parameters =
        own_parameters<Row>(team, bias, gain, shift, width);
    layer_backward_row<kHasSums, Row::kOwn, Row::kVector>(team, parameters, norm, linear, gradient,
                                                          width, sums);
    Own::write(team, gradient, layer.gradient + layer.first_of(r), width);
  }
  if (!kHasSums) return;
  const u64 all = static_cast<u64>(layer.groups) * width;
  partial += blockIdx.x * kSums * all + first;
  add_teams<Row>(team, sums.gain, shared, width, partial);
  add_teams<Row>(team, sums.shift, shared, width, partial + all);
  add_teams<Row>(team, sums.bias, shared, width, partial + 2 * all);
}

// sums[which][i] = sum over chunks of partial[chunk][which][i]; `which` is the block's row. A warp
// reads kAddColumns columns of every kAddLanes-th chunk.
struct ChunkSums {
  const float* partial;
  u64 width;
  int chunks;
  float* sums[kSums];
};

__global__ void __launch_bounds__(kAddThreads) add_chunks(const __grid_constant__ ChunkSums op) {
  __shared__ float room[kAddLanes][kAddColumns];
  const int lane = static_cast<int>(threadIdx.x) / kAddColumns;
  const int column = static_cast<int>(threadIdx.x) % kAddColumns;
  const u64 i = static_cast<u64>(blockIdx.x) * kAddColumns + column;
  const u64 distance = gridDim.y * op.width;
  float sum = 0.0f;
  if (i < op.width) {
    const float* partial = op.partial + blockIdx.y * op.width + i;
#pragma unroll 8
    for (int chunk = lane; chunk < op.chunks; chunk += kAddLanes) sum += partial[chunk * distance];
  }
  room[lane][column] = sum;
  __syncthreads();
  if (lane != 0 || i >= op.width) return;
  for (int other = 1; other < kAddLanes; ++other) sum += room[other][column];
  op.sums[blockIdx.y][i] = sum;
}

// Block (columns, chunk): partial[chunk][column].
template <class Stored>
__global__ void __launch_bounds__(kSumThreads)
    sum_columns(const Stored* values, int rows, int rows_of_a_chunk, u64 width, float* partial) {
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

// Calls with(spread) for rows of this width: exact ones for the widths of common networks.
template <class With>
auto with_spread(int width, const With& with) {
  switch (width) {
    case 24 * kWarp:
      return with(Spread<3, 8, 8, true>());
    case 16 * kWarp:
      return with(Spread<2, 8, 8, true>());
    case 12 * kWarp:
      return with(Spread<1, 12, 4, true>());
    case 8 * kWarp:
      return with(Spread<1, 8, 8, true>());
    case 6 * kWarp:
      return with(Spread<1, 6, 2, true>());
    case 4 * kWarp:
      return with(Spread<1, 4, 4, true>());
    default:
      break;
  }
  if (width <= 8 * kWarp) return with(Spread<1, 8, 1, false>());
  if (width <= 32 * kWarp) return with(Spread<4, 8, 1, false>());
  return with(Spread<8, 16, 1, false>());
}

constexpr int kWidest = 128 * kWarp;

Chunks backward_chunks(const LayerBackwardOp& op) {
  return with_spread(op.width, [&](auto row) {
    return chunks_of(op.rows, op.groups * decltype(row)::kThreads / kWarp, kBackwardWarps);
  });
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

cudaError_t launch_add_chunks(const CudaFrame& frame, int count, const ChunkSums& sums) {
  return launch_kernel(frame.stream,
                       dim3(blocks_for(sums.width, kAddColumns), static_cast<unsigned>(count)),
                       kAddThreads, 0, add_chunks, sums);
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
  if (op.width > kWidest) return cudaErrorInvalidValue;
  return with_stored(frame, op.output, [&](auto* output) {
    using Stored = std::remove_pointer_t<decltype(output)>;
    return with_spread(op.width, [&](auto row) {
      using Row = decltype(row);
      const Chunks chunks = chunks_of(op.rows, op.groups * Row::kThreads / kWarp, kForwardWarps);
      const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
      return launch_kernel(
          frame.stream, grid, Row::kThreads, 0, layer_forward<Row, Stored>,
          layer_of<LayerForwardOp, Stored>(frame, op, chunks.rows_of_each, output, nullptr));
    });
  });
}

cudaError_t launch_op(const CudaFrame& frame, const LayerBackwardOp& op) {
  if (op.width > kWidest) return cudaErrorInvalidValue;
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
          static_cast<size_t>(std::max(kSums, Row::Team::kTeams)) * op.width * sizeof(float);
      return has_sums ? launch_kernel(frame.stream, grid, Row::kThreads, shared_bytes,
                                      layer_backward<Row, Stored, true>, layer, frame.scratch)
                      : launch_kernel(frame.stream, grid, Row::kThreads, shared_bytes,
                                      layer_backward<Row, Stored, false>, layer, nullptr);
    });
  });
  if (code != cudaSuccess || !has_sums) return code;
  return launch_add_chunks(frame, kSums,
                           {frame.scratch,
                            static_cast<u64>(op.groups) * op.width,
                            chunks.count,
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
  return launch_add_chunks(
      frame, 1, {frame.scratch, width, chunks.count, {frame.floats(op.sums), nullptr, nullptr}});
}

}  // namespace millrace
