// Preflight of the graph layer: what of a program a graph could not hold, found before anything is
// captured. A pure function of stated facts: nothing is probed, allocated or captured here.
//
// All findings come at once, the backend's first, then those of the program, its ops and its terms.
// Each blocks the whole program: with `graph: auto` it runs eagerly (EAGER_ONLY), with `graph: on`
// the run is refused, with `graph: off` nothing is checked. Fails closed: a carrier that nobody
// listed is unstable, a term that nobody certified does not pass.
//
// Ids: BACKEND_HAS_NO_GRAPHS DRIVER_TOO_OLD PROFILER_ACTIVE · FOREIGN_CAPTURE_ACTIVE TOO_SMALL
// MULTI_CONTEXT · LEGACY_STREAM WRONG_DEVICE BY_VALUE_VARYING UNSTABLE_CARRIER HOST_SYNC HOST_READ
// ALLOC_IN_WINDOW UNPINNED_HOST LIB_NOT_WARM MODULE_NOT_LOADED COLLECTIVE TOO_MANY_BINDINGS
// OFFSET_TOO_FAR INDIRECT_DISPATCH EDIT_IN_FLIGHT UPDATE_ON_HOST · OWNER_NOT_CERTIFIED
// UNREGISTERED_RNG. There are none for conditional bodies, cooperative launches
// from the device and updates of cluster nodes: the table of backend.h has no call that could make
// one. Should it get one, its id comes with it.
#pragma once

#include <string>
#include <vector>

#include "backend.h"
#include "captured_program.h"
#include "finding.h"
#include "program_facts.h"

namespace millrace {

// The backend that would run the program. Without one (`device: cuda` on a machine that has none)
// it has no graphs, and `without_graphs` says why.
struct GraphBackend {
  std::string name;
  bool has_graphs = false;
  std::string without_graphs;
  DeviceFacts device = {};
};

GraphBackend graph_backend_of(Backend& backend);

// What speaks against graphs of any program.
std::vector<Finding> check_graph_backend(const GraphBackend& backend, GraphPolicy policy);
// Those, and what speaks against this one. A program of fewer than least_ops has nothing to gain.
std::vector<Finding> check_graph(const ProgramFacts& program, const GraphBackend& backend,
                                 GraphPolicy policy, int least_ops = 1);

// [{kind, term, detail, stream, draws_per_tick, draws_per_reset, class, verdict, reason, hint}]
// with the first of the findings about each term.
nlohmann::json term_table_of(const ProgramFacts& program, const std::vector<Finding>& findings);

}  // namespace millrace
