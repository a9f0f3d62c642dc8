// AdamW in two launches: one measures the gradient and computes what all parameters share, then
// every block of the other adds the parts up, comes to the same verdict, and takes its parameters'
// step, with what follows it: rows to their lengths, the moving target. So a parameter is read and
// written once (but for rows that are too long for registers). And the temperature's step.
#include <algorithm>
#include <vector>

#include "adamw_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kThreads = 256;
constexpr int kNormParts = kThreads;  // one for each thread of the blocks that add them up
constexpr int kTemperatureThreads = 1024;
constexpr int kVector = 4;
using Floats = Packed<float, kVector>;

// What the first launch leaves to the second, in scratch.
struct Measured {
  float parts[kNormParts];  // of the sum of the gradient's squares
  u64 count;                // of steps taken before
  AdamWStep step;           // the next one, but for the clip
};
constexpr u64 kMeasuredFloats = (sizeof(Measured) + sizeof(float) - 1) / sizeof(float);

// kNormParts blocks sum squares; one more computes the step meanwhile. Powers take their time, so
// two warps have one each.
__global__ void __launch_bounds__(kThreads)
    measure(const float* gradient, u64 count, int is_aligned, const Arguments* arguments,
            AdamWConstants constants, LearningRate rate, const u64* steps, Measured* measured) {
  wait_for_kernels_before();
  if (blockIdx.x == kNormParts) {
    const u64 next = *steps + 1;
    AdamWStep& step = measured->step;
    if (threadIdx.x == 0) {
      const float learning_rate = arguments->learning_rate(rate);
      measured->count = *steps;
      step.decay = adamw_decay(constants, learning_rate);
      step.rate = adamw_rate(constants, learning_rate, next);
      step.beta1 = constants.beta1;
      step.beta2 = constants.beta2;
      step.target_rate = arguments->target_rate;
    } else if (threadIdx.x == kWarp) {
      step.inverse_root = adamw_inverse_root(constants, next);
    }
    return;
  }
  __shared__ float room[kThreads / kWarp];
  constexpr u64 kApart = static_cast<u64>(kNormParts) * kThreads;
  const u64 own = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  const u64 vectors = is_aligned ? count / kVector : 0;
  float sum = 0.0f;
#pragma unroll 4
  for (u64 i = own; i < vectors; i += kApart) {
    const Floats pack = reinterpret_cast<const Floats*>(gradient)[i];
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum += pack.values[j] * pack.values[j];
  }
  for (u64 i = vectors * kVector + own; i < count; i += kApart) sum += gradient[i] * gradient[i];
  sum = block_sum(sum, room);
  if (threadIdx.x == 0) measured->parts[blockIdx.x] = sum;
}

struct Verdict {
  float max_norm;
  int opens;
  const float* loss;
  float *norm, *clip, *finite;
  u64* steps;
};

// Of all threads of the block, to all of them: what becomes of the update, and the step with its
// clip. The first block writes it down: nobody reads what changes of it, but for `finite`, which a
// second verdict would leave as it is.
__device__ bool may_step(const Measured& measured, const Verdict& op, AdamWStep* step) {
  __shared__ float room[kThreads / kWarp];
  __shared__ float clip;
  __shared__ bool is_finite;
  const float loss = *op.loss, finite_before = *op.finite;
  const float sum = block_sum(measured.parts[threadIdx.x], room);
  if (threadIdx.x == 0) {
    const float norm = sqrtf(sum);
    is_finite = (op.opens || finite_before == 1.0f) && mr_isfinite(norm) && mr_isfinite(loss);
    clip = gradient_clip(op.max_norm, norm);
    if (blockIdx.x == 0) {
      *op.norm = norm;
      *op.clip = clip;
      *op.finite = is_finite ? 1.0f : 0.0f;
      if (is_finite) *op.steps = measured.count + 1;
    }
  }
  *step = measured.step;
  __syncthreads();
  step->gradient_scale = clip;
  return is_finite;
}

