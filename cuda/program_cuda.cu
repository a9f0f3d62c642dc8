#include <algorithm>

#include "program_cuda.cuh"

namespace millrace {
namespace {

constexpr u64 kAlignment = 256;

// Of one lane, what its ops leave.
u64 lane_scratch_bytes(const Program& program) {
  u64 most = 0;
  for (const Program::Record& record : program.records()) {
    most = std::max(most, std::visit([](const auto& op) { return scratch_floats(op); }, record.op));
  }
  return (most * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
}

u64 lanes_of(const Program& program) {
  int highest = 0;
  for (const Program::Record& record : program.records()) {
    highest = std::max(highest, record.lane);
  }
  return static_cast<u64>(highest) + 1;
}

}  // namespace

u64 scratch_bytes(const Program& program) {
  return lane_scratch_bytes(program) * lanes_of(program);
}

cudaError_t launch_program(const CudaFrame& frame, void* scratch, const Program& program,
                           Order order, CudaLanes& lanes, size_t* record) {
  const std::vector<Program::Record>& records = program.records();
  const u64 lane_bytes = lane_scratch_bytes(program);
  const auto launch = [&](size_t at, int lane, cudaStream_t stream) {
    CudaFrame with = frame;
    with.stream = stream;
    with.scratch =
        reinterpret_cast<float*>(static_cast<char*>(scratch) + static_cast<u64>(lane) * lane_bytes);
    return std::visit([&](const auto& op) { return launch_op(with, op); }, records[at].op);
  };
  if (order == Order::kSideBySide) return lanes.run(records, launch, record);
  for (*record = 0; *record < records.size(); ++*record) {
    const cudaError_t code = launch(*record, 0, frame.stream);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace millrace
