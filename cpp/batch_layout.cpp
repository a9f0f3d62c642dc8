#include "batch_layout.h"

#include "status.h"

namespace millrace {

namespace {

constexpr BatchLayout kLayouts[] = {BatchLayout::kRow, BatchLayout::kSac, BatchLayout::kCritic};

}  // namespace

const char* to_string(BatchLayout layout) {
  switch (layout) {
    case BatchLayout::kRow:
      return "row";
    case BatchLayout::kSac:
      return "sac";
    case BatchLayout::kCritic:
      return "critic";
  }
  return "unknown";
}

BatchLayout batch_layout(const std::string& name) {
  for (BatchLayout layout : kLayouts) {
    if (name == to_string(layout)) return layout;
  }
  throw Failure(Code::kInvalid, "layout '" + name + "' is not one of row, sac, critic");
}

BatchOffsets batch_offsets(const RowLayout& row, BatchLayout layout) {
  if (layout == BatchLayout::kRow) {
    return {row.observation(), row.critic(), row.action(),    row.reward(), row.next_observation(),
            row.next_critic(), row.done(),   row.truncated(), row.width()};
  }
  BatchOffsets at{};
  int end = 0;
  const auto place = [&end](int columns) {
    end += columns;
    return end - columns;
  };
  at.observation = layout == BatchLayout::kSac ? place(row.observation_dim) : -1;
  at.critic = place(row.critic_dim);
  at.action = place(row.action_dim);
  at.reward = place(1);
  at.next_observation = place(row.observation_dim);
  at.next_critic = place(row.critic_dim);
  at.done = place(1);
  at.truncated = place(1);
  at.width = end;
  return at;
}

BatchColumns batch_columns(const RowLayout& row, BatchLayout layout) {
  const BatchOffsets at = batch_offsets(row, layout);
  BatchColumns columns{};
  columns.stride = static_cast<u32>(layout == BatchLayout::kRow ? row.row_stride() : at.stride());
  if (layout == BatchLayout::kRow) return columns;
  const auto add = [&columns](int from, int to, int count) {
    if (to < 0 || count == 0) return;
    columns.segments[columns.segment_count++] = {static_cast<u32>(from), static_cast<u32>(to),
                                                 static_cast<u32>(count)};
  };
  add(row.observation(), at.observation, row.observation_dim);
  add(row.critic(), at.critic, row.critic_dim);
  add(row.action(), at.action, row.action_dim);
  add(row.reward(), at.reward, 1);
  add(row.next_observation(), at.next_observation, row.observation_dim);
  add(row.next_critic(), at.next_critic, row.critic_dim);
  add(row.done(), at.done, 2);  // done and truncated are neighbours in both orders
  return columns;
}

}  // namespace millrace
