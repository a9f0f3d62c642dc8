#include "program_cpu.h"

#include "adamw.h"
#include "batch_norm.h"
#include "batch_rows.h"
#include "c51.h"
#include "dense_layer.h"
#include "gemm.h"
#include "learner_statistics.h"
#include "pointwise.h"
#include "relu_layer.h"
#include "rms_norm.h"
#include "scalar_critic.h"
#include "tanh_gaussian.h"

namespace millrace {

void run_on_cpu(const Program& program, const CpuFrame& frame) {
  for (const Program::Record& record : program.records()) {
    std::visit([&](const auto& op) { execute(op, frame); }, record.op);
  }
}

}  // namespace millrace
