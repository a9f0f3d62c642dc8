// The general ops: a thread for each element.
#include "kernel_launch.cuh"
#include "philox.h"
#include "pointwise_body.h"
#include "program_cuda.cuh"

namespace millrace {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;  // floats of one wide load

struct Elements {
  u64 count;
  FloatSource a, b;
  FloatValue scalar;
  float* y;
};

template <Pointwise kFunction>
__global__ void __launch_bounds__(kThreads) apply(const Elements elements) {
  wait_for_kernels_before();
  const u64 i = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements.count) return;
  const float s = elements.scalar.get();
  elements.y[i] = pointwise_element<kFunction>(elements.a.get()[i], elements.b.get()[i], s);
}

// A thread for four elements that begin at a multiple of 16 bytes in all three.
template <Pointwise kFunction>
__global__ void __launch_bounds__(kThreads) apply_wide(const Elements elements) {
  wait_for_kernels_before();
  const u64 i = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements.count / kVector) return;
  const float s = elements.scalar.get();
  const float4 a = reinterpret_cast<const float4*>(elements.a.get())[i];
  const float4 b = reinterpret_cast<const float4*>(elements.b.get())[i];
  reinterpret_cast<float4*>(elements.y)[i] = make_float4(
      pointwise_element<kFunction>(a.x, b.x, s), pointwise_element<kFunction>(a.y, b.y, s),
      pointwise_element<kFunction>(a.z, b.z, s), pointwise_element<kFunction>(a.w, b.w, s));
}

// An input does, if its offset does (host_inputs.h).
bool is_wide(const FloatSource& source) {
  return reinterpret_cast<uintptr_t>(source.known) % sizeof(float4) == 0 &&
         source.offset % kVector == 0;
}

template <Pointwise kFunction>
cudaError_t launch(const CudaFrame& frame, const Elements& elements) {
  const bool all_wide = is_wide(elements.a) && is_wide(elements.b) &&
                        is_wide({elements.y, nullptr, 0}) && elements.count % kVector == 0;
  if (all_wide) {
    return launch_kernel(frame.stream, blocks_for(elements.count / kVector, kThreads), kThreads, 0,
                         apply_wide<kFunction>, elements);
  }
  return launch_kernel(frame.stream, blocks_for(elements.count, kThreads), kThreads, 0,
                       apply<kFunction>, elements);
}

__global__ void __launch_bounds__(kThreads) fill(const Arguments* arguments, RandomStream stream,
                                                 u32 environment, float* target, u64 count) {
  wait_for_kernels_before();
  const u64 i = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  target[i] = random_normal(random_source(arguments->seed, stream, environment, arguments->tick),
                            static_cast<u32>(i));
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const PointwiseOp& op) {
  const FloatSource a = frame.source(op.a);
  const Elements elements = {op.count, a, op.b.used() ? frame.source(op.b) : a,
                             frame.value(op.scalar), frame.floats(op.y)};
  switch (op.function) {
    case Pointwise::kScale:
      return launch<Pointwise::kScale>(frame, elements);
    case Pointwise::kAdd:
      return launch<Pointwise::kAdd>(frame, elements);
    case Pointwise::kAddScaled:
      return launch<Pointwise::kAddScaled>(frame, elements);
    case Pointwise::kMultiply:
      return launch<Pointwise::kMultiply>(frame, elements);
    case Pointwise::kTanh:
      return launch<Pointwise::kTanh>(frame, elements);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_op(const CudaFrame& frame, const RandomFillOp& op) {
  return launch_kernel(frame.stream, blocks_for(op.count, kThreads), kThreads, 0, fill,
                       frame.arguments, op.stream, op.environment, frame.floats(op.target),
                       static_cast<u64>(op.count));
}

cudaError_t launch_op(const CudaFrame& frame, const CopyInOp& op) {
  return cudaMemcpyAsync(frame.floats(op.target), frame.inputs.buffers[op.buffer],
                         op.count * sizeof(float), cudaMemcpyHostToDevice, frame.stream);
}

cudaError_t launch_op(const CudaFrame&, const HostFunctionOp&) { return cudaErrorNotSupported; }

}  // namespace millrace
