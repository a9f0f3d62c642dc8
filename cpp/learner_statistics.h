// What a learner reports: scalars that the ops of one update leave in a carrier, folded into totals
// on the device and read by the host once per log interval.
//
// Totals of n scalars lie as n folded values, the count of updates folded in, and the count of
// updates left out because they were not finite.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program_cpu.h"

namespace millrace {

void execute(const StatisticsOp& op, const CpuFrame& frame);

class LearnerStatistics {
 public:
  struct Scalar {
    std::string name;  // as it stands in metrics, e.g. "loss/critic"
    Fold fold;
  };

  LearnerStatistics(Workspace& workspace, const std::string& prefix, std::vector<Scalar> scalars);

  // The carrier place of a scalar; throws kBug for an unknown name.
  Operand operator[](const std::string& name) const;
  StatisticsOp op(Operand finite) const;
  Operand totals() const { return totals_; }
  // Empties the totals; called once the workspace is allocated.
  void clear();
  // Averages (extremes for kMax and kMin) since the last call; nothing when no update was counted.
  void take(nlohmann::json& into);
  uint64_t left_out() const;
  void register_state(StateRegistry& registry, const std::string& name);

 private:
  Workspace& workspace_;
  std::vector<Scalar> scalars_;
  Operand values_, totals_;
};

}  // namespace millrace
