// Mistakes that a Metal backend can make: each drives a fake device through its protocols as no
// module of metal/ may.
#pragma once

#include <string>
#include <vector>

namespace metal_shim {

std::vector<std::string> names_of_mistakes();
void make_mistake(const std::string& name);

}  // namespace metal_shim
