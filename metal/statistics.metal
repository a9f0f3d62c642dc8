// Scalars of one update join the totals of an interval: one thread each.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

kernel void fold_scalars(constant const StatisticsArgs& args [[buffer(0)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]]) {
  const u32 i = group.x * kMaxScalars + thread_index;
  const bool is_finite = *args.finite == 1.0f;
  if (i == 0) args.totals[args.count + (is_finite ? 0 : 1)] += 1.0f;
  if (i >= args.count || !is_finite) return;
  const float value = args.scalars[i], total = args.totals[i];
  const Fold fold = args.folds[i];
  args.totals[i] = fold == Fold::kSum   ? total + value
                   : fold == Fold::kMax ? mr_max(value, total)
                                        : mr_min(value, total);
}
