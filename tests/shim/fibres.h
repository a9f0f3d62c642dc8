// The threads of one threadgroup (CUDA's block; a simdgroup is its warp) as fibres of the calling
// thread: each runs until it waits for the others, and each simdgroup until it waits for the rest.
// So a kernel that forgets a barrier, waits where not all threads come by, or calls an operation of
// its simdgroup in a branch of some lanes shows on the CPU.
//
// Stricter than a GPU: every thread of a threadgroup must reach each barrier, and every lane of a
// simdgroup each of its operations, also threads that have nothing to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace device_shim {

constexpr uint32_t kSimdWidth = 32;
constexpr size_t kMaxValueBytes = 32;  // that a lane exchanges

// The order in which threads get their turns between two waits.
enum class Turns { kForward, kBackward };

// Calls body(context, thread) as every thread of a threadgroup, a multiple of kSimdWidth of them.
// Throws std::logic_error where they wait for different things.
void run_threadgroup(uint32_t threads, Turns turns, void (*body)(void* context, uint32_t thread),
                     void* context);

// ---- called by those threads ----

uint32_t thread();  // its number in the threadgroup
uint32_t lane();    // and in its simdgroup
void wait_for_threadgroup();
// What every lane of the simdgroup brought, one behind the other, once all did; valid until the
// thread's next call. `what` names the operation: all lanes must be at the same one.
const void* exchange(const void* value, size_t bytes, const char* what);
// The thread does what a GPU would not forgive: ends the run, which names it.
[[noreturn]] void refuse(const char* what);

// Memory that nobody has written yet: numbers that are none.
inline void spoil(void* memory, size_t bytes) {
  if (bytes > 0) std::memset(memory, 0xFF, bytes);
}

}  // namespace device_shim
