// Tests for metal/metal_dispatch.h and the kernels that it launches.
#include "metal_dispatch.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "backend.h"
#include "metal_run.h"

namespace millrace {
namespace {

// Both backends' batches for one gather.
struct Batches {
  std::vector<float> cpu, metal;
  const char* kernel;
};

Batches gather_on_both(Gather gather, size_t first_float) {
  const size_t floats = gather.count * gather.columns.stride;
  const auto fill = [](std::vector<float>& values) { std::iota(values.begin(), values.end(), 1); };
  std::vector<float> ring(gather.capacity_rows * gather.row_stride + 4);
  fill(ring);
  // Vectors of the standard allocator begin at multiples of 16 bytes.
  gather.ring = ring.data() + first_float;
  Batches batches{std::vector<float>(floats), std::vector<float>(floats), nullptr};
  gather.batch = batches.cpu.data();
  backend_cpu().gather_async(nullptr, &gather);
  gather.batch = batches.metal.data();
  MetalDispatches dispatches;
  add_gather(dispatches, gather);
  run_dispatches(dispatches);
  batches.kernel = dispatches.all().front().kernel;
  return batches;
}

TEST(MetalGather, TakesTheRowsOfTheCpu) {
  for (const u32 stride : {1u, 12u, 13u, 40u, 432u, 930u}) {
    const u64 low = (u64{5} << 33) + 17;  // far beyond the capacity, and beyond 32 bits
    const Gather gather{nullptr, nullptr, 101, stride, 67, 3, 9, low, low + 90, {stride, 0, {}}};
    for (const size_t first_float : {0, 1}) {
      const Batches batches = gather_on_both(gather, first_float);
      EXPECT_EQ(batches.cpu, batches.metal) << stride;
      const bool is_aligned = stride % 4 == 0 && first_float == 0;
      EXPECT_STREQ(batches.kernel, is_aligned ? "gather_rows_aligned" : "gather_rows");
    }
  }
}

TEST(MetalGather, TakesColumnsInAnotherOrder) {
  const BatchColumns columns{90, 3, {{40, 0, 45}, {0, 45, 1}, {3, 46, 37}}};
  const Gather gather{nullptr, nullptr, 50, 88, 33, 4, 10, 2, 52, columns};
  const Batches batches = gather_on_both(gather, 0);
  EXPECT_EQ(batches.cpu, batches.metal);
  EXPECT_STREQ(batches.kernel, "gather_columns");
}

TEST(MetalGather, OfNothingIsNothing) {
  MetalDispatches dispatches;
  add_gather(dispatches, {nullptr, nullptr, 8, 4, 0, 1, 2, 0, 8, {4, 0, {}}});
  EXPECT_TRUE(dispatches.all().empty());
}

TEST(MetalCopy, CopiesRowsAtAnyAlignmentAndNothingBesideThem) {
  for (const size_t unit : {16, 4, 1}) {
    const size_t row_bytes = 37 * unit, from_pitch = 40 * unit, to_pitch = 41 * unit, rows = 9;
    std::vector<unsigned char> from(from_pitch * rows + 16), to(to_pitch * rows + 16, 0xEE);
    std::iota(from.begin(), from.end(), 0);
    std::vector<unsigned char> expected = to;
    backend_cpu().copy_2d_async(nullptr, CopyDirection::kDeviceToDevice, expected.data(), to_pitch,
                                from.data(), from_pitch, row_bytes, rows);
    MetalDispatches dispatches;
    add_copy_rows(dispatches, to.data(), to_pitch, from.data(), from_pitch, row_bytes, rows);
    run_dispatches(dispatches);
    EXPECT_EQ(to, expected) << unit;
    EXPECT_EQ(dispatches.all().front().kernel, std::string("copy_rows_by_") + std::to_string(unit));
  }
}

}  // namespace
}  // namespace millrace
