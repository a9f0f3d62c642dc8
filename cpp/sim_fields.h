// The state fields of the physics owner by name and size: how a robot and a task fill state.h.
// Any thread.
#pragma once

#include <array>

#include "sim_backend.h"

namespace millrace {

const char* sim_field_name(SimField field);

// Components of each field; 0 = this robot or task does not have it.
std::array<int, kSimFieldCount> sim_field_dims(const SimSpec& spec, int joints);

}  // namespace millrace
