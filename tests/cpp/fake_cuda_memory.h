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

  // Device memory may be touched while one lives.
  class Window {
   public:
    explicit Window(FakeCudaMemory& memory) : memory_(memory) { memory_.open(1); }
    ~Window() { memory_.open(-1); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    FakeCudaMemory& memory_;
  };

  // Zeroed; null when there is no room.
  void* allocate(uint64_t bytes) {
    if (bytes > kRegionBytes || used_ + bytes + 3 * kAlignment > kRegionBytes) return nullptr;
    const uint64_t at = used_ + kGuardBytes;
    used_ = (at + bytes + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
    Window window(*this);
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
    const std::string wrong = guards_broken(found->first);
    found->second.is_live = false;
    live_bytes_ -= found->second.bytes;
    Window window(*this);
    std::memset(memory, kPoison, found->second.bytes);
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

  void open(int change) {
    if (!is_device_) return;
    const bool was_open = windows_ > 0;
    windows_ += change;
    const bool is_open = windows_ > 0;
    // Opened as far as it is used; memory that comes while it is open must be opened, too.
    const uint64_t bytes = (used_ + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (is_open && (!was_open || bytes > opened_bytes_)) {
      mprotect(region_, bytes, kOpen);
      opened_bytes_ = bytes;
    } else if (!is_open) {
      mprotect(region_, opened_bytes_, PROT_NONE);
      opened_bytes_ = 0;
    }
  }

  void fill_guards(uint64_t at, uint64_t bytes) {
    std::memset(region_ + at - kGuardBytes, kGuard, kGuardBytes);
    std::memset(region_ + at + bytes, kGuard, kGuardBytes);
  }

  bool holds(uint64_t at, uint64_t bytes, unsigned char value) {
    Window window(*this);
    for (uint64_t i = 0; i < bytes; ++i) {
      if (static_cast<unsigned char>(region_[at + i]) != value) return false;
    }
    return true;
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
  uint64_t used_ = 0, live_bytes_ = 0, opened_bytes_ = 0;
  int windows_ = 0;
};

}  // namespace millrace
