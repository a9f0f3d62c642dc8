// Rows of parameters are brought to their lengths, as after an optimizer's step.
#pragma once

#include <vector>

#include "program_parts.h"

namespace millrace {

// A row of zeros has no direction and stays, as do the rows of blocks without a length.
void scale_rows(const std::vector<RowBlock>& blocks, float* parameters);

}  // namespace millrace
