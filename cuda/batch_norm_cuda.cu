// Batch normalisation: a warp reads 32 columns of a row, a block some rows of them. What is summed
// over rows is summed in two steps of fixed order: each block over its rows, then the blocks; the
// second step is done by every block that needs the sums, which costs less than a launch.
#include <algorithm>

#include "batch_norm_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kColumns = kWarp;  // of a block
constexpr int kLanes = 8;        // rows that a block reads at a time
constexpr int kThreads = kColumns * kLanes;
constexpr int kWantedBlocks = 1056;     // eight for each multiprocessor of large cards
constexpr int kLeastRows = 8 * kLanes;  // of a block
constexpr int kMostChunks = 32;         // whose sums every block adds up again
constexpr int kSums = 2;

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

// A thread's place: a column of all groups', and which of the block's rows it begins at.
template <class Stored>
struct Place {
  int column;  // of groups * width
  int lane;
  int begin, end;  // the block's rows
  const Stored* input;
  u64 input_stride;
  u64 all;  // columns

  __device__ Place(const Norm<Stored>& norm, int rows_of_a_block)
      : column(static_cast<int>(blockIdx.x) * kColumns + static_cast<int>(threadIdx.x) % kColumns),
        lane(static_cast<int>(threadIdx.x) / kColumns),
        begin(static_cast<int>(blockIdx.y) * rows_of_a_block),
        end(min(begin + rows_of_a_block, norm.rows)),
        input_stride(norm.input_stride),
        all(static_cast<u64>(norm.groups) * norm.width) {
    const int group = column / norm.width;
    input = norm.input + group * norm.input_distance + column % norm.width;
  }
  __device__ bool is_inside() const { return static_cast<u64>(column) < all; }
  __device__ float x(int row) const { return to_float(input[row * input_stride]); }
};

template <class Stored>
__device__ BatchNormColumn column_of(const Norm<Stored>& norm, const Place<Stored>& place,
                                     float mean, float variance) {
  const int group = place.column / norm.width;
  const float* gain = norm.affine + static_cast<u64>(group) * norm.width + place.column;
  return batch_norm_column(mean, variance, gain[0], gain[norm.width]);
}

// Of each column over the block's lanes, to all of them.
struct ColumnSums {
  float first, second;
};

__device__ inline ColumnSums sum_over_lanes(ColumnSums own, int own_lane,
                                            float (&room)[kSums][kLanes][kColumns]) {
  const int at = static_cast<int>(threadIdx.x) % kColumns;
  room[0][own_lane][at] = own.first;
  room[1][own_lane][at] = own.second;
  __syncthreads();
  ColumnSums sums = {0.0f, 0.0f};
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    sums.first += room[0][lane][at];
    sums.second += room[1][lane][at];
  }
  return sums;
}

// partial[chunk][which][column] of the block's rows.
template <class Stored, class Value>
__device__ void leave_sums(const Place<Stored>& place, float* partial, const Value& value) {
  __shared__ float room[kSums][kLanes][kColumns];
  ColumnSums own = {0.0f, 0.0f};
  if (place.is_inside()) {
#pragma unroll 8
    for (int r = place.begin + place.lane; r < place.end; r += kLanes) {
      const ColumnSums row = value(r);
      own.first += row.first;
      own.second += row.second;
    }
  }
  const ColumnSums sums = sum_over_lanes(own, place.lane, room);
  if (place.lane != 0 || !place.is_inside()) return;
  partial += static_cast<u64>(blockIdx.y) * kSums * place.all + place.column;
  partial[0] = sums.first;
  partial[place.all] = sums.second;
}

template <class Stored>
__device__ ColumnSums add_chunks(const Place<Stored>& place, const float* partial, int chunks) {
  __shared__ float room[kSums][kLanes][kColumns];
  ColumnSums own = {0.0f, 0.0f};
  if (place.is_inside()) {
    for (int chunk = place.lane; chunk < chunks; chunk += kLanes) {
      const float* from = partial + static_cast<u64>(chunk) * kSums * place.all + place.column;
      own.first += from[0];
      own.second += from[place.all];
    }
  }
  return sum_over_lanes(own, place.lane, room);
}

