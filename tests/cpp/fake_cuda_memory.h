// Memory of fake_cuda: blocks with guards in one region of addresses. Device memory cannot be
// touched but while a Window is open. Freed blocks are poisoned and never used again. Guarded by
// its owner's mutex.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>

namespace millrace {

class FakeCudaMemory {
 public:
  FakeCudaMemory(const char* name, bool is_device) : name_(name), is_device_(is_device) {
    region_ = static_cast<char*>(mmap(nullptr, kRegionBytes, is_device ? PROT_NONE : kOpen,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~FakeCudaMemory() { munmap(region_, kRegionBytes); }
  FakeCudaMemory(const FakeCudaMemory&) = delete;
  FakeCudaMemory& operator=(const FakeCudaMemory&) = delete;

  // Device memory may be touched while one lives: all of it, or the pages of some bytes.
  class Window {
   public:
    explicit Window(FakeCudaMemory& memory) : Window(memory, 0, memory.used_) {}
    Window(FakeCudaMemory& memory, uint64_t at, uint64_t bytes)
        : memory_(memory),
          first_(at / kPageBytes * kPageBytes),
          bytes_((at + bytes + kPageBytes - 1) / kPageBytes * kPageBytes - first_) {
      if (memory_.windows_++ == 0) memory_.protect(first_, bytes_, kOpen);
    }
    ~Window() {
      if (--memory_.windows_ == 0) memory_.protect(first_, bytes_, PROT_NONE);
    }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    FakeCudaMemory& memory_;
    const uint64_t first_, bytes_;
  };

  // Zeroed; null when there is no room.
  void* allocate(uint64_t bytes) {
    if (bytes > kRegionBytes || used_ + bytes + 3 * kAlignment > kRegionBytes) return nullptr;
    const uint64_t at = used_ + kGuardBytes;
    used_ = (at + bytes + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
    const Window window(*this, at - kGuardBytes, bytes + 2 * kGuardBytes);
    fill_guards(at, bytes);
    blocks_[at] = {bytes, true};
    live_bytes_ += bytes;
    return region_ + at;
  }

  // What is wrong with the block or with freeing it; empty when nothing is.
  std::string free(void* memory) {
    const auto found = blocks_.find(offset_of(memory));
    if (!owns(memory) || found == blocks_.end()) return name_ + " was freed that is no block";
    if (!found->second.is_live) return name_ + " was freed twice";
    const uint64_t at = found->first, bytes = found->second.bytes;
    const Window window(*this, at - kGuardBytes, bytes + 2 * kGuardBytes);
    const std::string wrong = guards_broken(at);
    found->second.is_live = false;
    live_bytes_ -= bytes;
    std::memset(memory, kPoison, bytes);
    return wrong;
  }

  bool owns(const void* address) const {
    return address >= region_ && address < region_ + kRegionBytes;
  }

  // What is wrong with a use of these bytes; empty when nothing is.
  std::string use(const void* address, uint64_t bytes) const {
    if (!owns(address)) return "an address outside of " + name_;
    const uint64_t at = offset_of(address);
    auto block = blocks_.upper_bound(at);
    if (block == blocks_.begin()) return "an address before any block of " + name_;
    --block;
    if (at + bytes > block->first + block->second.bytes) return "bytes behind a block of " + name_;
    return block->second.is_live ? "" : "freed " + name_;
  }

  // Of all blocks, freed or not: the first guard or poison that was overwritten.
  std::string first_broken() {
    const Window window(*this);
    for (const auto& block : blocks_) {
      const std::string wrong = guards_broken(block.first);
      if (!wrong.empty()) return wrong;
      if (!block.second.is_live && !holds(block.first, block.second.bytes, kPoison)) {
        return "freed " + name_ + " was written";
      }
    }
    return "";
  }

  uint64_t live_bytes() const { return live_bytes_; }

 private:
  struct Block {
    uint64_t bytes;
    bool is_live;
  };

  static constexpr uint64_t kRegionBytes = uint64_t{1} << 30;
  static constexpr uint64_t kAlignment = 256;
  static constexpr uint64_t kGuardBytes = 256;
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr int kOpen = PROT_READ | PROT_WRITE;
  static constexpr unsigned char kGuard = 0xFB;
  static constexpr unsigned char kPoison = 0xFF;  // NaN as float, -1 as int

  uint64_t offset_of(const void* address) const {
    return static_cast<uint64_t>(static_cast<const char*>(address) - region_);
  }

  void protect(uint64_t first, uint64_t bytes, int how) {
    if (is_device_) mprotect(region_ + first, bytes, how);
  }

  void fill_guards(uint64_t at, uint64_t bytes) {
    std::memset(region_ + at - kGuardBytes, kGuard, kGuardBytes);
    std::memset(region_ + at + bytes, kGuard, kGuardBytes);
  }

  bool holds(uint64_t at, uint64_t bytes, unsigned char value) const {
    const char* first = region_ + at;
    return bytes == 0 || (static_cast<unsigned char>(*first) == value &&
                          std::memcmp(first, first + 1, bytes - 1) == 0);
  }

  std::string guards_broken(uint64_t at) {
    if (!holds(at - kGuardBytes, kGuardBytes, kGuard)) return "bytes before " + name_ + " written";
    if (!holds(at + blocks_[at].bytes, kGuardBytes, kGuard)) {
      return "bytes behind " + name_ + " written";
    }
    return "";
  }

  const std::string name_;
  const bool is_device_;
  char* region_;
  std::map<uint64_t, Block> blocks_;  // by offset
  uint64_t used_ = 0, live_bytes_ = 0;
  int windows_ = 0;
};

}  // namespace millrace
