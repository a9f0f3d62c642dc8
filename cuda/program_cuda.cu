#include <algorithm>

#include "program_cuda.cuh"

namespace millrace {

u64 scratch_bytes(const Program& program) {
  u64 most = 0;
  for (const Program::Record& record : program.records()) {
    most = std::max(most, std::visit([](const auto& op) { return scratch_floats(op); }, record.op));
  }
  return most * sizeof(float);
}

cudaError_t launch_program(const CudaFrame& frame, const Program& program, size_t* record) {
  const std::vector<Program::Record>& records = program.records();
  for (*record = 0; *record < records.size(); ++*record) {
    const cudaError_t code =
        std::visit([&](const auto& op) { return launch_op(frame, op); }, records[*record].op);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace millrace
