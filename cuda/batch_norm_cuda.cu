// Batch normalisation: a thread reads a vector of columns of a row, eight threads a line of memory,
// a block some rows of them. What is summed over rows is summed in two steps of fixed order: each
// block over its rows, then the blocks; the second step is done by every block that needs the sums,
// which costs less than a launch.
#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "batch_norm_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kColumnThreads = 8;  // side by side, each with a vector of columns
constexpr int kThreads = 256;
constexpr int kLanes = kThreads / kColumnThreads;  // rows that a block reads at a time
constexpr int kWarps = kThreads / kWarp;
// As many as a large card's multiprocessors hold at once, four each: those behind them would begin
// anew, with the sums.
constexpr int kBlocksAtOnce = 4, kWantedBlocks = 528;
constexpr int kLeastRows = 4 * kLanes;  // of a block
constexpr int kMostChunks = kLanes;     // whose sums every block adds up again
constexpr int kSums = 2;
// Of a thread's columns, where addresses allow it: backward passes keep twice as much in registers,
// and few columns are shared by more blocks.
constexpr int kForwardBytes = 16, kForwardBytesOfFew = 8, kBackwardBytes = 8;
constexpr u64 kFewColumns = 1024;

template <class Stored>
struct Norm {
  int rows, groups, width;
  const Stored* input;
  u64 input_stride, input_distance;
  const float* affine;
  float *mean, *variance;
  int is_training, has_relu;
};

template <class Stored>
Norm<Stored> norm_of(const CudaFrame& frame, const BatchNorm& norm) {
  return {norm.rows,
          norm.groups,
          norm.width,
          frame.at<Stored>(norm.input),
          static_cast<u64>(norm.input_stride),
          norm.input_distance,
          frame.floats(norm.affine),
          frame.floats(norm.mean),
          frame.floats(norm.variance),
          norm.is_training ? 1 : 0,
          norm.has_relu ? 1 : 0};
}

// A thread's place: kVector columns of one group, and which of the block's rows it begins at.
template <class Stored, int kVector>
struct Place {
  using Pack = Packed<Stored, kVector>;
  int column;  // the first, of groups * width
  int lane;
  int begin, end;  // the block's rows
  const Stored* input;
  u64 input_stride;
  u64 all;  // columns

  __device__ Place(const Norm<Stored>& norm, int rows_of_a_block)
      : column((static_cast<int>(blockIdx.x) * kColumnThreads +
                static_cast<int>(threadIdx.x) % kColumnThreads) *
               kVector),
        lane(static_cast<int>(threadIdx.x) / kColumnThreads),
        begin(static_cast<int>(blockIdx.y) * rows_of_a_block),
        end(min(begin + rows_of_a_block, norm.rows)),
        input_stride(norm.input_stride),
        all(static_cast<u64>(norm.groups) * norm.width) {
    const int group = column / norm.width;
    input = norm.input + group * norm.input_distance + column % norm.width;
  }
  __device__ bool is_inside() const { return static_cast<u64>(column) < all; }
  __device__ Pack x(int row) const {
    return *reinterpret_cast<const Pack*>(input + row * input_stride);
  }
  // Of a matrix [row][group][column].
  __device__ Pack of(const Stored* values, int row) const {
    return *reinterpret_cast<const Pack*>(values + row * all + column);
  }
  __device__ void put(Stored* values, int row, const Pack& pack) const {
    *reinterpret_cast<Pack*>(values + row * all + column) = pack;
  }
};

template <int kVector>
struct Columns {
  BatchNormColumn of[kVector];
};

template <class Stored, int kVector>
__device__ Columns<kVector> columns_of(const Norm<Stored>& norm,
                                       const Place<Stored, kVector>& place,
                                       const float (&mean)[kVector],
                                       const float (&variance)[kVector]) {
  const int group = place.column / norm.width;
  const float* gain = norm.affine + static_cast<u64>(group) * norm.width + place.column;
  Columns<kVector> columns;
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    columns.of[i] = batch_norm_column(mean[i], variance[i], gain[i], gain[norm.width + i]);
  }
  return columns;
}

