// Gradient norm with the finite verdict, AdamW with the moving target in one pass over the
// parameters, and the temperature's step.
#include "adamw_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "reduction_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kThreads = 256;
constexpr int kTemperatureThreads = 1024;
constexpr int kAdamWVector = 4;
constexpr u64 kStepFloats = (sizeof(AdamWStep) + sizeof(float) - 1) / sizeof(float);

__global__ void __launch_bounds__(kPartThreads)
    sum_squares(const float* gradient, u64 count, float* parts) {
  wait_for_kernels_before();
  __shared__ float room[kPartWarps];
  float sum = 0.0f;
  for (u64 i = static_cast<u64>(blockIdx.x) * kPartThreads + threadIdx.x; i < count;
       i += static_cast<u64>(kParts) * kPartThreads) {
    sum += gradient[i] * gradient[i];
  }
  sum = block_sum(sum, room);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

struct Norm {
  float max_norm;
  int opens;
  const float* loss;
  float *norm, *clip, *finite;
};

__global__ void __launch_bounds__(kParts) finish_norm(const float* parts, const Norm op) {
  wait_for_kernels_before();
  __shared__ double room[kParts / kWarp];
  const double sum = block_sum(static_cast<double>(parts[threadIdx.x]), room);
  if (threadIdx.x != 0) return;
  const float norm = static_cast<float>(sqrt(sum));
  if (op.opens) *op.finite = 1.0f;
  if (!mr_isfinite(norm) || !mr_isfinite(*op.loss)) *op.finite = 0.0f;
  *op.norm = norm;
  *op.clip = gradient_clip(op.max_norm, norm);
}

// What all parameters share, once: the count of steps must move exactly once.
__global__ void begin_step(const Arguments* arguments, AdamWConstants constants, LearningRate rate,
                           const float* clip, const float* finite, u64* count, AdamWStep* step) {
  wait_for_kernels_before();
  if (*finite != 1.0f) return;
  *step = adamw_step(constants, arguments->learning_rate(rate), ++*count);
  step->gradient_scale = *clip;
  step->target_rate = arguments->target_rate;
}

struct Trained {
  u64 count;
  const float* gradient;
  float *parameters, *first, *second;
  float* target;                        // or null
  Bf16 *parameters_copy, *target_copy;  // that products read; or null
};

// A thread takes kVector parameters side by side.
template <int kVector>
__global__ void __launch_bounds__(kThreads)
    adamw(const AdamWStep* shared_step, const float* finite, const Trained trained) {
  wait_for_kernels_before();
  using Floats = Packed<float, kVector>;
  using Copies = Packed<Bf16, kVector>;
  const u64 i = (static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x) * kVector;
  if (i >= trained.count || *finite != 1.0f) return;
  const AdamWStep step = *shared_step;
  const Floats gradient = *reinterpret_cast<const Floats*>(trained.gradient + i);
  Floats parameter = *reinterpret_cast<Floats*>(trained.parameters + i);
  Floats first = *reinterpret_cast<Floats*>(trained.first + i);
  Floats second = *reinterpret_cast<Floats*>(trained.second + i);
  Copies copy;
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    parameter.values[j] = adamw_element(step, gradient.values[j], parameter.values[j],
                                        &first.values[j], &second.values[j]);
    copy.values[j] = static_cast<Bf16>(parameter.values[j]);
  }
  *reinterpret_cast<Floats*>(trained.first + i) = first;
  *reinterpret_cast<Floats*>(trained.second + i) = second;
  *reinterpret_cast<Floats*>(trained.parameters + i) = parameter;
  if (trained.parameters_copy != nullptr) {
    *reinterpret_cast<Copies*>(trained.parameters_copy + i) = copy;
  }
  if (trained.target == nullptr) return;
  Floats target = *reinterpret_cast<Floats*>(trained.target + i);
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    target.values[j] += step.target_rate * (parameter.values[j] - target.values[j]);
    copy.values[j] = static_cast<Bf16>(target.values[j]);
  }
  *reinterpret_cast<Floats*>(trained.target + i) = target;
  if (trained.target_copy != nullptr) *reinterpret_cast<Copies*>(trained.target_copy + i) = copy;
}

bool has_vectors(const Trained& trained) {
  return trained.count % kAdamWVector == 0 &&
         are_aligned(
             {trained.gradient, trained.parameters, trained.first, trained.second, trained.target},
             sizeof(Packed<float, kAdamWVector>)) &&
         are_aligned({trained.parameters_copy, trained.target_copy},
                     sizeof(Packed<Bf16, kAdamWVector>));
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

u64 scratch_floats(const GradientNormOp&) { return kParts; }

u64 scratch_floats(const AdamWOp&) { return kStepFloats; }

cudaError_t launch_op(const CudaFrame& frame, const GradientNormOp& op) {
  const cudaError_t code = launch_kernel(frame.stream, kParts, kPartThreads, 0, sum_squares,
                                         frame.floats(op.gradient), op.count, frame.scratch);
  if (code != cudaSuccess) return code;
  const Norm norm = {op.max_norm,           op.opens ? 1 : 0,      frame.floats(op.loss),
                     frame.floats(op.norm), frame.floats(op.clip), frame.floats(op.finite)};
  return launch_kernel(frame.stream, 1, kParts, 0, finish_norm, frame.scratch, norm);
}

cudaError_t launch_op(const CudaFrame& frame, const AdamWOp& op) {
  AdamWStep* step = reinterpret_cast<AdamWStep*>(frame.scratch);
  const float* finite = frame.floats(op.finite);
  const cudaError_t code =
      launch_kernel(frame.stream, 1, 1, 0, begin_step, frame.arguments, op.constants, op.rate,
                    frame.floats(op.clip), finite, frame.counter(op.step), step);
  if (code != cudaSuccess) return code;
  const Trained trained = {op.count,
                           frame.floats(op.gradient),
                           frame.floats(op.parameters),
                           frame.floats(op.first_moment),
                           frame.floats(op.second_moment),
                           frame.floats(op.target),
                           frame.product_copy(op.parameters),
                           frame.product_copy(op.target)};
  return has_vectors(trained)
             ? launch_kernel(frame.stream, blocks_for(op.count / kAdamWVector, kThreads), kThreads,
                             0, adamw<kAdamWVector>, step, finite, trained)
             : launch_kernel(frame.stream, blocks_for(op.count, kThreads), kThreads, 0, adamw<1>,
                             step, finite, trained);
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
