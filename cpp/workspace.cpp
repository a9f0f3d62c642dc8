#include "workspace.h"

#include <cstdlib>
#include <cstring>

namespace millrace {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector register

size_t padded_bytes(const Workspace::Carrier& carrier) {
  const size_t bytes = carrier.count * bytes_of(carrier.dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_part_of(Workspace::Contents contents, const Workspace::Carrier& carrier) {
  return contents == Workspace::Contents::kAll || !carrier.is_transient;
}

}  // namespace

void Workspace::Release::operator()(void* data) const { std::free(data); }

Operand Workspace::add(const std::string& name, DType dtype, uint64_t count) {
  MR_CHECK(memory_ == nullptr, "carrier '" + name + "' comes after the addresses were fixed");
  for (const Carrier& carrier : carriers_) {
    MR_CHECK(carrier.name != name, "carrier '" + name + "' exists");
  }
  carriers_.push_back({name, dtype, count, false, Carrier::kPlain});
  return {static_cast<int>(carriers_.size()) - 1, 0};
}

Operand Workspace::add_transient(const std::string& name, uint64_t count) {
  const Operand operand = add_floats(name, count);
  carriers_.back().is_transient = true;
  return operand;
}

Operand Workspace::add_activation(const std::string& name, uint64_t count) {
  const Operand operand = add_transient(name, count);
  carriers_.back().role = Carrier::kActivation;
  return operand;
}

Operand Workspace::add_parameters(const std::string& name, uint64_t count) {
  const Operand operand = add_floats(name, count);
  carriers_.back().role = Carrier::kParameters;
  return operand;
}

Operand Workspace::find(const std::string& name) const {
  for (size_t i = 0; i < carriers_.size(); ++i) {
    if (carriers_[i].name == name) return {static_cast<int>(i), 0};
  }
  throw Failure(Code::kBug, "there is no carrier '" + name + "'");
}

size_t Workspace::bytes(Contents contents) const {
  size_t total = 0;
  for (const Carrier& carrier : carriers_) {
    if (is_part_of(contents, carrier)) total += padded_bytes(carrier);
  }
  return total;
}

void Workspace::allocate(Contents contents) {
  MR_CHECK(memory_ == nullptr, "a workspace is allocated once");
  const size_t total = bytes(contents);
  memory_.reset(std::aligned_alloc(kAlignment, total));
  if (memory_ == nullptr) {
    throw Failure(Code::kResource,
                  "no memory for program carriers of " + std::to_string(total) + " bytes");
  }
  std::memset(memory_.get(), 0, total);
  char* next = static_cast<char*>(memory_.get());
  for (const Carrier& carrier : carriers_) {
    const bool is_here = is_part_of(contents, carrier);
    addresses_.push_back(is_here ? next : nullptr);
    if (is_here) next += padded_bytes(carrier);
  }
}

}  // namespace millrace