// Sums of distances from the first row, and of their squares: no difference of large numbers.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    sum_rows(const Norm<Stored> norm, int rows_of_a_chunk, float* partial) {
  const Place<Stored> place(norm, rows_of_a_chunk);
  const float pivot = place.is_inside() ? place.x(0) : 0.0f;
  leave_sums(place, partial, [&](int r) {
    const float distance = place.x(r) - pivot;
    return ColumnSums{distance, distance * distance};
  });
}

template <class Stored>
__global__ void __launch_bounds__(kThreads)
    normalise_rows(const Norm<Stored> norm, const float* partial, int chunks, int rows_of_a_block,
                   const Stored* residual, Stored* output) {
  const Place<Stored> place(norm, rows_of_a_block);
  float mean = 0.0f, variance = 1.0f;
  if (norm.is_training) {
    const ColumnSums sums = add_chunks(place, partial, chunks);
    if (!place.is_inside()) return;
    const float share = 1.0f / static_cast<float>(norm.rows);
    const float distance = sums.first * share;
    mean = place.x(0) + distance;
    variance = sums.second * share - distance * distance;
    variance = variance < 0.0f ? 0.0f : variance;  // keeps what is not a number
    if (blockIdx.y == 0 && place.lane == 0) {
      norm.mean[place.column] = mean;
      norm.variance[place.column] = variance;
    }
  } else {
    if (!place.is_inside()) return;
    mean = norm.mean[place.column];
    variance = norm.variance[place.column];
  }
  const BatchNormColumn column = column_of(norm, place, mean, variance);
#pragma unroll 4
  for (int r = place.begin + place.lane; r < place.end; r += kLanes) {
    const u64 at = r * place.all + place.column;
    const float y =
        batch_norm_value(column, batch_norm_normalised(column, place.x(r)), norm.has_relu != 0);
    output[at] = static_cast<Stored>(residual == nullptr ? y : y + to_float(residual[at]));
  }
}

template <class Stored>
__device__ BatchNormColumn given_column(const Norm<Stored>& norm, const Place<Stored>& place) {
  return column_of(norm, place, norm.mean[place.column], norm.variance[place.column]);
}

template <class Stored>
__global__ void __launch_bounds__(kThreads)
    sum_gradients(const Norm<Stored> norm, const Stored* gradient, int rows_of_a_chunk,
                  float* partial) {
  const Place<Stored> place(norm, rows_of_a_chunk);
  const BatchNormColumn column =
      place.is_inside() ? given_column(norm, place) : BatchNormColumn{0.0f, 0.0f, 0.0f, 0.0f};
  leave_sums(place, partial, [&](int r) {
    const float normalised = batch_norm_normalised(column, place.x(r));
    const float before_relu = batch_norm_before_relu(
        column, normalised, to_float(gradient[r * place.all + place.column]), norm.has_relu != 0);
    return ColumnSums{before_relu, before_relu * normalised};
  });
}

template <class Stored>
struct Gradients {
  const Stored* gradient;
  Stored* input_gradient;  // or null
  float* affine_gradient;  // or null
};

