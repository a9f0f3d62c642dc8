// The list of everything a checkpoint holds: each owner registers its tensors once, when it is
// built; a checkpoint with a missing or an unknown name is refused. Names are paths
// ("actor/l0/weight"). The registry owns nothing. Filled on the thread that opens the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "status.h"

namespace millrace {

enum class DType { kF32, kF64, kI32, kI64, kU64 };
size_t bytes_of(DType dtype);
const char* to_string(DType dtype);  // safetensors spelling: "F32", …

struct StateTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  void* data;      // host memory on the CPU backend
  bool is_replay;  // belongs to the optional replay part

  size_t bytes() const;
};

class StateRegistry {
 public:
  // Throws kBug for a name given twice.
  void add(std::string name, DType dtype, std::vector<int64_t> shape, void* data,
           bool is_replay = false);
  const std::vector<StateTensor>& tensors() const { return tensors_; }

 private:
  std::vector<StateTensor> tensors_;
};

}  // namespace millrace
