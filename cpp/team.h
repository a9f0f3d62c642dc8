// Team: the lanes that share one environment's tick. A loop over components gives lane l the
// components l, l + size, …; what one lane decides for all is decided by every lane from the same
// memory, after sync(). So a tick gives the same bits whatever the team: sums are never split.
// Freestanding. A device brings its own team with the same members; this one is a single lane.
#pragma once

#include "portable.h"

namespace millrace {

struct SoloTeam {
  MR_FN int lane() const { return 0; }
  MR_FN int size() const { return 1; }
  MR_FN bool leads() const { return true; }
  // What any lane wrote before is seen by all after.
  MR_FN void sync() const {}
  // The smallest value of all lanes, to all lanes.
  MR_FN int minimum(int value) const { return value; }
};

}  // namespace millrace
