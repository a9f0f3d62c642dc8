#include "program_metal.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr int kWantedGroups = 256;  // several for each core of large devices
constexpr int kLeastRows = 8 * static_cast<int>(kRowsOfAGroup);  // of a chunk

}  // namespace

InputSource MetalFrame::source(Operand operand) const {
  if (!operand.is_input()) return {floats(operand), nullptr, 0};
  if (inputs.block_inputs != nullptr) {
    static_assert(sizeof(InputAddress) == sizeof(const float*), "an address and nothing else");
    const float* const* const place = inputs.block_inputs + operand.input();
    return {nullptr, reinterpret_cast<const InputAddress*>(place), operand.offset};
  }
  return {inputs.inputs[operand.input()], nullptr, operand.offset};
}

FloatValue MetalFrame::value(const ScalarSource& source) const {
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

ColumnChunks column_chunks(int rows, u64 width, u32 sums, float* partial) {
  const int tiles = static_cast<int>(groups_for(width, kSimdWidth));
  const int most = std::max(kWantedGroups / tiles, 1);
  return {rows, std::max((rows + most - 1) / most, kLeastRows), width, sums, partial};
}

u32 chunks_of(const ColumnChunks& columns) {
  return static_cast<u32>((columns.rows + columns.rows_of_a_chunk - 1) / columns.rows_of_a_chunk);
}

u64 partial_floats(const ColumnChunks& columns) {
  return static_cast<u64>(chunks_of(columns)) * columns.sums * columns.width;
}

void add_chunk_sums(MetalDispatches& to, const ColumnChunks& columns, float* first, float* second,
                    float* third) {
  const AddChunksArgs arguments = {
      columns.partial, {first, second, third}, columns.width, chunks_of(columns), columns.sums};
  to.add_grid("add_chunks", arguments, groups_for(columns.width, kElementThreads), columns.sums, 1,
              kElementThreads);
}

uint64_t metal_scratch_bytes(const Program& program) {
  uint64_t most = 0;
  for (const Program::Record& record : program.records()) {
    most = std::max<uint64_t>(
        most, std::visit([](const auto& op) { return metal_scratch_floats(op); }, record.op));
  }
  return most * sizeof(float);
}

size_t add_program(MetalDispatches& to, const ProgramLaunch& launch) {
  const MetalFrame frame = {launch.carriers, launch.arguments, static_cast<float*>(launch.scratch),
                            launch.inputs};
  const std::vector<Program::Record>& records = launch.program->records();
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].is_on_host) return i;
    if (!std::visit([&](const auto& op) { return add_op(to, frame, op); }, records[i].op)) return i;
  }
  return records.size();
}

}  // namespace millrace
