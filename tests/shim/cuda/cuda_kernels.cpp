#include "cuda_kernels.h"

#include "gather_cuda.cuh"
#include "program_cuda.cuh"
#include "update_cuda.cuh"

namespace millrace {
namespace {

constexpr cudaStream_t kStream = nullptr;

// Behind each launch: the rest of the table is the CPU's, where work is done once it is submitted.
int finished(cudaError_t code) {
  const cudaError_t end = cudaDeviceSynchronize();
  return code != cudaSuccess ? code : end;
}

int run_program(void*, const ProgramLaunch* launch) {
  CudaFrame frame{};
  frame.stream = kStream;
  frame.workspace = &launch->program->workspace();
  frame.carriers = launch->carriers;
  frame.product_copies = launch->product_copies;
  frame.arguments = launch->arguments;
  frame.precision = launch->precision;
  frame.inputs = launch->inputs;
  CudaLanes lanes(kStream);
  size_t record = 0;
  return finished(
      launch_program(frame, launch->scratch, *launch->program, launch->order, lanes, &record));
}

}  // namespace

// For the linker: frames have no library, and join no layers.
cudaError_t CublasLt::multiply(cudaStream_t, const GemmOp&, Precision, const ProductOperands&,
                               void*) {
  return cudaErrorNotSupported;
}

cudaError_t launch_joined_layer(const CudaFrame&, const DenseForwardOp&) {
  return cudaErrorNotSupported;
}

const BackendApi& cuda_kernels() {
  static const BackendApi api = [] {
    BackendApi table = backend_cpu();
    table.name = "cuda_kernels";
    table.precisions = precision_bit(Precision::kFp32) | precision_bit(Precision::kTf32) |
                       precision_bit(Precision::kBf16);
    table.gather_async = [](void*, const Gather* gather) {
      return finished(launch_gather(kStream, *gather));
    };
    table.update_async = [](void*, const UpdateLaunch* launch) {
      return finished(launch_update(kStream, *launch));
    };
    table.program_scratch_bytes = [](const Program* program) -> uint64_t {
      return scratch_bytes(*program);
    };
    table.program_async = run_program;
    return table;
  }();
  return api;
}

}  // namespace millrace
