// Team: the lanes that share one environment's tick, or one row of a program's op. A loop over
// components gives lane l the components l, l + size, …; what one lane decides for all is decided
// by every lane from the same memory, after sync(). So a tick gives the same bits whatever the
// team: sums are never split. Ops of programs do split theirs: the bits depend on the team's size,
// and on nothing else.
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
  // The same of floats; a value that is not a number may be passed over.
  MR_FN float maximum(float value) const { return value; }
  MR_FN float sum(float value) const { return value; }
  // Adds to memory that the lanes share; any lane, any time.
  MR_FN void add(MR_THREAD u32* to, u32 value) const { *to += value; }
};

}  // namespace millrace
