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

// In the order of a report: programs run as they are, each way against the others.
std::vector<std::string> gallery_names();
// `input_bytes`: of all inputs of the case with large ones. Throws kInvalid for an unknown name.
GalleryCase gallery_case(const std::string& name, uint64_t input_bytes);

// One program for each of `count` shapes, small and large ones mixed.
std::vector<GalleryProgramPtr> gallery_shapes(size_t count);
// A few ops that read one input of so many floats.
GalleryProgramPtr gallery_of_one_input(uint64_t floats);

}  // namespace millrace