struct Trained {
  u64 count;
  const float* gradient;
  float *parameters, *first, *second;
  float* target;                        // or null
  Bf16 *parameters_copy, *target_copy;  // that products read; or null
};

// kColumns parameters side by side, with all that their step reads.
template <int kColumns>
struct Piece {
  using Pack = Packed<float, kColumns>;
  Pack gradient, parameter, first, second, target{};

  __device__ void read(const Trained& trained, u64 at) {
    gradient = *reinterpret_cast<const Pack*>(trained.gradient + at);
    parameter = *reinterpret_cast<const Pack*>(trained.parameters + at);
    first = *reinterpret_cast<const Pack*>(trained.first + at);
    second = *reinterpret_cast<const Pack*>(trained.second + at);
    if (trained.target != nullptr) target = *reinterpret_cast<const Pack*>(trained.target + at);
  }

  // Writes the moments; the parameters stay here. Returns the sum of their squares.
  __device__ float step(const AdamWStep& step, const Trained& trained, u64 at) {
    float squares = 0.0f;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      parameter.values[j] = adamw_element(step, gradient.values[j], parameter.values[j],
                                          &first.values[j], &second.values[j]);
      squares += parameter.values[j] * parameter.values[j];
    }
    *reinterpret_cast<Pack*>(trained.first + at) = first;
    *reinterpret_cast<Pack*>(trained.second + at) = second;
    return squares;
  }

  __device__ void keep(const Trained& trained, u64 at) {
    *reinterpret_cast<Pack*>(trained.parameters + at) = parameter;
  }

  // Writes parameters, target and what products read of them.
  __device__ void put(const Trained& trained, u64 at, float scale, float target_rate) {
    using Copies = Packed<Bf16, kColumns>;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      parameter.values[j] *= scale;
      target.values[j] += target_rate * (parameter.values[j] - target.values[j]);
    }
    keep(trained, at);
    if (trained.parameters_copy != nullptr) {
      *reinterpret_cast<Copies*>(trained.parameters_copy + at) =
          packed<Bf16, kColumns>(parameter.values);
    }
    if (trained.target == nullptr) return;
    *reinterpret_cast<Pack*>(trained.target + at) = target;
    if (trained.target_copy != nullptr) {
      *reinterpret_cast<Copies*>(trained.target_copy + at) = packed<Bf16, kColumns>(target.values);
    }
  }
};

// A thread takes kColumns parameters side by side; they are on their way while it judges.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    adamw(const Measured* measured, const Verdict verdict, const Trained trained) {
  wait_for_kernels_before();
  const u64 at = (static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x) * kColumns;
  const bool is_inside = at < trained.count;
  Piece<kColumns> piece;
  if (is_inside) piece.read(trained, at);
  AdamWStep step;
  if (!may_step(*measured, verdict, &step) || !is_inside) return;
  piece.step(step, trained, at);
  piece.put(trained, at, 1.0f, step.target_rate);
}

constexpr int kMostBlocks = 32;  // of rows
constexpr int kWarps = kThreads / kWarp;

// Of a row block: as many warps to a row as have a piece for each lane, but 1, 2, 4 or 8.
template <int kColumns>
__host__ __device__ int warps_of(const RowBlock& block) {
  int warps = 1;
  while (warps < kWarps && warps * kWarp * kColumns < block.width) warps *= 2;
  return warps;
}

struct Rows {
  int count;                         // row blocks
  int first_block[kMostBlocks + 1];  // of a row block, among the launch's
  RowBlock blocks[kMostBlocks];
};

// What brings a row to its length, of the sum of its squares; a row of zeros has no direction.
__device__ float scale_of(float length, float squares) {
  return length > 0.0f && squares > 0.0f ? length / mr_sqrt(squares) : 1.0f;
}

