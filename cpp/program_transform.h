// Program transformation: rewrites what keeps a program out of a graph, without changing what it
// computes (the CGCT of GraCE). Pure: nothing is measured or run here.
//
//   a host scalar                 is read from the argument block, which is refreshed for each run
//   a copy of a host buffer       is made before the program, if no op before it in the program
//                                 touches what it overwrites
//   an op placed on the host      moves to the device, if its device version gives the same bits
//   any other op of the host      stays: it splits the program into segments that can be captured,
//                                 and runs between them
//   an input (optional: PI)       is read through its address in the argument block, where it would
//                                 have to be copied into a carrier at a fixed address
//
// Every rewrite and every op that stays is listed with its place and the reason.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"

namespace millrace {

struct Rewrite {
  size_t op;  // its number in the original program
  Site site;
  std::string kind;  // "scalar_to_block", "copy_moved_before", "moved_to_device", "input_to_block"
  std::string reason;
};

struct Refusal {
  size_t op;
  Site site;
  std::string reason;
};

struct TransformedProgram {
  struct Segment {
    Program program;
    bool is_captured;  // else its ops run on the host, or copy from there
  };

  std::vector<CopyInOp> copies_before;  // in order
  std::vector<Segment> segments;        // in order
  std::vector<Rewrite> rewrites;
  std::vector<Refusal> refusals;

  size_t captured_ops() const;
  // {rewrites: [{op, site, kind, reason}], refusals, segments: [{ops, captured}],
  // copies_before, captured_ops}
  nlohmann::json describe() const;
};

enum class InputRewrite { kNone, kThroughBlock };

TransformedProgram transform(const Program& program, InputRewrite inputs);

}  // namespace millrace
