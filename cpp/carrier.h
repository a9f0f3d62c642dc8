// CarrierTable: every persistent buffer of a run by name. Owners register what they own while the
// run is opened; seal() ends that: afterwards no buffer may move, change its name or join. A
// carrier's generation counts how often its memory was set, so (id, generation) names one
// allocation. The table owns no memory. Filled on the thread that opens the run; read by any thread
// after seal().
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "state_registry.h"

namespace millrace {

struct Carrier {
  uint32_t id;  // from 1
  uint32_t generation;
  std::string name;   // "update/observation"
  std::string owner;  // module that may change it
  DType dtype;
  std::vector<int64_t> shape;
  std::string device;
  void* memory;

  uint64_t bytes() const;
};

class CarrierTable {
 public:
  // Returns the id. Throws kBug for a name given twice, missing memory, or after seal().
  uint32_t add(std::string name, std::string owner, DType dtype, std::vector<int64_t> shape,
               std::string device, void* memory);
  // Both throw kBug after seal().
  void move(uint32_t id, void* memory);
  void rename(uint32_t id, std::string name);
  void seal() { is_sealed_ = true; }
  bool is_sealed() const { return is_sealed_; }

  const Carrier& at(uint32_t id) const;
  const std::vector<Carrier>& carriers() const { return carriers_; }
  uint64_t total_bytes() const;
  // Of everything but the addresses, so that two runs of one configuration agree.
  uint64_t digest() const;
  // [{id, generation, name, owner, dtype, shape, bytes, device}]
  nlohmann::json describe() const;

 private:
  void refuse_if_sealed(const std::string& what) const;
  void refuse_duplicate(const std::string& name) const;

  std::vector<Carrier> carriers_;
  bool is_sealed_ = false;
};

}  // namespace millrace