template <class Stored, int kVector>
__device__ Columns<kVector> given_columns(const Norm<Stored>& norm,
                                          const Place<Stored, kVector>& place) {
  float mean[kVector], variance[kVector];
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    mean[i] = place.is_inside() ? norm.mean[place.column + i] : 0.0f;
    variance[i] = place.is_inside() ? norm.variance[place.column + i] : 0.0f;
  }
  if (!place.is_inside()) return {};
  return columns_of(norm, place, mean, variance);
}

// Two sums of each of a thread's columns.
template <int kVector>
struct ColumnSums {
  float of[kSums][kVector] = {};
};

// Of each column over the block's lanes, to all of them.
template <int kVector>
__device__ ColumnSums<kVector> sum_over_lanes(ColumnSums<kVector> own) {
  constexpr int kTile = kColumnThreads * kVector;
  __shared__ float room[kSums][kWarps][kTile];
  __shared__ float totals[kSums][kTile];
  const int first = static_cast<int>(threadIdx.x) % kColumnThreads * kVector;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int which = 0; which < kSums; ++which) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      float sum = own.of[which][i];
#pragma unroll
      for (int distance = kWarp / 2; distance >= kColumnThreads; distance /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, distance);
      }
      if (threadIdx.x % kWarp < kColumnThreads) room[which][warp][first + i] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x < kSums * kTile) {
    const int which = static_cast<int>(threadIdx.x) / kTile;
    const int at = static_cast<int>(threadIdx.x) % kTile;
    float sum = 0.0f;
#pragma unroll
    for (int other = 0; other < kWarps; ++other) sum += room[which][other][at];
    totals[which][at] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int which = 0; which < kSums; ++which) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) own.of[which][i] = totals[which][first + i];
  }
  return own;
}

// partial[chunk][which][column] of the block's rows; add(sums, row) adds a row's.
template <class Stored, int kVector, class Add>
__device__ void leave_sums(const Place<Stored, kVector>& place, float* partial, const Add& add) {
  ColumnSums<kVector> own;
  if (place.is_inside()) {
#pragma unroll 4
    for (int r = place.begin + place.lane; r < place.end; r += kLanes) add(own, r);
  }
  const ColumnSums<kVector> sums = sum_over_lanes(own);
  if (place.lane != 0 || !place.is_inside()) return;
  partial += static_cast<u64>(blockIdx.y) * kSums * place.all + place.column;
#pragma unroll
  for (int which = 0; which < kSums; ++which) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) partial[which * place.all + i] = sums.of[which][i];
  }
}

template <class Stored, int kVector>
__device__ ColumnSums<kVector> add_chunks(const Place<Stored, kVector>& place, const float* partial,
                                          int chunks) {
  ColumnSums<kVector> own;
  if (place.is_inside() && place.lane < chunks) {
    const float* from = partial + static_cast<u64>(place.lane) * kSums * place.all + place.column;
#pragma unroll
    for (int which = 0; which < kSums; ++which) {
      const auto pack = *reinterpret_cast<const Packed<float, kVector>*>(from + which * place.all);
#pragma unroll
      for (int i = 0; i < kVector; ++i) own.of[which][i] = pack.values[i];
    }
  }
  return sum_over_lanes(own);
}

// Sums of distances from the first row, and of their squares: no difference of large numbers.
template <class Stored, int kVector>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    sum_rows(const Norm<Stored> norm, int rows_of_a_chunk, float* partial) {
  wait_for_kernels_before();
  const Place<Stored, kVector> place(norm, rows_of_a_chunk);
  Packed<Stored, kVector> pivot{};
  if (place.is_inside()) pivot = place.x(0);
  leave_sums(place, partial, [&](ColumnSums<kVector>& sums, int r) {
    const auto x = place.x(r);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float distance = to_float(x.values[i]) - to_float(pivot.values[i]);
      sums.of[0][i] += distance;
      sums.of[1][i] += distance * distance;
    }
  });
}

