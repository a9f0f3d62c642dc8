// UpdateFacts: the update step of a task as preflight sees it: one fused op of seven stages, the
// carriers that a device holds for it, and every term with the random numbers that it draws. The
// same on every device; what the configuration makes impossible in a graph is stated as hazards, of
// which update_place.h names the first. Allocates no carrier. Any thread.
#pragma once

#include "program_facts.h"
#include "run_plan.h"
#include "task.h"

namespace millrace {

ProgramFacts update_facts(const Task& task, const RunPlan& plan, const std::string& device);

}  // namespace millrace
