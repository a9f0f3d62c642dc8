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
  // Of an operand that may be an input.
  InputSource source(Operand operand) const;
  FloatValue value(const ScalarSource& source) const;
  // Null for an operand that the op does not use.
  template <class Value>
  Value* at(Operand operand) const {
    return operand.used() ? static_cast<Value*>(carriers[operand.carrier]) + operand.offset
                          : nullptr;
  }
};

// Each adds one op; false where no kernel takes it.
bool add_op(MetalDispatches& to, const MetalFrame& frame, const UnpackOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const GemmOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const DenseForwardOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const LayerBackwardOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ColumnSumOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const SampleActionOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ActionGradientOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const MeanDeviationOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ProjectTargetOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const CriticLossOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ActorLossOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const AdamWOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const TemperatureOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const StatisticsOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const BatchNormForwardOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const BatchNormBackwardOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const RunningStatisticsOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const RmsNormForwardOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const RmsNormBackwardOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ReluBackwardOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarTargetOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarCriticGradientOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarCriticLossOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarActorGradientOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarActorLossOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const PointwiseOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const RandomFillOp& op);
bool add_op(MetalDispatches& to, const MetalFrame& frame, const CopyInOp& op);
inline bool add_op(MetalDispatches&, const MetalFrame&, const HostFunctionOp&) { return false; }

// What the ops with partial results need of scratch; the others need nothing.
u64 metal_scratch_floats(const GemmOp& op);
u64 metal_scratch_floats(const DenseForwardOp& op);
u64 metal_scratch_floats(const LayerBackwardOp& op);
u64 metal_scratch_floats(const ColumnSumOp& op);
u64 metal_scratch_floats(const MeanDeviationOp& op);
u64 metal_scratch_floats(const CriticLossOp& op);
u64 metal_scratch_floats(const ActorLossOp& op);
u64 metal_scratch_floats(const AdamWOp& op);
u64 metal_scratch_floats(const BatchNormForwardOp& op);
u64 metal_scratch_floats(const BatchNormBackwardOp& op);
u64 metal_scratch_floats(const RmsNormBackwardOp& op);
template <class Other>
u64 metal_scratch_floats(const Other&) {
  return 0;
}

// ---- sums over the rows of each column ----

// `sums` of them for each of `width` columns; `partial` may be null.
ColumnChunks column_chunks(int rows, u64 width, u32 sums, float* partial);
u32 chunks_of(const ColumnChunks& columns);
// What the chunks leave in scratch.
u64 partial_floats(const ColumnChunks& columns);

// A kernel whose arguments have these chunks.
template <class Args>
void add_columns(MetalDispatches& to, const char* kernel, const ColumnChunks& columns,
                 const Args& arguments, bool has_room = true) {
  to.add_grid(kernel, arguments, groups_for(columns.width, kSimdWidth), chunks_of(columns), 1,
              kRowThreads, has_room ? kRowThreads * sizeof(float) : 0);
}
// sums[which][column], of the chunks.
void add_chunk_sums(MetalDispatches& to, const ColumnChunks& columns, float* first,
                    float* second = nullptr, float* third = nullptr);

// ---- rows and elements ----

// A simdgroup for each row.
template <class Args>
void add_rows(MetalDispatches& to, const char* kernel, u64 rows, const Args& arguments) {
  to.add(kernel, arguments, groups_for(rows, kRowsOfAGroup), kRowThreads);
}
// A thread for each element.
template <class Args>
void add_elements(MetalDispatches& to, const char* kernel, u64 count, const Args& arguments) {
  to.add(kernel, arguments, groups_for(count, kElementThreads), kElementThreads);
}
// kParts threadgroups that leave their parts, and one that finishes them.
template <class Args>
void add_parts(MetalDispatches& to, const char* kernel, const Args& arguments) {
  to.add(kernel, arguments, kParts, kPartThreads, kPartThreads / kSimdWidth * sizeof(float));
}
template <class Args>
void add_finish(MetalDispatches& to, const char* kernel, const Args& arguments) {
  to.add(kernel, arguments, 1, kParts, kParts / kSimdWidth * sizeof(float));
}
// One threadgroup that walks over everything.
template <class Args>
void add_walk(MetalDispatches& to, const char* kernel, const Args& arguments) {
  to.add(kernel, arguments, 1, kLossThreads, kLossThreads / kSimdWidth * sizeof(float));
}

// ---- programs ----

uint64_t metal_scratch_bytes(const Program& program);

// Of all ops of the launch. Returns the number of the first record that no kernel takes (a function
// of the host, a shape beyond the kernels'), or the number of records.
size_t add_program(MetalDispatches& to, const ProgramLaunch& launch);

}  // namespace millrace
