// The carriers that programs work on: named, zeroed, 64-byte aligned buffers. First all are added
// and programs are recorded over them, then allocate() fixes every address for good; until then
// nothing costs memory, so a budget can be checked first. Owned by whoever records the programs (a
// learner, a policy); one thread at a time.
//
// Carriers are state, which outlives a run of a program and which the host may look at, or
// transient: written and read by the ops of one update alone. Where programs run on a device, the
// host allocates the state only.
//
// On the host every number is fp32. Where products are computed in bf16, a device stores
// activations (transient: what products read, and its gradients) in bf16, and beside parameters,
// which stay fp32, a copy in bf16 that products read.
//
// An operand names a place in a carrier: (carrier, offset in elements). Programs hold operands,
// never addresses, so that one recorded program runs on every backend. An operand may also name an
// input: memory that lies elsewhere in every run (host_inputs.h) and that ops only read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "state_registry.h"

namespace millrace {

struct Operand {
  int carrier = -1;  // -1: the op does not use this operand; below: an input
  uint64_t offset = 0;

  static Operand of_input(int number) { return {-2 - number, 0}; }
  bool used() const { return carrier != -1; }
  bool is_input() const { return carrier < -1; }
  int input() const { return -2 - carrier; }
  Operand operator+(uint64_t elements) const { return {carrier, offset + elements}; }
};

class Workspace {
 public:
  struct Carrier {
    std::string name;
    DType dtype;
    uint64_t count;
    bool is_transient;
    enum Role { kPlain, kActivation, kParameters } role;
  };
  enum class Contents { kAll, kState };

  // Throws kBug for a name given twice, or after allocate().
  Operand add(const std::string& name, DType dtype, uint64_t count);
  Operand add_floats(const std::string& name, uint64_t count) {
    return add(name, DType::kF32, count);
  }
  Operand add_transient(const std::string& name, uint64_t count);
  Operand add_activation(const std::string& name, uint64_t count);
  Operand add_parameters(const std::string& name, uint64_t count);
  // Throws kBug when there is no such carrier.
  Operand find(const std::string& name) const;

  float* floats(Operand operand) const {
    return static_cast<float*>(addresses_[operand.carrier]) + operand.offset;
  }
  int32_t* integers(Operand operand) const {
    return static_cast<int32_t*>(addresses_[operand.carrier]) + operand.offset;
  }
  uint64_t* counters(Operand operand) const {
    return static_cast<uint64_t*>(addresses_[operand.carrier]) + operand.offset;
  }

  const std::vector<Carrier>& carriers() const { return carriers_; }
  // Of every carrier, once allocated; null where it was left out.
  const std::vector<void*>& addresses() const { return addresses_; }
  // Of the buffers as allocated, padding included.
  size_t bytes(Contents contents = Contents::kAll) const;
  void allocate(Contents contents = Contents::kAll);

 private:
  struct Release {
    void operator()(void* data) const;
  };
  std::vector<Carrier> carriers_;
  std::vector<void*> addresses_;
  std::unique_ptr<void, Release> memory_;
};

}  // namespace millrace
