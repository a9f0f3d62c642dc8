#include "state_registry.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace {

size_t bytes_of(DType dtype) { return dtype == DType::kF32 || dtype == DType::kI32 ? 4 : 8; }

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kU64:
      return "U64";
  }
  return "unknown";
}

size_t StateTensor::bytes() const {
  size_t total = bytes_of(dtype);
  for (int64_t extent : shape) total *= static_cast<size_t>(extent);
  return total;
}

namespace {

void check_part(const StateTensor& tensor, uint64_t offset, uint64_t count) {
  const uint64_t size = tensor.bytes();
  if (offset > size || count > size - offset) {
    throw Failure(Code::kInvalid, tensor.name + ": bytes outside the tensor");
  }
}

}  // namespace

void StateTensor::read(uint64_t offset, void* to, uint64_t count) const {
  check_part(*this, offset, count);
  if (remote != nullptr) {
    remote->read(offset, to, count);
  } else {
    std::memcpy(to, static_cast<const char*>(data) + offset, count);
  }
}

void StateTensor::write(uint64_t offset, const void* from, uint64_t count) const {
  check_part(*this, offset, count);
  if (remote != nullptr) {
    remote->write(offset, from, count);
  } else {
    std::memcpy(static_cast<char*>(data) + offset, from, count);
  }
}

void StateRegistry::add(std::string name, DType dtype, std::vector<int64_t> shape, void* data,
                        bool is_replay, RemoteMemory* remote) {
  const auto has_same_name = [&](const StateTensor& tensor) { return tensor.name == name; };
  MR_CHECK(std::none_of(tensors_.begin(), tensors_.end(), has_same_name),
           "state tensor '" + name + "' is registered twice");
  for (int64_t extent : shape) {
    MR_CHECK(extent >= 0, "state tensor '" + name + "' has a negative extent");
  }
  StateTensor tensor{std::move(name), dtype, std::move(shape), data, is_replay, remote};
  MR_CHECK(data != nullptr || tensor.bytes() == 0,
           "state tensor '" + tensor.name + "' has no memory");
  tensors_.push_back(std::move(tensor));
}

}  // namespace millrace
