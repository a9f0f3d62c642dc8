// The CUDA executor of programs: every op is one or a few kernels, enqueued in order. One file per
// family of ops; program_cuda.cu walks the records. Kernels read what varies between two runs from
// the argument block in device memory. Sums have a fixed order: no atomic additions, and grids that
// depend on the shapes alone, so a replayed graph gives the bits of an eager run.
//
// Scratch is shared by all ops of a stream: what an op leaves there is gone with the next one.
#pragma once

#include <cuda_runtime.h>

#include "cublaslt_library.cuh"
#include "program_launch.h"

namespace millrace {

struct CudaFrame {
  cudaStream_t stream;
  void* const* carriers;
  const Arguments* arguments;  // on the device
  float* scratch;
  Precision precision;
  CublasLt* library;  // for matrix products; null: our own kernel

  float* floats(Operand operand) const { return at<float>(operand); }
  const int* integers(Operand operand) const { return at<int>(operand); }
  u64* counter(Operand operand) const { return at<u64>(operand); }

 private:
  // Null for an operand that the op does not use.
  template <class Value>
  Value* at(Operand operand) const {
    return operand.used() ? static_cast<Value*>(carriers[operand.carrier]) + operand.offset
                          : nullptr;
  }
};

// Each enqueues one op; the result says whether its launches were accepted.
cudaError_t launch_op(const CudaFrame& frame, const UnpackOp& op);
cudaError_t launch_op(const CudaFrame& frame, const GemmOp& op);
cudaError_t launch_op(const CudaFrame& frame, const LayerForwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const LayerBackwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ColumnSumOp& op);
cudaError_t launch_op(const CudaFrame& frame, const SampleActionOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ActionGradientOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ProjectTargetOp& op);
cudaError_t launch_op(const CudaFrame& frame, const CriticLossOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ActorLossOp& op);
cudaError_t launch_op(const CudaFrame& frame, const GradientNormOp& op);
cudaError_t launch_op(const CudaFrame& frame, const AdamWOp& op);
cudaError_t launch_op(const CudaFrame& frame, const TemperatureOp& op);
cudaError_t launch_op(const CudaFrame& frame, const StatisticsOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ReluForwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ReluBackwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarTargetOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarCriticLossOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarActorLossOp& op);

// What the ops with partial results need of scratch; the others need nothing.
u64 scratch_floats(const GemmOp& op);
u64 scratch_floats(const LayerBackwardOp& op);
u64 scratch_floats(const ColumnSumOp& op);
u64 scratch_floats(const ActionGradientOp& op);
u64 scratch_floats(const CriticLossOp& op);
u64 scratch_floats(const ActorLossOp& op);
u64 scratch_floats(const GradientNormOp& op);
u64 scratch_floats(const AdamWOp& op);
template <class Other>
u64 scratch_floats(const Other&) {
  return 0;
}

u64 scratch_bytes(const Program& program);
// Enqueues all ops; stops at the first that was not accepted, and then `record` is the number of
// its record.
cudaError_t launch_program(const CudaFrame& frame, const Program& program, size_t* record);

}  // namespace millrace