// To all threads of a row, whose warps stand side by side.
__device__ float row_sum(float value, int warps) {
  __shared__ float room[kWarps];
  value = warp_sum(value);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (threadIdx.x % kWarp == 0) room[warp] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < warps; ++i) sum += room[warp / warps * warps + i];
  return sum;
}

// A row of the whole block that is too long to wait in registers.
template <int kColumns>
__device__ void step_long_row(const AdamWStep& step, const Trained& trained, const RowBlock& block,
                              u64 first) {
  constexpr int kApart = kThreads * kColumns;
  const int own = static_cast<int>(threadIdx.x) * kColumns;
  float squares = 0.0f;
  for (int i = own; i < block.width; i += kApart) {
    Piece<kColumns> piece;
    piece.read(trained, first + i);
    squares += piece.step(step, trained, first + i);
    piece.keep(trained, first + i);
  }
  const float scale = scale_of(block.length, row_sum(squares, kWarps));
  for (int i = own; i < block.width; i += kApart) {
    Piece<kColumns> piece;
    piece.read(trained, first + i);
    piece.put(trained, first + i, scale, step.target_rate);
  }
}

// A block takes rows of one row block; they are on their way while it judges.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    adamw_rows(const Measured* measured, const Verdict verdict, const Trained trained,
               const __grid_constant__ Rows rows) {
  wait_for_kernels_before();
  const int number = static_cast<int>(blockIdx.x);
  int block = 0;
  while (number >= rows.first_block[block + 1]) ++block;
  const RowBlock& own = rows.blocks[block];
  const int warps = warps_of<kColumns>(own), threads = warps * kWarp;
  const int row = (number - rows.first_block[block]) * (kWarps / warps) +
                  static_cast<int>(threadIdx.x) / threads;
  const u64 first = own.first + static_cast<u64>(row) * static_cast<u64>(own.width);
  const int column = static_cast<int>(threadIdx.x) % threads * kColumns;
  const bool is_short = own.width <= threads * kColumns;
  const bool is_inside = is_short && row < own.rows && column < own.width;
  Piece<kColumns> piece;
  if (is_inside) piece.read(trained, first + column);
  AdamWStep step;
  if (!may_step(*measured, verdict, &step)) return;
  if (!is_short) return step_long_row<kColumns>(step, trained, own, first);
  const float squares = is_inside ? piece.step(step, trained, first + column) : 0.0f;
  const float scale = scale_of(own.length, row_sum(squares, warps));
  if (is_inside) piece.put(trained, first + column, scale, step.target_rate);
}

bool has_vectors(const Trained& trained) {
  return trained.count % kVector == 0 &&
         are_aligned(
             {trained.gradient, trained.parameters, trained.first, trained.second, trained.target},
             sizeof(Floats)) &&
         are_aligned({trained.parameters_copy, trained.target_copy}, sizeof(Packed<Bf16, kVector>));
}

template <int kColumns>
cudaError_t launch_rows(const CudaFrame& frame, const AdamWOp& op, const Measured* measured,
                        const Verdict& verdict, const Trained& trained) {
  if (op.rows.size() > kMostBlocks) return cudaErrorInvalidValue;
  Rows rows{};
  rows.count = static_cast<int>(op.rows.size());
  for (int i = 0; i < rows.count; ++i) {
    const RowBlock& block = rows.blocks[i] = op.rows[static_cast<size_t>(i)];
    const int at_once = kWarps / warps_of<kColumns>(block);
    rows.first_block[i + 1] = rows.first_block[i] + (block.rows + at_once - 1) / at_once;
  }
  return launch_kernel(frame.stream, static_cast<unsigned>(rows.first_block[rows.count]), kThreads,
                       0, adamw_rows<kColumns>, measured, verdict, trained, rows);
}

// Whether rows begin and end with whole vectors.
bool are_whole(const std::vector<RowBlock>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](const RowBlock& block) {
    return block.first % kVector == 0 && block.width % kVector == 0;
  });
}

