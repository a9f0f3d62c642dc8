// Memory of a fake Metal device: one file of memory that is mapped twice. The host's addresses can
// always be used, the GPU's only while a Window is open, and only of the blocks that it was opened
// for. Blocks begin at pages of their own, with a page between them; freed ones are never reused.
// Guarded by its owner's mutex.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>

namespace metal_shim {

class FakeMetalMemory {
 public:
  static constexpr uint64_t kRegionBytes = uint64_t{64} << 30;  // sparse
  static constexpr uint64_t kPageBytes = 4096;

  FakeMetalMemory() : file_(memfd_create("fake_metal", 0)) {
    if (ftruncate(file_, static_cast<off_t>(kRegionBytes)) != 0) _exit(1);
    host_ = map(PROT_READ | PROT_WRITE);
    gpu_ = map(PROT_NONE);
  }
  ~FakeMetalMemory() {
    munmap(host_, kRegionBytes);
    munmap(gpu_, kRegionBytes);
    close(file_);
  }
  FakeMetalMemory(const FakeMetalMemory&) = delete;
  FakeMetalMemory& operator=(const FakeMetalMemory&) = delete;

  // Zeroed. The number of the block; 0 when there is no room.
  uint64_t allocate(uint64_t bytes) {
    const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (pages > kRegionBytes - used_ - kPageBytes) return 0;
    used_ += kPageBytes;
    const uint64_t at = used_;
    used_ += pages;
    blocks_[at] = {bytes, pages};
    std::memset(host_ + at + bytes, kGuard, pages - bytes);
    live_bytes_ += bytes;
    return at;
  }

  // What is wrong with the block; empty when nothing is.
  std::string free(uint64_t block) {
    const auto found = blocks_.find(block);
    const Block freed = found->second;
    blocks_.erase(found);
    live_bytes_ -= freed.bytes;
    bool is_whole = true;
    for (uint64_t at = freed.bytes; at < freed.pages; ++at) {
      is_whole &= static_cast<unsigned char>(host_[block + at]) == kGuard;
    }
    madvise(host_ + block, freed.pages, MADV_REMOVE);
    return is_whole ? "" : "bytes behind a buffer were written";
  }

  char* host(uint64_t block) const { return host_ + block; }
  uint64_t gpu_address(uint64_t block) const { return reinterpret_cast<uint64_t>(gpu_ + block); }
  bool is_gpu_address(uint64_t address) const {
    return address >= gpu_address(0) && address < gpu_address(used_);
  }
  bool is_host_address(uint64_t address) const {
    return address >= reinterpret_cast<uint64_t>(host_) &&
           address < reinterpret_cast<uint64_t>(host_ + used_);
  }
  bool is_live(uint64_t block) const { return blocks_.count(block) != 0; }
  uint64_t live_bytes() const { return live_bytes_; }
  // The live block that holds the address, or ends there; 0: none.
  uint64_t block_of(uint64_t gpu_address_of_byte) const {
    const uint64_t at = gpu_address_of_byte - gpu_address(0);
    auto block = blocks_.upper_bound(at);
    if (block == blocks_.begin()) return 0;
    --block;
    return at <= block->first + block->second.pages ? block->first : 0;
  }

  // Opens the GPU's view of these blocks; all others stay closed.
  void open(const std::set<uint64_t>& blocks) {
    if (blocks.size() == blocks_.size()) return protect(0, used_, PROT_READ | PROT_WRITE);
    for (const uint64_t block : blocks) {
      const auto found = blocks_.find(block);
      if (found != blocks_.end()) protect(block, found->second.pages, PROT_READ | PROT_WRITE);
    }
  }
  void close_all() { protect(0, used_, PROT_NONE); }

 private:
  struct Block {
    uint64_t bytes, pages;  // pages in bytes, too
  };
  static constexpr unsigned char kGuard = 0xFB;

  // In arguments a number may stand beside padding, which holds whatever was on the stack: the
  // upper half of an address, say. So the lower halves of ours are no numbers that arguments hold,
  // neither as integers nor as floats.
  static constexpr uint64_t kHalf = uint64_t{1} << 32, kFirstLowerHalf = 0x10000000;

  char* map(int how) const {
    constexpr uint64_t kReserved = kRegionBytes + 2 * kHalf;
    void* const reserved =
        mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) _exit(1);
    char* const begin = static_cast<char*>(reserved);
    const uint64_t lower_half = reinterpret_cast<uint64_t>(begin) % kHalf;
    char* const at = begin + (kHalf - lower_half) + kFirstLowerHalf;
    void* const region =
        mmap(at, kRegionBytes, how, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_, 0);
    if (region == MAP_FAILED) _exit(1);
    munmap(begin, static_cast<size_t>(at - begin));
    munmap(at + kRegionBytes, kReserved - kRegionBytes - static_cast<size_t>(at - begin));
    return static_cast<char*>(region);
  }
  void protect(uint64_t at, uint64_t bytes, int how) { mprotect(gpu_ + at, bytes, how); }

  const int file_;
  char* host_;
  char* gpu_;
  std::map<uint64_t, Block> blocks_;  // live ones, by offset
  uint64_t used_ = 0, live_bytes_ = 0;
};

}  // namespace metal_shim
