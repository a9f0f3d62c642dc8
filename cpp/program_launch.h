// ProgramLaunch: one run of a program as a backend executes it, over carriers in the backend's
// memory. A launch is fixed, so that a graph may hold it; everything that differs from run to run
// stands in the argument block that it points to.
#pragma once

#include "program.h"

namespace millrace {

// Of the operands of matrix products; sums and everything else are fp32.
enum class Precision : uint32_t { kFp32, kTf32, kBf16 };

// As a configuration spells it: "fp32".
inline const char* to_string(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : precision == Precision::kTf32 ? "tf32" : "bf16";
}

constexpr uint32_t precision_bit(Precision precision) {
  return uint32_t{1} << static_cast<uint32_t>(precision);
}

// Who computes matrix products: the vendor's library where the backend has one and it is found on
// this machine, or always the backend's own kernel.
enum class Products : uint32_t { kLibrary, kOwnKernel };

// Whether ops that do not wait for each other may run at the same time, as far as the backend can.
// The bits are the same.
enum class Order : uint32_t { kSideBySide, kOneByOne };

struct ProgramLaunch {
  const Program* program;
  void* const* carriers;  // by number: where each carrier of the workspace lies
  // By number: where the bf16 copies of parameters lie, null for other carriers. Of precision bf16.
  void* const* product_copies;
  const Arguments* arguments;  // in the backend's memory
  void* scratch;               // program_scratch_bytes of it; programs of one stream may share it
  Precision precision;
  Products products;
  Order order;
  LaunchInputs inputs;
};

}  // namespace millrace
