#include "host_block.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace millrace {

namespace {

constexpr uint64_t kAlignment = 64;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

uint64_t HostBlockLayout::add(uint64_t bytes) {
  const uint64_t offset = bytes_;
  bytes_ += aligned(bytes);
  return offset;
}

void HostBlock::Free::operator()(char* memory) const { std::free(memory); }

HostBlock::HostBlock(const HostBlockLayout& layout, Backend* device) {
  const uint64_t bytes = std::max(layout.bytes(), kAlignment);
  if (device != nullptr) {
    pinned_.reset(new Memory(*device, Memory::Kind::kPinnedHost, bytes));
    range_ = {reinterpret_cast<char*>(pinned_->floats()), bytes};
    return;
  }
  heap_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, bytes)));
  if (heap_ == nullptr) throw std::bad_alloc();
  std::memset(heap_.get(), 0, bytes);
  range_ = {heap_.get(), bytes};
}

}  // namespace millrace
