#include "program.h"

namespace millrace {
namespace {

struct Extent {
  Operand operand;
  uint64_t count;
};

uint64_t matrix(uint64_t rows, uint64_t width, uint64_t stride) {
  return (rows - 1) * stride + width;
}

uint64_t product(uint64_t a, uint64_t b, uint64_t c = 1) { return a * b * c; }

std::vector<Extent> extents(const UnpackOp& op) {
  const uint64_t width = op.width;
  return {{op.target, matrix(op.rows, width, op.target_stride)},
          {op.mirror_source, width},
          {op.mirror_sign, width},
          {op.mean, width},
          {op.scale, width}};
}

std::vector<Extent> extents(const GemmOp& op) {
  const uint64_t last = op.count - 1;
  const uint64_t m = op.m, n = op.n, k = op.k;
  const uint64_t a = op.transpose_a ? matrix(k, m, op.a_stride) : matrix(m, k, op.a_stride);
  const uint64_t b = op.transpose_b ? matrix(n, k, op.b_stride) : matrix(k, n, op.b_stride);
  return {{op.a, last * op.a_distance + a},
          {op.b, last * op.b_distance + b},
          {op.c, last * op.c_distance + matrix(m, n, op.c_stride)}};
}

std::vector<Extent> extents(const LayerForwardOp& op) {
  const uint64_t parameters = product(op.groups, op.width);
  const uint64_t values = product(op.rows, op.groups, op.width);
  return {{op.linear, values},   {op.bias, parameters},
          {op.gain, parameters}, {op.shift, parameters},
          {op.output, values},   {op.inverse_deviation, product(op.rows, op.groups)}};
}

std::vector<Extent> extents(const LayerBackwardOp& op) {
  const uint64_t parameters = product(op.groups, op.width);
  const uint64_t values = product(op.rows, op.groups, op.width);
  return {{op.gradient, values},
          {op.normalised, values},
          {op.inverse_deviation, product(op.rows, op.groups)},
          {op.gain, parameters},
          {op.shift, parameters},
          {op.bias_gradient, parameters},
          {op.gain_gradient, parameters},
          {op.shift_gradient, parameters}};
}

std::vector<Extent> extents(const ReluForwardOp& op) {
  return {{op.values, product(op.rows, op.width)}, {op.bias, static_cast<uint64_t>(op.width)}};
}

std::vector<Extent> extents(const ReluBackwardOp& op) {
  const uint64_t values = product(op.rows, op.width);
  return {{op.gradient, values},
          {op.output, values},
          {op.bias_gradient, static_cast<uint64_t>(op.width)}};
}

std::vector<Extent> extents(const ScalarTargetOp& op) {
  return {{op.values, product(op.rows, op.groups)},
          {op.bias, static_cast<uint64_t>(op.groups)},
          {op.log_probability, static_cast<uint64_t>(op.rows)},
          {op.log_alpha, 1},
          {op.target, static_cast<uint64_t>(op.rows)}};
}

std::vector<Extent> extents(const ScalarCriticLossOp& op) {
  const uint64_t values = product(op.rows, op.groups);
  return {{op.values, values},
          {op.bias, static_cast<uint64_t>(op.groups)},
          {op.target, static_cast<uint64_t>(op.rows)},
          {op.values_gradient, values},
          {op.loss, 1},
          {op.value_mean, 1},
          {op.value_max, 1},
          {op.value_min, 1}};
}

std::vector<Extent> extents(const ScalarActorLossOp& op) {
  const uint64_t values = product(op.rows, op.groups);
  return {{op.values, values},
          {op.bias, static_cast<uint64_t>(op.groups)},
          {op.log_probability, static_cast<uint64_t>(op.rows)},
          {op.log_alpha, 1},
          {op.values_gradient, values},
          {op.loss, 1},
          {op.entropy, 1}};
}

std::vector<Extent> extents(const ColumnSumOp& op) {
  return {{op.values, product(op.rows, op.width)}, {op.sums, static_cast<uint64_t>(op.width)}};
}

std::vector<Extent> extents(const SampleActionOp& op) {
  return {{op.heads, product(op.rows, 2, op.actions)},
          {op.bias, product(2, op.actions)},
          {op.action, matrix(op.rows, op.actions, op.action_stride)},
          {op.log_probability, static_cast<uint64_t>(op.rows)},
          {op.noise, product(op.rows, op.actions)}};
}

std::vector<Extent> extents(const ActionGradientOp& op) {
  return {{op.heads, product(op.rows, 2, op.actions)},
          {op.bias, product(2, op.actions)},
          {op.noise, product(op.rows, op.actions)},
          {op.action_gradient, product(op.rows, op.actions)},
          {op.log_alpha, 1},
          {op.heads_gradient, product(op.rows, 2, op.actions)},
          {op.mean_deviation, 1}};
}

std::vector<Extent> extents(const ProjectTargetOp& op) {
  const uint64_t values = product(op.rows, op.groups, op.support.atoms);
  return {{op.logits, values},
          {op.bias, product(op.groups, op.support.atoms)},
          {op.log_probability, static_cast<uint64_t>(op.rows)},
          {op.log_alpha, 1},
          {op.target, values}};
}

std::vector<Extent> extents(const CriticLossOp& op) {
  const uint64_t values = product(op.rows, op.groups, op.support.atoms);
  return {{op.logits, values}, {op.bias, product(op.groups, op.support.atoms)},
          {op.target, values}, {op.logits_gradient, values},
          {op.loss, 1},        {op.value_mean, 1},
          {op.value_max, 1},   {op.value_min, 1}};
}

std::vector<Extent> extents(const ActorLossOp& op) {
  const uint64_t values = product(op.rows, op.groups, op.support.atoms);
  return {{op.logits, values},
          {op.bias, product(op.groups, op.support.atoms)},
          {op.log_probability, static_cast<uint64_t>(op.rows)},
          {op.log_alpha, 1},
          {op.logits_gradient, values},
          {op.loss, 1},
          {op.entropy, 1}};
}

std::vector<Extent> extents(const GradientNormOp& op) {
  return {{op.gradient, op.count}, {op.loss, 1}, {op.norm, 1}, {op.clip, 1}, {op.finite, 1}};
}

std::vector<Extent> extents(const AdamWOp& op) {
  return {{op.parameters, op.count},
          {op.gradient, op.count},
          {op.first_moment, op.count},
          {op.second_moment, op.count},
          {op.step, 1},
          {op.clip, 1},
          {op.finite, 1},
          {op.target, op.count}};
}

std::vector<Extent> extents(const TemperatureOp& op) {
  return {{op.log_probability, static_cast<uint64_t>(op.rows)},
          {op.log_alpha, 1},
          {op.first_moment, 1},
          {op.second_moment, 1},
          {op.step, 1},
          {op.finite, 1},
          {op.loss, 1},
          {op.alpha, 1},
          {op.gradient, 1}};
}

std::vector<Extent> extents(const StatisticsOp& op) {
  return {{op.scalars, op.folds.size()}, {op.totals, op.folds.size() + 2}, {op.finite, 1}};
}

}  // namespace

void Program::record(Op op, Site site) {
  const auto operands = std::visit([](const auto& typed) { return extents(typed); }, op);
  for (const Extent& extent : operands) {
    if (!extent.operand.used()) continue;
    const Workspace::Carrier& carrier = workspace_->carriers().at(extent.operand.carrier);
    MR_CHECK(extent.operand.offset + extent.count <= carrier.count,
             std::string(kind_of(op)) + " of program '" + name_ + "' recorded at " + site.file +
                 ":" + std::to_string(site.line) + " reaches beyond carrier '" + carrier.name +
                 "'");
  }
  records_.push_back({std::move(op), site});
}

double Program::gemm_flops() const {
  double total = 0;
  for (const Record& record : records_) {
    if (const GemmOp* gemm = std::get_if<GemmOp>(&record.op)) {
      total += 2.0 * gemm->m * gemm->n * gemm->k * gemm->count;
    }
  }
  return total;
}

}  // namespace millrace
