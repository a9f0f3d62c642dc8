#include "program_metal.h"

#include <algorithm>
#include <type_traits>

namespace millrace {

uint64_t metal_scratch_bytes(const Program& program) {
  uint64_t most = 0;
  for (const Program::Record& record : program.records()) {
    most = std::max(most,
                    std::visit([](const auto& op) { return metal_scratch_floats(op); }, record.op));
  }
  return most * sizeof(float);
}

size_t add_program(MetalDispatches& to, const ProgramLaunch& launch) {
  const MetalFrame frame = {launch.carriers, launch.arguments, static_cast<float*>(launch.scratch),
                            launch.inputs};
  const std::vector<Program::Record>& records = launch.program->records();
  for (size_t i = 0; i < records.size(); ++i) {
    if (std::holds_alternative<HostFunctionOp>(records[i].op)) return i;
    std::visit([&](const auto& op) { add_op(to, frame, op); }, records[i].op);
  }
  return records.size();
}

}  // namespace millrace
