#include "finding.h"

namespace millrace {

const char* to_string(Readiness readiness) {
  switch (readiness) {
    case Readiness::kReady:
      return "READY";
    case Readiness::kEagerOnly:
      return "EAGER_ONLY";
    case Readiness::kRefused:
      return "REFUSED";
  }
  return "unknown";
}

nlohmann::json to_json(const Finding& finding) {
  return {{"id", finding.id},
          {"verdict", to_string(finding.verdict)},
          {"subject", finding.subject},
          {"reason", finding.reason},
          {"hint", finding.hint}};
}

std::string first_reason(const std::vector<Finding>& findings) {
  return findings.empty() ? "" : findings.front().id + ": " + findings.front().reason;
}

}  // namespace millrace
