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

// How to reach memory that the host cannot address. On the registry's thread.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  virtual void read(uint64_t offset, void* to, uint64_t bytes) = 0;
  virtual void write(uint64_t offset, const void* from, uint64_t bytes) = 0;
};

struct StateTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  void* data;                      // host memory, unless `remote` is there
  bool is_replay;                  // belongs to the optional replay part
  RemoteMemory* remote = nullptr;  // of device memory
  uint64_t row_pitch_bytes = 0;    // from one row of a matrix to the next; 0: they are adjacent

  size_t bytes() const;  // of its elements, without what lies between rows
  // Offsets count bytes of the elements, row after row. Both throw Failure(kInvalid) for bytes
  // outside the tensor.
  void read(uint64_t offset, void* to, uint64_t count) const;
  void write(uint64_t offset, const void* from, uint64_t count) const;
};

class StateRegistry {
 public:
  // Throws kBug for a name given twice.
  void add(std::string name, DType dtype, std::vector<int64_t> shape, void* data,
           bool is_replay = false, RemoteMemory* remote = nullptr);
  // A matrix of floats in host memory whose rows begin row_stride elements apart.
  void add_matrix(std::string name, std::vector<int64_t> shape, uint64_t row_stride, float* data);
  const std::vector<StateTensor>& tensors() const { return tensors_; }

 private:
  std::vector<StateTensor> tensors_;
};

}  // namespace millrace
