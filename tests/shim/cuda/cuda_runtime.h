// The CUDA runtime for g++ and clang++: as much of it as the sources of cuda/ use, so that their
// kernels run on the CPU by fibres.h.
//
// What a thread enqueues runs when it asks for the end, on that thread: one operation at a time,
// now of the first stream and now of the last that waits for no event. So what streams do not wait
// for shows, as far as one order can show it. A stream is used by the thread that created it; the
// default stream, null, is each thread's own and waits for no other.
//
// Stricter than a GPU, as fibres.h says. A launch may have no more threads and shared memory than a
// card allows. Shared memory begins each block as numbers that are none: cuda_kernel_source.cmake
// puts a shared_memory() behind each declaration. Blocks and their threads come in another order
// from block to block, so that a result that depends on it shows.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>

#include "fibres.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)

// ---- vectors ----

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct alignas(16) float4 {
  float x, y, z, w;
};

inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// ---- what a thread sees ----

struct ThreadIndex {
  struct X {
    operator unsigned() const { return device_shim::thread(); }
  } x;
};
inline constexpr ThreadIndex threadIdx{};

// Of the block that the calling thread runs.
inline thread_local uint3 blockIdx{};
inline thread_local dim3 blockDim, gridDim;

namespace device_shim {

inline thread_local uint64_t block_number = 0;  // of all that this thread has run
inline thread_local void* dynamic_memory = nullptr;

// Of a variable in shared memory, which the first thread of a block to come by makes new.
template <class Memory>
void shared_memory(Memory& memory, uint64_t& made_for_block) {
  if (made_for_block == block_number) return;
  made_for_block = block_number;
  spoil(&memory, sizeof(memory));
}

}  // namespace device_shim

inline void __syncthreads() { device_shim::wait_for_threadgroup(); }
inline void __syncwarp() { device_shim::exchange(nullptr, 0, "__syncwarp"); }

namespace device_shim {

// What the lanes of the warp brought, all of them: our kernels name no fewer.
template <class Value>
const Value* warp_values(unsigned lanes, Value value, const char* what) {
  static_assert(sizeof(Value) <= kMaxValueBytes, "room of an exchange");
  if (lanes != 0xFFFFFFFFu) refuse("an operation of some lanes of a warp");
  return static_cast<const Value*>(exchange(&value, sizeof(value), what));
}

}  // namespace device_shim

template <class Value>
Value __shfl_xor_sync(unsigned lanes, Value value, int mask) {
  return device_shim::warp_values(
      lanes, value, "__shfl_xor_sync")[device_shim::lane() ^ static_cast<unsigned>(mask)];
}

inline int __reduce_min_sync(unsigned lanes, int value) {
  const int* const all = device_shim::warp_values(lanes, value, "__reduce_min_sync");
  for (uint32_t lane = 0; lane < device_shim::kSimdWidth; ++lane) {
    value = all[lane] < value ? all[lane] : value;
  }
  return value;
}

// Fibres take turns at waits alone.
inline unsigned atomicAdd(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to += value;
  return before;
}

// But for a sum that lies just between two floats rounded once: a call of fmaf takes far longer.
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * b + c);
}
inline int min(int a, int b) { return a < b ? a : b; }

// ---- what the host calls ----

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorNotSupported = 801,
};

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;

enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
// Runs all that the calling thread has enqueued. Throws std::logic_error for what a GPU would not
// forgive, and forgets the rest.
cudaError_t cudaDeviceSynchronize();

enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
  return cudaSuccess;
}

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1 };
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);

enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 75 };
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);

enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace device_shim {

// How much dynamic shared memory a kernel asked for beyond what every one may have.
void allow_shared_bytes(const void* kernel, int bytes);
// Enqueues a call of `body` as every thread of every block.
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel,
                   std::function<void()> body);

}  // namespace device_shim

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute, int bytes) {
  device_shim::allow_shared_bytes(reinterpret_cast<const void*>(kernel), bytes);
  return cudaSuccess;
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  using Copies = std::tuple<std::remove_cv_t<Parameters>...>;
  return device_shim::launch(*config, reinterpret_cast<const void*>(kernel),
                             [kernel, copies = Copies(std::forward<Arguments>(arguments)...)] {
                               std::apply(kernel, copies);
                             });
}