// Of the rows whose sums are in the chunks; the first block of a column keeps them.
template <class Stored, int kVector>
__device__ Columns<kVector> columns_of_rows(const Norm<Stored>& norm,
                                            const Place<Stored, kVector>& place,
                                            const float* partial, int chunks) {
  const ColumnSums<kVector> sums = add_chunks(place, partial, chunks);
  if (!place.is_inside()) return {};
  const float share = 1.0f / static_cast<float>(norm.rows);
  const auto pivot = place.x(0);
  float mean[kVector], variance[kVector];
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    const float distance = sums.of[0][i] * share;
    mean[i] = to_float(pivot.values[i]) + distance;
    variance[i] = sums.of[1][i] * share - distance * distance;
    variance[i] = variance[i] < 0.0f ? 0.0f : variance[i];  // keeps what is not a number
    if (blockIdx.y == 0 && place.lane == 0) {
      norm.mean[place.column + i] = mean[i];
      norm.variance[place.column + i] = variance[i];
    }
  }
  return columns_of(norm, place, mean, variance);
}

template <class Stored, int kVector>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    normalise_rows(const Norm<Stored> norm, const float* partial, int chunks, int rows_of_a_block,
                   const Stored* residual, Stored* output) {
  wait_for_kernels_before();
  const Place<Stored, kVector> place(norm, rows_of_a_block);
  const Columns<kVector> columns =
      norm.is_training ? columns_of_rows(norm, place, partial, chunks) : given_columns(norm, place);
  if (!place.is_inside()) return;
#pragma unroll 4
  for (int r = place.begin + place.lane; r < place.end; r += kLanes) {
    const auto x = place.x(r);
    Packed<Stored, kVector> more{}, result;
    if (residual != nullptr) more = place.of(residual, r);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const BatchNormColumn& column = columns.of[i];
      const float y = batch_norm_value(column, batch_norm_normalised(column, to_float(x.values[i])),
                                       norm.has_relu != 0);
      result.values[i] =
          static_cast<Stored>(residual == nullptr ? y : y + to_float(more.values[i]));
    }
    place.put(output, r, result);
  }
}

template <class Stored, int kVector>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    sum_gradients(const Norm<Stored> norm, const Stored* gradient, int rows_of_a_chunk,
                  float* partial) {
  wait_for_kernels_before();
  const Place<Stored, kVector> place(norm, rows_of_a_chunk);
  const Columns<kVector> columns = given_columns(norm, place);
  leave_sums(place, partial, [&](ColumnSums<kVector>& sums, int r) {
    const auto x = place.x(r);
    const auto dy = place.of(gradient, r);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float normalised = batch_norm_normalised(columns.of[i], to_float(x.values[i]));
      const float before_relu = batch_norm_before_relu(columns.of[i], normalised,
                                                       to_float(dy.values[i]), norm.has_relu != 0);
      sums.of[0][i] += before_relu;
      sums.of[1][i] += before_relu * normalised;
    }
  });
}

template <class Stored>
struct Gradients {
  const Stored* gradient;
  Stored* input_gradient;  // or null
  float* affine_gradient;  // or null
};

// Without chunks: of given statistics, for the input alone.
template <class Stored, int kVector>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    finish_gradients(const Norm<Stored> norm, const float* partial, int chunks, int rows_of_a_block,
                     const Gradients<Stored> gradients) {
  wait_for_kernels_before();
  const Place<Stored, kVector> place(norm, rows_of_a_block);
  ColumnSums<kVector> sums;
  if (chunks > 0) sums = add_chunks(place, partial, chunks);
  if (!place.is_inside()) return;
  if (gradients.affine_gradient != nullptr && blockIdx.y == 0 && place.lane == 0) {
    const int group = place.column / norm.width;
    float* affine = gradients.affine_gradient + static_cast<u64>(group) * norm.width + place.column;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      affine[i] = sums.of[1][i];
      affine[norm.width + i] = sums.of[0][i];
    }
  }
  if (gradients.input_gradient == nullptr) return;
  const float share = norm.is_training ? 1.0f / static_cast<float>(norm.rows) : 0.0f;
  const Columns<kVector> columns = given_columns(norm, place);
