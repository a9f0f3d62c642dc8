// Gallery: programs with the structure of cases from the literature on graph launches (GraCE, see
// docs/adr/0014), built from real ops over random data. They reproduce what is said of those
// programs (how many ops, what varies, what stands in the way), not the models themselves; their
// names say so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program.h"

namespace millrace {

struct GalleryProgram {
  explicit GalleryProgram(const std::string& name) : program(name, workspace) {}
  GalleryProgram(const GalleryProgram&) = delete;
  GalleryProgram& operator=(const GalleryProgram&) = delete;

  Workspace workspace;
  Program program;
};
using GalleryProgramPtr = std::unique_ptr<GalleryProgram>;

struct GalleryCase {
  std::string name;
  std::string about;  // what it reproduces
  std::vector<GalleryProgramPtr> programs;
};

struct GalleryScale {
  uint64_t small_floats = 14848;        // of a kernel of about a microsecond
  uint64_t large_floats = 1ull << 22;   // of a kernel that takes longer than its launch
  uint64_t input_bytes = 312ull << 20;  // of all inputs of the case with large ones
};

// In the order of a report.
std::vector<std::string> gallery_names();
// Throws kInvalid for an unknown name.
GalleryCase gallery_case(const std::string& name, const GalleryScale& scale);

// One program of small kernels for each of `count` shapes.
std::vector<GalleryProgramPtr> gallery_shapes(size_t count);
// 16 ops, one of which reads one input of so many floats.
GalleryProgramPtr gallery_of_one_input(uint64_t floats, const GalleryScale& scale);

}  // namespace millrace
