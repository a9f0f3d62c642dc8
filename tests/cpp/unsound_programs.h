// A program that nothing speaks against, and for each finding of the graph layer what spoils it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph_preflight.h"

namespace millrace {

struct GraphCase {
  ProgramFacts program;
  GraphBackend backend;
  GraphPolicy policy = GraphPolicy::kOn;
  int least_ops = 1;

  std::vector<Finding> check() const { return check_graph(program, backend, policy, least_ops); }
};

inline TermFacts sound_term(const std::string& kind, const std::string& name, TermClass owner) {
  TermFacts term;
  term.kind = kind;
  term.name = name;
  term.term_class = owner;
  term.is_certified = true;
  return term;
}

inline GraphCase sound_case() {
  GraphCase sound;
  sound.backend = {"cuda", true, "", {12080, 12080, 0, 0, ""}};
  sound.program.name = "control";
  for (const char* name : {"observe", "act"}) {
    OpFacts op;
    op.name = name;
    op.site = std::string("control.cpp:") + (sound.program.ops.empty() ? "10" : "20");
    op.device = "cuda";
    op.context = 1;
    op.is_on_legacy_stream = false;
    op.scalars = {{"num_envs", false}};
    sound.program.ops.push_back(op);
  }
  sound.program.ops[0].writes = sound.program.ops[1].reads = {"observation"};
  CarrierFacts carrier;
  carrier.name = "observation";
  carrier.device = "cuda";
  carrier.bytes = 4096;
  carrier.is_sealed = true;
  sound.program.carriers = {carrier};
  sound.program.terms = {sound_term("reward", "alive", TermClass::kPure),
                         sound_term("event", "push", TermClass::kInterval),
                         sound_term("curriculum", "penalty", TermClass::kResetOwned)};
  sound.program.terms[1].stream = kStreamEvent;
  sound.program.terms[1].draws_per_tick = 7;
  sound.program.terms[2].value_read_each_tick = "the penalty scale";
  sound.program.terms[2].is_value_in_block = true;
  return sound;
}

struct Spoiler {
  const char* id;
  const char* subject;
  std::function<void(GraphCase&)> spoil;
};

inline std::function<void(GraphCase&)> hazard(Hazard kind, const char* what) {
  return [=](GraphCase& spoilt) { spoilt.program.ops[1].hazards.push_back({kind, what}); };
}

// In the order in which check_graph reports them.
inline std::vector<Spoiler> spoilers() {
  using Case = GraphCase&;
  return {
      {"DRIVER_TOO_OLD", "device", [](Case c) { c.backend.device.driver_version = 11080; }},
      {"PROFILER_ACTIVE", "device", [](Case c) { c.backend.device.is_profiled = 1; }},
      {"FOREIGN_CAPTURE_ACTIVE", "control", [](Case c) { c.program.active_recorder = "learner"; }},
      {"TOO_SMALL", "control", [](Case c) { c.least_ops = 3; }},
      {"MULTI_CONTEXT", "control", [](Case c) { c.program.ops[1].context = 2; }},
      {"LEGACY_STREAM", "control.act", [](Case c) { c.program.ops[1].is_on_legacy_stream = true; }},
      {"WRONG_DEVICE", "control.act",
       [](Case c) {
         c.program.ops[1].device = "cpu";
         c.program.ops[1].reads.clear();
       }},
      {"BY_VALUE_VARYING", "control.act",
       [](Case c) {
         c.program.ops[1].scalars.push_back({"learning_rate", true});
       }},
      {"UNSTABLE_CARRIER", "observation", [](Case c) { c.program.carriers[0].is_sealed = false; }},
      {"UNSTABLE_CARRIER", "action", [](Case c) { c.program.ops[1].writes = {"action"}; }},
      {"WRONG_DEVICE", "observation", [](Case c) { c.program.carriers[0].device = "cpu"; }},
      {"HOST_SYNC", "control.act", hazard(Hazard::kHostSync, "cudaStreamSynchronize")},
      {"HOST_READ", "control.act", hazard(Hazard::kHostRead, "the largest action")},
      {"ALLOC_IN_WINDOW", "control.act", hazard(Hazard::kAllocation, "a batch of 64 rows")},
      {"UNPINNED_HOST", "control.act", hazard(Hazard::kPageableHost, "a Java array")},
      {"LIB_NOT_WARM", "control.act", hazard(Hazard::kColdLibrary, "cublasSgemm, 4096 x 98")},
      {"MODULE_NOT_LOADED", "control.act", hazard(Hazard::kUnloadedModule, "act_kernel")},
      {"COLLECTIVE", "control.act", hazard(Hazard::kCollective, "all-reduce over 2 devices")},
      {"TOO_MANY_BINDINGS", "control.act", hazard(Hazard::kManyBindings, "40 carriers")},
      {"OFFSET_TOO_FAR", "control.act", hazard(Hazard::kFarOffset, "row 3000000 of the ring")},
      {"INDIRECT_DISPATCH", "control.act", hazard(Hazard::kIndirectGrid, "the robots that fell")},
      {"EDIT_IN_FLIGHT", "control.act", hazard(Hazard::kEdited, "the learning rate")},
      {"UPDATE_ON_HOST", "control.act", hazard(Hazard::kOnHost, "it was requested")},
      {"OWNER_NOT_CERTIFIED", "reward alive",
       [](Case c) { c.program.terms[0].is_certified = false; }},
      {"OWNER_NOT_CERTIFIED", "curriculum penalty",
       [](Case c) { c.program.terms[2].term_class = TermClass::kGlobal; }},
      {"OWNER_NOT_CERTIFIED", "event push",
       [](Case c) { c.program.terms[1].term_class = TermClass::kHostEvent; }},
      {"BY_VALUE_VARYING", "curriculum penalty",
       [](Case c) { c.program.terms[2].is_value_in_block = false; }},
      {"UNREGISTERED_RNG", "event push", [](Case c) { c.program.terms[1].stream.reset(); }},
      {"BACKEND_HAS_NO_GRAPHS", "device",
       [](Case c) {
         c.backend.has_graphs = false;
         c.backend.without_graphs = "it launches programs eagerly";
       }},
  };
}

}  // namespace millrace