#pragma unroll 2
  for (int r = place.begin + place.lane; r < place.end; r += kLanes) {
    const auto x = place.x(r);
    const auto dy = place.of(gradients.gradient, r);
    Packed<Stored, kVector> result;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const BatchNormColumn& column = columns.of[i];
      const float normalised = batch_norm_normalised(column, to_float(x.values[i]));
      const float before_relu =
          batch_norm_before_relu(column, normalised, to_float(dy.values[i]), norm.has_relu != 0);
      result.values[i] = static_cast<Stored>(batch_norm_input_gradient(
          column, normalised, before_relu, sums.of[0][i] * share, sums.of[1][i] * share));
    }
    place.put(gradients.input_gradient, r, result);
  }
}

// Of given statistics, where all groups read the same input: their sum. A thread takes one value.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    add_group_gradients(const Norm<Stored> norm, const Stored* gradient, float* input_gradient) {
  wait_for_kernels_before();
  const u64 i = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= static_cast<u64>(norm.rows) * norm.width) return;
  const u64 row = i / norm.width, at = i % norm.width;
  const float x = to_float(norm.input[row * norm.input_stride + at]);
  float sum = 0.0f;
  for (int group = 0; group < norm.groups; ++group) {
    const u64 first = static_cast<u64>(group) * norm.width;
    const float* gain = norm.affine + 2 * first + at;
    const BatchNormColumn column = batch_norm_column(
        norm.mean[first + at], norm.variance[first + at], gain[0], gain[norm.width]);
    const float normalised = batch_norm_normalised(column, x);
    const float before_relu = batch_norm_before_relu(
        column, normalised, to_float(gradient[(row * norm.groups + group) * norm.width + at]),
        norm.has_relu != 0);
    sum += batch_norm_input_gradient(column, normalised, before_relu, 0.0f, 0.0f);
  }
  input_gradient[i] = sum;
}

struct Running {
  u64 count;
  const float* batch;
  float* running;
  const float* finite;
  float share, correction;
};

__global__ void __launch_bounds__(kThreads) move_statistics(const Running op) {
  wait_for_kernels_before();
  const u64 i = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= 2 * op.count || *op.finite != 1.0f) return;
  const float value = i < op.count ? op.batch[i] : op.batch[i] * op.correction;
  const float before = op.running[i];
  op.running[i] = before + op.share * (value - before);
}

struct Split {
  unsigned tiles;  // of columns
  int count, rows_of_each;

  dim3 grid() const { return dim3(tiles, static_cast<unsigned>(count)); }
};

Split split_of(const BatchNorm& norm, int vector, int wanted, int most) {
  const unsigned tiles = blocks_for(static_cast<u64>(norm.groups) * norm.width,
                                    static_cast<unsigned>(kColumnThreads * vector));
  const int count = std::min(std::max(wanted / static_cast<int>(tiles), 1), most);
  const int rows_of_each = std::max((norm.rows + count - 1) / count, kLeastRows);
  return {tiles, (norm.rows + rows_of_each - 1) / rows_of_each, rows_of_each};
}

Split chunks_of(const BatchNorm& norm, int vector) {
  return split_of(norm, vector, kWantedBlocks, kMostChunks);
}

// Of the second step.
Split blocks_of(const BatchNorm& norm, int vector) {
  return split_of(norm, vector, kWantedBlocks, norm.rows);
}

// Of as many chunks as there may be, whatever the vector.
u64 partial_floats(const BatchNorm& norm) {
  return static_cast<u64>(kMostChunks) * kSums * norm.groups * norm.width;
}

// Calls launch with how many columns a thread takes: kBytes of them, where no group's, row's or
// matrix' beginning is in the way.
template <int kBytes, class Stored, class Launch>
cudaError_t with_vector(const Norm<Stored>& norm, const Launch& launch,
                        std::initializer_list<const void*> matrices) {
  constexpr u64 kColumns = kBytes / sizeof(Stored);
  const bool is_wide = static_cast<u64>(norm.width) % kColumns == 0 &&
                       norm.input_stride % kColumns == 0 && norm.input_distance % kColumns == 0 &&
                       are_aligned({norm.input}, kBytes) && are_aligned(matrices, kBytes);
  return is_wide ? launch(std::integral_constant<int, kColumns>())
                 : launch(std::integral_constant<int, 1>());
}

}  // namespace

