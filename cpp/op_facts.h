// OpFacts: a recorded program as preflight judges it: what its ops touch, which numbers and
// addresses they take by value, what of them runs on the host.
#pragma once

#include "program.h"
#include "program_facts.h"

namespace millrace {

// How ops find inputs that lie elsewhere in every run.
enum class InputUse {
  kByValue,      // at the address of this run, passed by value
  kCopied,       // in a carrier of the program, where each run copies them
  kThroughBlock  // by the address in the argument block
};

ProgramFacts facts_of(const Program& program, const std::string& device, InputUse inputs);

// "control.cpp:120".
std::string shown(const Site& site);
// Its place in the program and its kind: "12 pointwise".
std::string name_of(const Program& program, size_t op);

}  // namespace millrace
