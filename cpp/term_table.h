// The one table of terms: what exists, its unit, parameters, defaults and limits. Java validates
// configuration files against it, tasks are built from it, `millrace terms` prints it.
// Immutable; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace millrace {

enum class TermKind { kObservation, kReward, kTermination, kCommand, kEvent, kCurriculum };
const char* to_string(TermKind kind);

struct TermParameter {
  const char* name;
  double default_value;
  const char* unit;
  double min, max;
  const char* summary;
};

struct TermInfo {
  const char* name;
  TermKind kind;
  int id;   // the enum of terms.h for observations, rewards and terminations
  int dim;  // of an observation, or one of the enum below
  const char* unit;
  const char* summary;
  std::vector<TermParameter> parameters;  // in the order of the term's parameter struct
};

enum { kPerJoint = -1, kPerAction = -2, kThreePerBody = -3, kSixPerBody = -4 };

const std::vector<TermInfo>& term_table();

// Throws Failure(kBug) for an unknown name: tasks name terms, users are checked against the task.
const TermInfo& term_info(TermKind kind, const std::string& name);

nlohmann::json describe_terms();

// The candidate with the fewest edits from `name`; empty when there is none that keeps a letter and
// takes at most one edit for every three letters of `name`, or one.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// "key.path: unknown …; did you mean …? Allowed: a, b", without the question if nothing is near.
[[noreturn]] void refuse_unknown(const std::string& path, const std::string& what,
                                 const std::string& name, const std::vector<std::string>& allowed);

}  // namespace millrace
