// What only Hopper has, as functions: barriers in shared memory, copies by the bulk engine, matrix
// products of four warps at once, and the memory of the other blocks of a cluster. Compiled for
// sm_90a alone. All addresses are of shared memory unless they say otherwise.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include "portable.h"

namespace millrace {

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

// ---- barriers: one phase is over when all that were announced have arrived, and all bytes ----

__device__ __forceinline__ void barrier_init(u64* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals));
}

// Behind all barrier_init, by the thread that called them.
__device__ __forceinline__ void barriers_are_made() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

// Arrives, and announces bytes that are on their way.
__device__ __forceinline__ void barrier_expect(u64* barrier, u32 bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

// Until the phase of that parity is over: 0 for the first, then 1, then 0 again.
__device__ __forceinline__ void barrier_wait(u64* barrier, u32 parity) {
  asm volatile(
      "{\n"
      ".reg .pred is_over;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 is_over, [%0], %1;\n"
      "@is_over bra over_%=;\n"
      "bra again_%=;\n"
      "over_%=:\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// Of `threads` of the block, which use the same number, 1 to 15.
__device__ __forceinline__ void sync_threads(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- clusters ----

__device__ __forceinline__ u32 rank_in_cluster() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Of all threads of all blocks.
__device__ __forceinline__ void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// Writes to the place that `place` is in another block of the cluster, whose `barrier` gets the
// bytes.
__device__ __forceinline__ void put_at_peer(u32 rank, const float4* place, const u64* barrier,
                                            float4 value) {
  u32 there, barrier_there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_address(place)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(barrier_there)
               : "r"(shared_address(barrier)), "r"(rank));
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(there),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier_there)
      : "memory");
}

// ---- the bulk engine: boxes of a matrix of three axes ----

// The barrier gets the bytes of the whole box; outside the matrix it is zero.
__device__ __forceinline__ void load_box(void* to, const CUtensorMap& from, u64* barrier, int first,
                                         int second, int third) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(&from), "r"(shared_address(barrier)), "r"(first), "r"(second), "r"(third)
      : "memory");
}

// What is outside the matrix is left out. Behind fence_for_engine() of those who wrote the box.
__device__ __forceinline__ void store_box(const CUtensorMap& to, const void* from, int first,
                                          int second, int third) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&to),
      "r"(shared_address(from)), "r"(first), "r"(second), "r"(third)
      : "memory");
}

__device__ __forceinline__ void end_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until the engine has read all that this thread has given it to store.
__device__ __forceinline__ void wait_for_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void fence_for_engine() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- matrices ----

// How 16-byte pieces of the rows of a box trade places: rows of 128 or of 32 bytes.
enum class Swizzle : u32 { k128 = 1, k32 = 3 };

// Of rows that lie as load_box leaves them, columns along k; `address` is a multiple of a pattern
// of eight rows, or k16 columns further on.
__device__ __forceinline__ u64 matrix_of(u32 address, Swizzle swizzle) {
  const u64 bytes_of_eight_rows = swizzle == Swizzle::k128 ? 1024 : 256;
  return static_cast<u64>((address & 0x3FFFF) >> 4) | u64{1} << 16 |
         bytes_of_eight_rows >> 4 << 32 | static_cast<u64>(swizzle) << 62;
}

// Further on in shared memory.
__device__ __forceinline__ u64 moved(u64 matrix, u32 bytes) { return matrix + bytes / 16; }

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void finish_products() {
  asm volatile(
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;" ::
          : "memory");
}

// Four 8 x 8 matrices of bf16 to shared memory, from the registers where products leave them.
__device__ __forceinline__ void store_matrices(u32 address, const u32 (&pairs)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3]));
}

// Of four warps: sums += a b', 64 rows of a and 96 columns of b, 16 of k; without has_sums they
// begin here. A thread's sums: of rows lane / 4 and that + 8 of its warp's sixteen, two columns
// from each eight (lane % 4 * 2), in the order row, row, row + 8, row + 8.
__device__ __forceinline__ void add_products(float (&sums)[48], u64 a, u64 b, bool has_sums) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %50, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47 "
      "}, %48, %49, adds, 1, 1, 0, 0;\n}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]),
        "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]),
        "+f"(sums[22]), "+f"(sums[23]), "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]),
        "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31]),
        "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]), "+f"(sums[36]),
        "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]),
        "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]),
        "+f"(sums[47])
      : "l"(a), "l"(b), "r"(static_cast<int>(has_sums)));
}

}  // namespace millrace
