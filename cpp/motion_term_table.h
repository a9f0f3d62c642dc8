// The rows of the term table (term_table.h) that belong to motion tracking.
#pragma once

#include <vector>

#include "term_table.h"

namespace millrace {

std::vector<TermInfo> motion_term_table();

}  // namespace millrace