// Without chunks: of given statistics, for the input alone.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    finish_gradients(const Norm<Stored> norm, const float* partial, int chunks, int rows_of_a_block,
                     const Gradients<Stored> gradients) {
  const Place<Stored> place(norm, rows_of_a_block);
  ColumnSums sums = {0.0f, 0.0f};
  if (chunks > 0) sums = add_chunks(place, partial, chunks);
  if (!place.is_inside()) return;
  if (gradients.affine_gradient != nullptr && blockIdx.y == 0 && place.lane == 0) {
    const int group = place.column / norm.width;
    float* affine = gradients.affine_gradient + static_cast<u64>(group) * norm.width + place.column;
    affine[0] = sums.second;
    affine[norm.width] = sums.first;
  }
  if (gradients.input_gradient == nullptr) return;
  const float share = norm.is_training ? 1.0f / static_cast<float>(norm.rows) : 0.0f;
  const BatchNormColumn column = given_column(norm, place);
#pragma unroll 4
  for (int r = place.begin + place.lane; r < place.end; r += kLanes) {
    const u64 at = r * place.all + place.column;
    const float normalised = batch_norm_normalised(column, place.x(r));
    const float before_relu = batch_norm_before_relu(
        column, normalised, to_float(gradients.gradient[at]), norm.has_relu != 0);
    gradients.input_gradient[at] = static_cast<Stored>(batch_norm_input_gradient(
        column, normalised, before_relu, sums.first * share, sums.second * share));
  }
}

// Of given statistics, where all groups read the same input: their sum. A thread takes one value.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    add_group_gradients(const Norm<Stored> norm, const Stored* gradient, float* input_gradient) {
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

Split split_of(const BatchNorm& norm, int most) {
  const unsigned tiles = blocks_for(static_cast<u64>(norm.groups) * norm.width, kColumns);
  const int wanted = std::min(std::max(kWantedBlocks / static_cast<int>(tiles), 1), most);
  const int rows_of_each = std::max((norm.rows + wanted - 1) / wanted, kLeastRows);
  return {tiles, (norm.rows + rows_of_each - 1) / rows_of_each, rows_of_each};
}

Split chunks_of(const BatchNorm& norm) { return split_of(norm, kMostChunks); }

// Of the second step.
Split blocks_of(const BatchNorm& norm) { return split_of(norm, norm.rows); }

u64 partial_floats(const BatchNorm& norm) {
  return static_cast<u64>(chunks_of(norm).count) * kSums * norm.groups * norm.width;
}

}  // namespace

u64 scratch_floats(const BatchNormForwardOp& op) {
  return op.norm.is_training ? partial_floats(op.norm) : 0;
}

u64 scratch_floats(const BatchNormBackwardOp& op) {
  return op.norm.is_training || op.affine_gradient.used() ? partial_floats(op.norm) : 0;
}

cudaError_t launch_op(const CudaFrame& frame, const BatchNormForwardOp& op) {
  const Split chunks = chunks_of(op.norm), blocks = blocks_of(op.norm);
  return with_stored(frame, op.output, [&](auto* output) {
    using Stored = std::remove_pointer_t<decltype(output)>;
    const Norm<Stored> norm = norm_of<Stored>(frame, op.norm);
    if (op.norm.is_training) {
      const cudaError_t code =
          launch_kernel(frame.stream, chunks.grid(), kThreads, 0, sum_rows<Stored>, norm,
                        chunks.rows_of_each, frame.scratch);
      if (code != cudaSuccess) return code;
    }
    return launch_kernel(frame.stream, blocks.grid(), kThreads, 0, normalise_rows<Stored>, norm,
                         frame.scratch, chunks.count, blocks.rows_of_each,
                         frame.at<Stored>(op.residual), output);
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
    const Split chunks = chunks_of(op.norm);
    if (has_sums) {
      const cudaError_t code =
          launch_kernel(frame.stream, chunks.grid(), kThreads, 0, sum_gradients<Stored>, norm,
                        gradient, chunks.rows_of_each, frame.scratch);
      if (code != cudaSuccess) return code;
    }
    Split blocks = blocks_of(op.norm);
    if (!has_input) blocks.count = 1;
    const Gradients<Stored> gradients = {gradient, frame.at<Stored>(op.input_gradient),
                                         frame.floats(op.affine_gradient)};
    return launch_kernel(frame.stream, blocks.grid(), kThreads, 0, finish_gradients<Stored>, norm,
                         frame.scratch, has_sums ? chunks.count : 0, blocks.rows_of_each,
                         gradients);
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
