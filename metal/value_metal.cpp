// The launches of value.metal.
#include <algorithm>

#include "program_metal.h"

namespace millrace {
namespace {

constexpr u64 kMaxThreadgroupBytes = 32 << 10;
constexpr u64 kMostRowsOfAGroup = 4;  // one for each simdgroup

template <class AnyOp>
CategoricalValues values_of(const MetalFrame& frame, const AnyOp& op) {
  return {op.rows,
          op.groups,
          op.value_stride,
          op.support,
          frame.floats(op.logits),
          frame.floats(op.bias)};
}

}  // namespace

u64 metal_scratch_floats(const CriticLossOp&) { return 4 * kParts; }

u64 metal_scratch_floats(const ActorLossOp&) { return 2 * kParts; }

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ProjectTargetOp& op) {
  const u64 row_bytes = (static_cast<u64>(op.support.atoms) + 1) * sizeof(u32);
  const u64 rows = std::min(kMostRowsOfAGroup, kMaxThreadgroupBytes / row_bytes);
  if (rows == 0) return false;
  const ProjectTargetArgs arguments = {
      frame.arguments,
      values_of(frame, op),
      {op.source_rows, op.reward_column, op.done_column, op.truncated_column, op.gamma,
       frame.floats(op.log_probability), frame.floats(op.log_alpha)},
      frame.floats(op.target),
      op.takes_smallest ? 1 : 0,
      static_cast<int>(rows)};
  to.add("project_targets", arguments, groups_for(static_cast<u64>(op.rows), rows),
         static_cast<uint32_t>(rows) * kSimdWidth, static_cast<uint32_t>(rows * row_bytes));
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const CriticLossOp& op) {
  const float share = 1.0f / static_cast<float>(op.rows);
  const float group_share = share / static_cast<float>(op.groups);
  const float loss_share = op.is_mean_over_groups ? group_share : share;
  add_parts(to, "critic_losses",
            CriticLossArgs{values_of(frame, op), loss_share, frame.floats(op.target),
                           frame.floats(op.logits_gradient), frame.scratch});
  const FinishCriticLossArgs finish = {frame.scratch,
                                       loss_share,
                                       group_share,
                                       frame.floats(op.loss),
                                       frame.floats(op.value_mean),
                                       frame.floats(op.value_max),
                                       frame.floats(op.value_min)};
  add_finish(to, "finish_critic_loss", finish);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ActorLossOp& op) {
  const float share = 1.0f / static_cast<float>(op.rows);
  add_parts(to, "actor_losses",
            ActorLossArgs{values_of(frame, op), op.takes_smallest ? 1 : 0,
                          frame.floats(op.log_probability), frame.floats(op.logits_gradient),
                          frame.scratch});
  const FinishActorLossArgs finish = {
      frame.scratch,
      share,
      op.takes_smallest ? share : share / static_cast<float>(op.groups),
      frame.floats(op.log_alpha),
      frame.floats(op.loss),
      frame.floats(op.entropy)};
  add_finish(to, "finish_actor_loss", finish);
  return true;
}

}  // namespace millrace
