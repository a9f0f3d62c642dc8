#include "carrier.h"

#include <utility>

#include "digest.h"

namespace millrace {
uint64_t Carrier::bytes() const {
  uint64_t total = bytes_of(dtype);
  for (int64_t extent : shape) total *= static_cast<uint64_t>(extent);
  return total;
}

void CarrierTable::refuse_if_sealed(const std::string& what) const {
  MR_CHECK(!is_sealed_, "carriers are sealed: " + what);
}

void CarrierTable::refuse_duplicate(const std::string& name) const {
  for (const Carrier& carrier : carriers_) {
    MR_CHECK(carrier.name != name, "carrier '" + name + "' exists already");
  }
}

uint32_t CarrierTable::add(std::string name, std::string owner, DType dtype,
                           std::vector<int64_t> shape, std::string device, void* memory) {
  refuse_if_sealed("cannot add '" + name + "'");
  refuse_duplicate(name);
  const uint32_t id = static_cast<uint32_t>(carriers_.size()) + 1;
  Carrier carrier{
      id, 1, std::move(name), std::move(owner), dtype, std::move(shape), std::move(device), memory};
  MR_CHECK(memory != nullptr || carrier.bytes() == 0,
           "carrier '" + carrier.name + "' has no memory");
  carriers_.push_back(std::move(carrier));
  return id;
}

void CarrierTable::move(uint32_t id, void* memory) {
  const std::string& name = at(id).name;
  refuse_if_sealed("cannot move '" + name + "'");
  MR_CHECK(memory != nullptr, "carrier '" + name + "' has no memory");
  Carrier& carrier = carriers_[id - 1];
  carrier.memory = memory;
  ++carrier.generation;
}

void CarrierTable::rename(uint32_t id, std::string name) {
  refuse_if_sealed("cannot rename '" + at(id).name + "'");
  refuse_duplicate(name);
  carriers_[id - 1].name = std::move(name);
}

const Carrier& CarrierTable::at(uint32_t id) const {
  MR_CHECK(id >= 1 && id <= carriers_.size(), "no carrier " + std::to_string(id));
  return carriers_[id - 1];
}

uint64_t CarrierTable::total_bytes() const {
  uint64_t total = 0;
  for (const Carrier& carrier : carriers_) total += carrier.bytes();
  return total;
}

uint64_t CarrierTable::digest() const { return digest_of(describe().dump()); }

nlohmann::json CarrierTable::describe() const {
  nlohmann::json all = nlohmann::json::array();
  for (const Carrier& carrier : carriers_) {
    all.push_back({{"id", carrier.id},
                   {"generation", carrier.generation},
                   {"name", carrier.name},
                   {"owner", carrier.owner},
                   {"dtype", to_string(carrier.dtype)},
                   {"shape", carrier.shape},
                   {"bytes", carrier.bytes()},
                   {"device", carrier.device}});
  }
  return all;
}

}  // namespace millrace
