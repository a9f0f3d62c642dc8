// The Metal executor of programs: every op becomes one or a few dispatches, in order. One pair of
// files per family of ops: NAME.metal has the kernels, NAME_metal.cpp what they are launched with;
// program_metal.cpp walks the records. Kernels read what varies between two runs from the argument
// block in device memory. Sums have a fixed order: no atomic additions of floats, and grids that
// depend on the shapes alone, so a replay gives the bits of an eager run.
//
// Pure C++, without Metal's types. All ops share the scratch: what an op leaves there is gone with
// the next.
#pragma once

#include "metal_dispatch.h"
#include "program_launch.h"

namespace millrace {

struct MetalFrame {
  void* const* carriers;  // addresses of the device, as all below
  const Arguments* arguments;
  float* scratch;
  LaunchInputs inputs;

  float* floats(Operand operand) const { return at<float>(operand); }
  const int* integers(Operand operand) const { return at<int>(operand); }
  u64* counter(Operand operand) const { return at<u64>(operand); }
  // Null for an operand that the op does not use.
  template <class Value>
  Value* at(Operand operand) const {
    return operand.used() ? static_cast<Value*>(carriers[operand.carrier]) + operand.offset
                          : nullptr;
  }
};

// Each adds one op.
void add_op(MetalDispatches& to, const MetalFrame& frame, const UnpackOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const GemmOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const LayerForwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const LayerBackwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ColumnSumOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const SampleActionOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ActionGradientOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ProjectTargetOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const CriticLossOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ActorLossOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const GradientNormOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const AdamWOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const TemperatureOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const StatisticsOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const BatchNormForwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const BatchNormBackwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const RunningStatisticsOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const RmsNormForwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const RmsNormBackwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const NormaliseRowsOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ReluForwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ReluBackwardOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarTargetOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarCriticLossOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarActorLossOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const PointwiseOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const RandomFillOp& op);
void add_op(MetalDispatches& to, const MetalFrame& frame, const CopyInOp& op);
inline void add_op(MetalDispatches&, const MetalFrame&, const HostFunctionOp&) {
}  // see add_program

// What the ops with partial results need of scratch; the others need nothing.
template <class Other>
uint64_t metal_scratch_floats(const Other&) {
  return 0;
}

uint64_t metal_scratch_bytes(const Program& program);

// Of all ops of the launch. Returns the number of the first record that has no kernel, a function
// of the host, or the number of records.
size_t add_program(MetalDispatches& to, const ProgramLaunch& launch);

}  // namespace millrace
