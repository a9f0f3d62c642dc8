// MetalDispatch: one launch of a kernel, without Metal's own types: what the host side encodes, in
// order, and what tests run on the CPU. Whoever encodes a list makes each entry wait for the ones
// before it, as a serial compute encoder does; in an indirect command buffer that is a barrier per
// command.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "metal_args.h"

namespace millrace {

struct MetalDispatch {
  const char* kernel;                    // its name in the library; null: a copy, below
  std::vector<unsigned char> arguments;  // a struct of metal_args.h, bound at buffer index 0
  uint32_t threadgroups[3];              // none of them 0
  uint32_t threads;                      // of a threadgroup, in one dimension
  uint32_t threadgroup_bytes;            // at threadgroup index 0, a multiple of 16; 0: none

  // Instead of a kernel: bytes of the host's memory, which stay as they are until the work was
  // observed complete, to an address of the device. No kernel can read them.
  void* copy_to = nullptr;
  const void* copy_from_host = nullptr;
  uint64_t copy_bytes = 0;
};

class MetalDispatches {
 public:
  // An empty grid is nothing to do.
  template <class Arguments>
  void add(const char* kernel, const Arguments& arguments, uint64_t threadgroups, uint32_t threads,
           uint32_t threadgroup_bytes = 0) {
    add_grid(kernel, arguments, threadgroups, 1, 1, threads, threadgroup_bytes);
  }
  template <class Arguments>
  void add_grid(const char* kernel, const Arguments& arguments, uint64_t x, uint64_t y, uint64_t z,
                uint32_t threads, uint32_t threadgroup_bytes = 0) {
    static_assert(std::is_trivially_copyable<Arguments>::value, "read by a device");
    if (x == 0 || y == 0 || z == 0) return;
    MetalDispatch one{};
    one.kernel = kernel;
    one.arguments.resize(sizeof(arguments));
    std::memcpy(one.arguments.data(), &arguments, sizeof(arguments));
    one.threadgroups[0] = static_cast<uint32_t>(x);
    one.threadgroups[1] = static_cast<uint32_t>(y);
    one.threadgroups[2] = static_cast<uint32_t>(z);
    one.threads = threads;
    one.threadgroup_bytes = (threadgroup_bytes + 15) / 16 * 16;
    all_.push_back(std::move(one));
  }
  void add_copy(void* to, const void* from_host, uint64_t bytes) {
    if (bytes == 0) return;
    MetalDispatch one{};
    one.copy_to = to;
    one.copy_from_host = from_host;
    one.copy_bytes = bytes;
    all_.push_back(std::move(one));
  }

  void add(const MetalDispatch& dispatch) { all_.push_back(dispatch); }

  const std::vector<MetalDispatch>& all() const { return all_; }

 private:
  std::vector<MetalDispatch> all_;
};

constexpr uint64_t groups_for(uint64_t items, uint64_t items_of_a_group) {
  return (items + items_of_a_group - 1) / items_of_a_group;
}

// ---- what is not a program; addresses are the device's ----

void add_gather(MetalDispatches& to, const Gather& gather);
void add_update(MetalDispatches& to, const UpdateLaunch& launch);
// `rows` rows of row_bytes; pitches are bytes from row to row. The two places do not overlap.
void add_copy_rows(MetalDispatches& to, void* target, uint64_t target_pitch, const void* source,
                   uint64_t source_pitch, uint64_t row_bytes, uint64_t rows);

}  // namespace millrace
