// The CUDA executor of programs: every op is one or a few kernels, enqueued in order. One file per
// family of ops; program_cuda.cu walks the records. Kernels read what varies between two runs from
// the argument block in device memory. Sums have a fixed order: no atomic additions, and grids that
// depend on the shapes alone, so a replayed graph gives the bits of an eager run.
//
// Each lane has its scratch, shared by all its ops: what an op leaves there is gone with the next.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cublaslt_library.cuh"
#include "lanes_cuda.cuh"
#include "program_launch.h"

namespace millrace {

struct CudaFrame {
  cudaStream_t stream;
  const Workspace* workspace;
  void* const* carriers;
  void* const* product_copies;
  const Arguments* arguments;  // on the device
  float* scratch;
  Precision precision;
  CublasLt* library;  // for matrix products; null: our own kernel
  bool joins_layers;  // to their products, where a kernel can (joined_layer.cuh)
  LaunchInputs inputs;

  float* floats(Operand operand) const { return at<float>(operand); }
  const int* integers(Operand operand) const { return at<int>(operand); }
  u64* counter(Operand operand) const { return at<u64>(operand); }
  // Of an operand that may be an input.
  FloatSource source(Operand operand) const {
    if (!operand.is_input()) return {floats(operand), nullptr, 0};
    if (inputs.block_inputs != nullptr) {
      return {nullptr, inputs.block_inputs + operand.input(), operand.offset};
    }
    return {inputs.inputs[operand.input()], nullptr, operand.offset};
  }
  FloatValue value(const ScalarSource& source) const {
    switch (source.from) {
      case ScalarSource::From::kConstant:
        return {source.constant, nullptr};
      case ScalarSource::From::kHost:
        return {inputs.scalars[source.number], nullptr};
      case ScalarSource::From::kBlock:
        return {0.0f, inputs.block_scalars + source.number};
      case ScalarSource::From::kCarrier:
        return {0.0f, floats(source.place)};
    }
    return {source.constant, nullptr};
  }

  // Whether the operand's carrier is stored in bf16, as activations may be.
  bool is_bf16(Operand operand) const {
    return precision == Precision::kBf16 && role_of(operand) == Workspace::Carrier::kActivation;
  }
  // Where products read parameters in bf16; null: they read the operand itself.
  __nv_bfloat16* product_copy(Operand operand) const {
    if (!operand.used() || precision != Precision::kBf16) return nullptr;
    void* const copy = product_copies[operand.carrier];
    return copy == nullptr ? nullptr : static_cast<__nv_bfloat16*>(copy) + operand.offset;
  }
  // Null for an operand that the op does not use.
  template <class Value>
  Value* at(Operand operand) const {
    return operand.used() ? static_cast<Value*>(carriers[operand.carrier]) + operand.offset
                          : nullptr;
  }

 private:
  Workspace::Carrier::Role role_of(Operand operand) const {
    return workspace->carriers()[static_cast<size_t>(operand.carrier)].role;
  }
};

// Each enqueues one op; the result says whether its launches were accepted.
cudaError_t launch_op(const CudaFrame& frame, const UnpackOp& op);
cudaError_t launch_op(const CudaFrame& frame, const GemmOp& op);
cudaError_t launch_op(const CudaFrame& frame, const DenseForwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const LayerBackwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ColumnSumOp& op);
cudaError_t launch_op(const CudaFrame& frame, const SampleActionOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ActionGradientOp& op);
cudaError_t launch_op(const CudaFrame& frame, const MeanDeviationOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ProjectTargetOp& op);
cudaError_t launch_op(const CudaFrame& frame, const CriticLossOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ActorLossOp& op);
cudaError_t launch_op(const CudaFrame& frame, const AdamWOp& op);
cudaError_t launch_op(const CudaFrame& frame, const TemperatureOp& op);
cudaError_t launch_op(const CudaFrame& frame, const StatisticsOp& op);
cudaError_t launch_op(const CudaFrame& frame, const BatchNormForwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const BatchNormBackwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const RunningStatisticsOp& op);
cudaError_t launch_op(const CudaFrame& frame, const RmsNormForwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const RmsNormBackwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ReluBackwardOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarTargetOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarCriticGradientOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarCriticLossOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarActorGradientOp& op);
cudaError_t launch_op(const CudaFrame& frame, const ScalarActorLossOp& op);
cudaError_t launch_op(const CudaFrame& frame, const PointwiseOp& op);
cudaError_t launch_op(const CudaFrame& frame, const RandomFillOp& op);
cudaError_t launch_op(const CudaFrame& frame, const CopyInOp& op);
cudaError_t launch_op(const CudaFrame& frame, const HostFunctionOp& op);  // never accepted

// What the ops with partial results need of scratch; the others need nothing.
u64 scratch_floats(const GemmOp& op);
u64 scratch_floats(const DenseForwardOp& op);
u64 scratch_floats(const LayerBackwardOp& op);
u64 scratch_floats(const ColumnSumOp& op);
u64 scratch_floats(const MeanDeviationOp& op);
u64 scratch_floats(const CriticLossOp& op);
u64 scratch_floats(const ActorLossOp& op);
u64 scratch_floats(const AdamWOp& op);
u64 scratch_floats(const BatchNormForwardOp& op);
u64 scratch_floats(const BatchNormBackwardOp& op);
u64 scratch_floats(const RmsNormBackwardOp& op);
template <class Other>
u64 scratch_floats(const Other&) {
  return 0;
}

u64 scratch_bytes(const Program& program);
// Enqueues all ops, each with scratch of its lane; stops at the first that was not accepted, and
// then `record` is the number of its record.
cudaError_t launch_program(const CudaFrame& frame, void* scratch, const Program& program,
                           Order order, CudaLanes& lanes, size_t* record);

}  // namespace millrace
