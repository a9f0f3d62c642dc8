// TaskConfig: the built-in task definitions, and a definition with a run's configuration applied:
// sections of terms, switches, noise. Names and ranges are checked against the term table. All
// errors are Failure(kInvalid) with the key's path, what is allowed and the nearest name.
// Called on the thread that opens a run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "task.h"

namespace millrace {

const std::vector<TaskDefinition>& definitions();

// The definition that `task` names, as built in, and with everything applied.
const TaskDefinition& definition_of(const nlohmann::json& config);
TaskDefinition configured(const nlohmann::json& config);

std::vector<std::string> names_of(const std::vector<TermUse>& uses);
// The section `env`, or an empty one.
const nlohmann::json& env_section(const nlohmann::json& config);
// The member, or null when it is absent or null.
const nlohmann::json* member(const nlohmann::json& object, const char* key);

std::string shown(double value);
[[noreturn]] void refuse(const std::string& path, const std::string& problem);

}  // namespace millrace