u64 scratch_floats(const BatchNormForwardOp& op) {
  return op.norm.is_training ? partial_floats(op.norm) : 0;
}

u64 scratch_floats(const BatchNormBackwardOp& op) {
  return op.norm.is_training || op.affine_gradient.used() ? partial_floats(op.norm) : 0;
}

cudaError_t launch_op(const CudaFrame& frame, const BatchNormForwardOp& op) {
  return with_stored(frame, op.output, [&](auto* output) {
    using Stored = std::remove_pointer_t<decltype(output)>;
    const Norm<Stored> norm = norm_of<Stored>(frame, op.norm);
    const Stored* const residual = frame.at<Stored>(op.residual);
    const auto launch = [&](auto vector) {
      constexpr int kVector = decltype(vector)::value;
      const Split chunks = chunks_of(op.norm, kVector), blocks = blocks_of(op.norm, kVector);
      if (op.norm.is_training) {
        const cudaError_t code =
            launch_kernel(frame.stream, chunks.grid(), kThreads, 0, sum_rows<Stored, kVector>, norm,
                          chunks.rows_of_each, frame.scratch);
        if (code != cudaSuccess) return code;
      }
      return launch_kernel(frame.stream, blocks.grid(), kThreads, 0,
                           normalise_rows<Stored, kVector>, norm, frame.scratch, chunks.count,
                           blocks.rows_of_each, residual, output);
    };
    const bool are_few = static_cast<u64>(norm.groups) * norm.width <= kFewColumns;
    return are_few ? with_vector<kForwardBytesOfFew>(norm, launch, {residual, output})
                   : with_vector<kForwardBytes>(norm, launch, {residual, output});
  });
}

cudaError_t launch_op(const CudaFrame& frame, const BatchNormBackwardOp& op) {
  const bool has_sums = op.norm.is_training || op.affine_gradient.used();
  const bool has_input = op.input_gradient.used();
  return with_stored(frame, op.gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    const Norm<Stored> norm = norm_of<Stored>(frame, op.norm);
    if (has_input && op.norm.input_distance == 0) {
      if (has_sums) return cudaErrorInvalidValue;  // nothing needs the sum over groups then
      return launch_kernel(frame.stream,
                           blocks_for(static_cast<u64>(op.norm.rows) * op.norm.width, kThreads),
                           kThreads, 0, add_group_gradients<Stored>, norm, gradient,
                           frame.floats(op.input_gradient));
    }
    const Gradients<Stored> gradients = {gradient, frame.at<Stored>(op.input_gradient),
                                         frame.floats(op.affine_gradient)};
    const auto launch = [&](auto vector) {
      constexpr int kVector = decltype(vector)::value;
      const Split chunks = chunks_of(op.norm, kVector);
      if (has_sums) {
        const cudaError_t code =
            launch_kernel(frame.stream, chunks.grid(), kThreads, 0, sum_gradients<Stored, kVector>,
                          norm, gradient, chunks.rows_of_each, frame.scratch);
        if (code != cudaSuccess) return code;
      }
      Split blocks = blocks_of(op.norm, kVector);
      if (!has_input) blocks.count = 1;
      return launch_kernel(frame.stream, blocks.grid(), kThreads, 0,
                           finish_gradients<Stored, kVector>, norm, frame.scratch,
                           has_sums ? chunks.count : 0, blocks.rows_of_each, gradients);
    };
    return with_vector<kBackwardBytes>(norm, launch, {gradient, gradients.input_gradient});
  });
}

cudaError_t launch_op(const CudaFrame& frame, const RunningStatisticsOp& op) {
  const Running running = {
      op.count, frame.floats(op.batch), frame.floats(op.running), frame.floats(op.finite),
      op.share, op.correction};
  return launch_kernel(frame.stream, blocks_for(2 * op.count, kThreads), kThreads, 0,
                       move_statistics, running);
}

}  // namespace millrace
