// Finding: one thing that preflight has to say about a configuration.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace millrace {

enum class Readiness { kReady, kEagerOnly, kRefused };
const char* to_string(Readiness readiness);  // "READY", "EAGER_ONLY", "REFUSED"

struct Finding {
  std::string id;  // "BUDGET_HOST"
  Readiness verdict;
  std::string subject;  // the configuration keys it is about
  std::string reason;   // with the arithmetic
  std::string hint;     // what would help
};

// {id, verdict, subject, reason, hint}
nlohmann::json to_json(const Finding& finding);

// "ID: reason" of the first; empty: there is none.
std::string first_reason(const std::vector<Finding>& findings);

}  // namespace millrace
