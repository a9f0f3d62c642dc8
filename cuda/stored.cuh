// Numbers as carriers store them, fp32 or bf16; in registers they are fp32. A row's share of a lane
// is read and written in vectors, and can wait in registers as it was read.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "program_cuda.cuh"
#include "warp_team.cuh"

namespace millrace {

using Bf16 = __nv_bfloat16;

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(Bf16 value) { return __bfloat162float(value); }

// kCount numbers side by side, read and written at once as far as the machine can.
template <class Stored, int kCount>
struct alignas(sizeof(Stored) * kCount < 16 ? sizeof(Stored) * kCount : 16) Packed {
  Stored values[kCount];
};

// Rounded to what is stored; bf16 in pairs, which the machine does at once.
template <class Stored, int kCount>
__device__ Packed<Stored, kCount> packed(const float* values) {
  Packed<Stored, kCount> pack;
  if constexpr (std::is_same_v<Stored, Bf16> && kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(values[i], values[i + 1]);
      pack.values[i] = pair.x;
      pack.values[i + 1] = pair.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.values[i] = static_cast<Stored>(values[i]);
  }
  return pack;
}

// Whether computing on what is stored so may round more than fp32 does.
template <class Stored>
constexpr bool kIsRough = std::is_same_v<Stored, Bf16>;

// Whether packs of that many bytes can be read there; null is as good as any.
inline bool are_aligned(std::initializer_list<const void*> addresses, size_t bytes) {
  for (const void* address : addresses) {
    if (reinterpret_cast<uintptr_t>(address) % bytes != 0) return false;
  }
  return true;
}

// A lane's columns of one row (own_columns_body.h), as they are stored; kLanes share the row.
template <class Stored, int kOwn, int kVector, int kLanes = kWarp>
struct OwnRow {
  static constexpr int kPacks = kOwn / kVector;
  using Pack = Packed<Stored, kVector>;
  Pack packs[kPacks];

  __device__ void read(const Stored* row, int width) {
#pragma unroll(kPacks <= 32 ? kPacks : 1)
    for (int i = 0; i < kPacks; ++i) {
      const int column = (i * kLanes + TeamOf<kLanes>().lane()) * kVector;
      if (column < width) packs[i] = *reinterpret_cast<const Pack*>(row + column);
    }
  }

  __device__ void unpack(float (&own)[kOwn]) const {
#pragma unroll(kPacks <= 32 ? kPacks : 1)
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) own[i * kVector + j] = to_float(packs[i].values[j]);
    }
  }

  __device__ static void write(const float (&own)[kOwn], Stored* row, int width) {
#pragma unroll(kPacks <= 32 ? kPacks : 1)
    for (int i = 0; i < kPacks; ++i) {
      const int column = (i * kLanes + TeamOf<kLanes>().lane()) * kVector;
      if (column < width) {
        *reinterpret_cast<Pack*>(row + column) = packed<Stored, kVector>(own + i * kVector);
      }
    }
  }
};

// Calls launch with the operand's address, typed as what is stored there.
template <class Launch>
cudaError_t with_stored(const CudaFrame& frame, Operand operand, const Launch& launch) {
  return frame.is_bf16(operand) ? launch(frame.at<Bf16>(operand))
                                : launch(frame.at<float>(operand));
}

}  // namespace millrace
