// ProgramFacts: what is known of a device program before it runs: its ops, the carriers they touch,
// the terms inside. Plain data that owners state; graph_preflight judges it, `graph show` prints
// it. Everything here starts as what a graph cannot hold, so that what nobody stated is refused.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "philox.h"

namespace millrace {

// What an op does beside its own kernels.
enum class Hazard {
  kHostSync,        // the host waits for the device
  kHostRead,        // the host reads or needs what the op writes
  kAllocation,      // memory is allocated or freed
  kPageableHost,    // copies from or to host memory that is not pinned
  kColdLibrary,     // a library that has not yet run with these shapes
  kUnloadedModule,  // a kernel that is loaded or compiled at its first launch
  kCollective,      // several devices wait for each other
  kManyBindings,    // it binds more buffers than a command of a replay object holds
  kFarOffset,       // it binds an offset that a command of a replay object cannot hold
  kIndirectGrid,    // its grid is read from the device's memory
  kEdited,          // its commands change between replays, which may be in flight
  kOnHost           // it does not run on the device at all
};

struct HazardFacts {
  Hazard hazard;
  std::string what;          // "cudaStreamSynchronize"
  std::string setting = {};  // the configuration key that brings it, if one does
  std::string hint = {};     // of that key
};

// A kernel argument outside the argument block: a graph keeps the value that it was captured with.
struct ByValueScalar {
  std::string name;
  bool varies = true;  // between two replays
};

struct OpFacts {
  std::string name;  // unique in its program
  std::string site;  // where it is recorded: "fastsac_programs.cpp:120"
  std::string device;
  int context = 0;  // contexts of one process count from 1
  bool is_on_legacy_stream = true;
  std::vector<std::string> parts;  // stages of a fused op, in order
  std::vector<std::string> reads, writes;
  std::vector<ByValueScalar> scalars;
  std::vector<HazardFacts> hazards;
};

struct CarrierFacts {
  std::string name;
  std::string owner;  // who changes it between two runs of the program
  std::string device;
  uint64_t bytes = 0;
  bool is_sealed = false;  // address and shape are fixed for the run
};

// How what a term depends on changes, and by whom.
enum class TermClass {
  kPure,        // not at all: a function of the robot's state
  kInterval,    // timers and draws in carriers of the program
  kResetOwned,  // in the reset, outside the program
  kStepOwned,   // every tick, by the program's caller
  kHostEvent,   // when the host decides in the middle of a tick
  kGlobal       // by anyone at any time
};
const char* to_string(TermClass term_class);  // "RESET_OWNED"

struct TermFacts {
  std::string kind, name;  // "reward", "alive"
  std::string detail;      // "weight 10"
  std::optional<RandomStream> stream;
  int draws_per_tick = 0;   // 32-bit words of an environment inside the program, at most
  int draws_per_reset = 0;  // the same in a reset, outside the program
  TermClass term_class = TermClass::kGlobal;
  // A value that the program reads in every tick and that others change.
  std::string value_read_each_tick = {};
  bool is_value_in_block = false;
  bool is_certified = false;  // proven equal on all executors

  std::string subject() const { return kind + " " + name; }
};
const char* to_string(RandomStream stream);  // "observation_noise"

struct ProgramFacts {
  std::string name;
  std::vector<OpFacts> ops;
  std::vector<CarrierFacts> carriers;
  std::vector<TermFacts> terms;
  std::string active_recorder;  // another program that is being recorded now; empty = none
};

// {name, ops: [{name, site, device, parts, reads, writes}], carriers: [{name, owner, device,
// bytes}]}
nlohmann::json to_json(const ProgramFacts& program);

}  // namespace millrace
