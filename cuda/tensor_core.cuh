// The tensor cores' instructions on one warp's fragments (mma.sync, sm_80 and later): what CUDA has
// no C++ for. Every lane of the warp calls each function at the same time. tests/shim/cuda has a
// header of this name that does the same on the CPU.
//
// Lane l holds of a fragment, with row = l / 4 and pair = l % 4: of c, 16 x 8 sums, rows row and
// row + 8 at columns 2 pair and 2 pair + 1; of TF32, a 16 x 8 and b 8 x 8, every fourth column
// (row of b) from pair; of bf16, a 16 x 16 and b 16 x 8, two numbers side by side in each word.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace millrace {

// A float's bits, rounded to TF32's ten of mantissa.
__device__ inline unsigned round_to_tf32(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

// c += a b
__device__ inline void multiply_tf32(float (&c)[4], const unsigned (&a)[4],
                                     const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c += a b
__device__ inline void multiply_bf16(float (&c)[4], const unsigned (&a)[4], unsigned b_low,
                                     unsigned b_high) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
}

// Four 8 x 8 matrices from shared memory, as fragments or transposed: lane l brings the address of
// row l % 8 of matrix l / 8, a multiple of 16 bytes.
template <bool kTransposed>
__device__ inline void load_matrices(unsigned (&to)[4], const __nv_bfloat16* row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
}

}  // namespace millrace
