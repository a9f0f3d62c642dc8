// HostBlock: one block of host memory, cleared, that several carriers share, so that a device
// copies all of them at once; pinned by that device if there is one. HostBlockLayout says where
// each carrier begins before there is memory. Owned by whoever owns the carriers; its address never
// changes.
#pragma once

#include <cstdint>
#include <memory>

#include "backend.h"

namespace millrace {

// Memory of somebody else.
struct HostRange {
  char* begin = nullptr;
  uint64_t bytes = 0;
};

class HostBlockLayout {
 public:
  // The offset of a carrier of so many bytes; each begins at a cache line of its own.
  uint64_t add(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

class HostBlock {
 public:
  // `device` null: from the heap.
  HostBlock(const HostBlockLayout& layout, Backend* device);

  char* at(uint64_t offset) const { return range_.begin + offset; }
  HostRange range() const { return range_; }

 private:
  struct Free {
    void operator()(char* memory) const;
  };

  std::unique_ptr<char, Free> heap_;
  std::unique_ptr<Memory> pinned_;
  HostRange range_;
};

}  // namespace millrace
