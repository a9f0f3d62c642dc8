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

// Calls visit(address, bytes) for each run of adjacent memory between `offset` and `offset +
// count`.
template <class Visit>
void each_run(const StateTensor& tensor, uint64_t offset, uint64_t count, const Visit& visit) {
  char* data = static_cast<char*>(tensor.data);
  if (tensor.row_pitch_bytes == 0) {
    visit(data + offset, count);
    return;
  }
  const uint64_t row_bytes = static_cast<uint64_t>(tensor.shape.back()) * bytes_of(tensor.dtype);
  while (count > 0) {
    const uint64_t in_row = offset % row_bytes;
    const uint64_t bytes = std::min(count, row_bytes - in_row);
    visit(data + offset / row_bytes * tensor.row_pitch_bytes + in_row, bytes);
    offset += bytes;
    count -= bytes;
  }
}

}  // namespace

void StateTensor::read(uint64_t offset, void* to, uint64_t count) const {
  check_part(*this, offset, count);
  if (remote != nullptr) {
    remote->read(offset, to, count);
  } else {
    char* next = static_cast<char*>(to);
    each_run(*this, offset, count, [&](const char* run, uint64_t bytes) {
      std::memcpy(next, run, bytes);
      next += bytes;
    });
  }
}

void StateTensor::write(uint64_t offset, const void* from, uint64_t count) const {
  check_part(*this, offset, count);
  if (remote != nullptr) {
    remote->write(offset, from, count);
  } else {
    const char* next = static_cast<const char*>(from);
    each_run(*this, offset, count, [&](char* run, uint64_t bytes) {
      std::memcpy(run, next, bytes);
      next += bytes;
    });
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

void StateRegistry::add_matrix(std::string name, std::vector<int64_t> shape, uint64_t row_stride,
                               float* data) {
  MR_CHECK(shape.size() == 2 && row_stride >= static_cast<uint64_t>(shape[1]),
           "rows of state matrix '" + name + "' overlap");
  add(std::move(name), DType::kF32, std::move(shape), data);
  tensors_.back().row_pitch_bytes = row_stride * sizeof(float);
}

}  // namespace millrace
