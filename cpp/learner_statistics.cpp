#include "learner_statistics.h"

#include <algorithm>

#include "elementary.h"

namespace millrace {

void execute(const StatisticsOp& op, const CpuFrame& frame) {
  const float* scalars = frame.floats(op.scalars);
  float* totals = frame.floats(op.totals);
  const size_t count = op.folds.size();
  if (frame.scalar(op.finite) != 1.0f) {
    totals[count + 1] += 1.0f;
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    switch (op.folds[i]) {
      case Fold::kSum:
        totals[i] += scalars[i];
        break;
      case Fold::kMax:
        totals[i] = std::max(totals[i], scalars[i]);
        break;
      case Fold::kMin:
        totals[i] = std::min(totals[i], scalars[i]);
        break;
    }
  }
  totals[count] += 1.0f;
}

LearnerStatistics::LearnerStatistics(Workspace& workspace, const std::string& prefix,
                                     std::vector<Scalar> scalars)
    : workspace_(workspace), scalars_(std::move(scalars)) {
  values_ = workspace_.add_floats(prefix + "/scalars", scalars_.size());
  totals_ = workspace_.add_floats(prefix + "/totals", scalars_.size() + 2);
}

Operand LearnerStatistics::operator[](const std::string& name) const {
  for (size_t i = 0; i < scalars_.size(); ++i) {
    if (scalars_[i].name == name) return values_ + i;
  }
  throw Failure(Code::kBug, "there is no scalar '" + name + "'");
}

StatisticsOp LearnerStatistics::op(Operand finite) const {
  StatisticsOp op;
  for (const Scalar& scalar : scalars_) op.folds.push_back(scalar.fold);
  op.scalars = values_;
  op.totals = totals_;
  op.finite = finite;
  return op;
}

void LearnerStatistics::take(nlohmann::json& into) {
  const float* totals = workspace_.floats(totals_);
  const float count = totals[scalars_.size()];
  for (size_t i = 0; count > 0 && i < scalars_.size(); ++i) {
    into[scalars_[i].name] = scalars_[i].fold == Fold::kSum ? totals[i] / count : totals[i];
  }
  clear();
}

uint64_t LearnerStatistics::left_out() const {
  return static_cast<uint64_t>(workspace_.floats(totals_)[scalars_.size() + 1]);
}

void LearnerStatistics::register_state(StateRegistry& registry, const std::string& name) {
  registry.add(name, DType::kF32, {static_cast<int64_t>(scalars_.size()) + 2},
               workspace_.floats(totals_));
}

void LearnerStatistics::clear() {
  float* totals = workspace_.floats(totals_);
  for (size_t i = 0; i < scalars_.size(); ++i) {
    totals[i] = scalars_[i].fold == Fold::kSum   ? 0.0f
                : scalars_[i].fold == Fold::kMax ? -mr_infinity()
                                                 : mr_infinity();
  }
  totals[scalars_.size()] = 0.0f;
  totals[scalars_.size() + 1] = 0.0f;
}

}  // namespace millrace
