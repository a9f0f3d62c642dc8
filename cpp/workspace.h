// The carriers that programs work on: named, zeroed, 64-byte aligned buffers. First all are added
// and programs are recorded over them, then allocate() fixes every address for good; until then
// nothing but bytes() costs memory, so a budget can be checked first. Owned by whoever records the
// programs (a learner, a policy); one thread at a time.
//
// An operand names a place in a carrier: (carrier, offset in elements). Programs hold operands,
// never addresses, so that one recorded program runs on every backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "state_registry.h"

namespace millrace {

struct Operand {
  int carrier = -1;  // -1: the op does not use this operand
  uint64_t offset = 0;

  bool used() const { return carrier >= 0; }
  Operand operator+(uint64_t elements) const { return {carrier, offset + elements}; }
};

class Workspace {
 public:
  struct Carrier {
    std::string name;
    DType dtype;
    uint64_t count;
    void* data;  // null before allocate()
  };

  // Throws kBug for a name given twice, or after allocate().
  Operand add(const std::string& name, DType dtype, uint64_t count);
  Operand add_floats(const std::string& name, uint64_t count) {
    return add(name, DType::kF32, count);
  }
  // Throws kBug when there is no such carrier.
  Operand find(const std::string& name) const;

  float* floats(Operand operand) const {
    return static_cast<float*>(carriers_[operand.carrier].data) + operand.offset;
  }
  int32_t* integers(Operand operand) const {
    return static_cast<int32_t*>(carriers_[operand.carrier].data) + operand.offset;
  }
  uint64_t* counters(Operand operand) const {
    return static_cast<uint64_t*>(carriers_[operand.carrier].data) + operand.offset;
  }

  const std::vector<Carrier>& carriers() const { return carriers_; }
  // Of the buffers as allocated, padding included.
  size_t bytes() const;
  void allocate();

 private:
  struct Release {
    void operator()(void* data) const;
  };
  std::vector<Carrier> carriers_;
  std::unique_ptr<void, Release> memory_;
};

}  // namespace millrace
