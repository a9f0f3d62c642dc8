// The text of the Metal library. The .metal files and the headers that they share with the CPU are
// embedded as they are (cmake/metal_source.cmake); the device's compiler gets them as one text,
// since it finds no files. Pure C++; any thread.
#pragma once

#include <string>

namespace millrace {

struct MetalFile {
  const char* name;  // without a folder; null ends the list
  const char* text;
};

extern const MetalFile kMetalFiles[];

// All .metal files of the list in its order, each with what it includes in the place of the first
// directive that asks for it. Arithmetic is not contracted unless a file says so for itself. Throws
// std::logic_error for an include that is not in the list.
std::string metal_source(const MetalFile* files);

}  // namespace millrace
