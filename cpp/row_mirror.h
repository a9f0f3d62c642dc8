// RowMirror: how a task's symmetry mirrors the vectors of a packed row, as a learner takes it.
#pragma once

#include "learner.h"
#include "task.h"

namespace millrace {

inline RowMirror row_mirror_of(const Task& task) {
  const auto columns = [](const MirrorMap& map) { return MirrorColumns{map.source, map.sign}; };
  return {columns(task.symmetry.observation), columns(task.symmetry.critic),
          columns(task.symmetry.action)};
}

}  // namespace millrace