struct Temperature {
  int rows;
  const float* log_probability;
  float *log_alpha, *first_moment, *second_moment;
  u64* step;
  float* finite;
  AdamWConstants constants;
  float target_entropy;
  float *loss, *alpha, *gradient;
};

__global__ void __launch_bounds__(kTemperatureThreads)
    step_temperature(const Arguments* arguments, const Temperature op) {
  wait_for_kernels_before();
  __shared__ double room[kTemperatureThreads / kWarp];
  double sum = 0;
  for (int r = static_cast<int>(threadIdx.x); r < op.rows; r += kTemperatureThreads) {
    sum += op.log_probability[r];
  }
  sum = block_sum(sum, room);
  if (threadIdx.x != 0) return;
  const float alpha = mr_exp(*op.log_alpha);
  const float loss = -alpha * (static_cast<float>(sum / op.rows) + op.target_entropy);
  *op.alpha = alpha;
  *op.loss = loss;
  *op.gradient = loss;  // d(-alpha x)/d(log alpha) = -alpha x
  if (!mr_isfinite(loss)) *op.finite = 0.0f;
  if (*op.finite != 1.0f) return;
  const AdamWStep step = adamw_step(op.constants, arguments->alpha_learning_rate, ++*op.step);
  *op.log_alpha = adamw_element(step, loss, *op.log_alpha, op.first_moment, op.second_moment);
}

}  // namespace

u64 scratch_floats(const AdamWOp&) { return kMeasuredFloats; }

cudaError_t launch_op(const CudaFrame& frame, const AdamWOp& op) {
  Measured* const measured = reinterpret_cast<Measured*>(frame.scratch);
  const Trained trained = {op.count,
                           frame.floats(op.gradient),
                           frame.floats(op.parameters),
                           frame.floats(op.first_moment),
                           frame.floats(op.second_moment),
                           frame.floats(op.target),
                           frame.product_copy(op.parameters),
                           frame.product_copy(op.target)};
  const Verdict verdict = {op.max_norm,           op.opens ? 1 : 0,      frame.floats(op.loss),
                           frame.floats(op.norm), frame.floats(op.clip), frame.floats(op.finite),
                           frame.counter(op.step)};
  const int is_aligned = are_aligned({trained.gradient}, sizeof(Floats)) ? 1 : 0;
  const cudaError_t code =
      launch_kernel(frame.stream, kNormParts + 1, kThreads, 0, measure, trained.gradient, op.count,
                    is_aligned, frame.arguments, op.constants, op.rate, verdict.steps, measured);
  if (code != cudaSuccess) return code;
  if (!op.rows.empty()) {
    return has_vectors(trained) && are_whole(op.rows)
               ? launch_rows<kVector>(frame, op, measured, verdict, trained)
               : launch_rows<1>(frame, op, measured, verdict, trained);
  }
  return has_vectors(trained)
             ? launch_kernel(frame.stream, blocks_for(op.count / kVector, kThreads), kThreads, 0,
                             adamw<kVector>, measured, verdict, trained)
             : launch_kernel(frame.stream, blocks_for(op.count, kThreads), kThreads, 0, adamw<1>,
                             measured, verdict, trained);
}

cudaError_t launch_op(const CudaFrame& frame, const TemperatureOp& op) {
  const Temperature temperature = {op.rows,
                                   frame.floats(op.log_probability),
                                   frame.floats(op.log_alpha),
                                   frame.floats(op.first_moment),
                                   frame.floats(op.second_moment),
                                   frame.counter(op.step),
                                   frame.floats(op.finite),
                                   op.constants,
                                   op.target_entropy,
                                   frame.floats(op.loss),
                                   frame.floats(op.alpha),
                                   frame.floats(op.gradient)};
  return launch_kernel(frame.stream, 1, kTemperatureThreads, 0, step_temperature, frame.arguments,
                       temperature);
}

}  // namespace millrace
