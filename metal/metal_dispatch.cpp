#include "metal_dispatch.h"

namespace millrace {
namespace {

constexpr uint64_t kVectorBytes = 16;

uint64_t bits_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

void add_gather(MetalDispatches& to, const Gather& gather) {
  // Row numbers grow for ever. These name the same places of the ring and keep the division of the
  // kernel short.
  GatherArgs arguments{gather};
  Gather& near = arguments.gather;
  near.low = gather.low % gather.capacity_rows;
  near.high = near.low + (gather.high - gather.low);
  const uint64_t bits =
      bits_of(gather.batch) | bits_of(gather.ring) | gather.row_stride * sizeof(float);
  const char* const kernel = gather.columns.segment_count > 0 ? "gather_columns"
                             : bits % kVectorBytes == 0       ? "gather_rows_aligned"
                                                              : "gather_rows";
  to.add(kernel, arguments, groups_for(gather.count, kGatherThreads / kSimdWidth), kGatherThreads);
}

void add_update(MetalDispatches& to, const UpdateLaunch& launch) {
  to.add("update_environments", UpdateArgs{launch},
         groups_for(static_cast<uint64_t>(launch.num_envs), kUpdateThreads / kSimdWidth),
         kUpdateThreads);
}

void add_copy_rows(MetalDispatches& to, void* target, uint64_t target_pitch, const void* source,
                   uint64_t source_pitch, uint64_t row_bytes, uint64_t rows) {
  const uint64_t bits = bits_of(target) | bits_of(source) | target_pitch | source_pitch | row_bytes;
  const uint64_t piece = bits % kVectorBytes == 0 ? kVectorBytes : bits % 4 == 0 ? 4 : 1;
  const char* const kernel = piece == kVectorBytes ? "copy_rows_by_16"
                             : piece == 4          ? "copy_rows_by_4"
                                                   : "copy_rows_by_1";
  const CopyRowsArgs arguments{
      target, source, target_pitch / piece, source_pitch / piece, row_bytes / piece, rows};
  to.add_grid(kernel, arguments, groups_for(arguments.row_pieces, kCopyThreads), rows, 1,
              kCopyThreads);
}

}  // namespace millrace
