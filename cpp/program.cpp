#include "program.h"

#include <algorithm>

#include "digest.h"

namespace millrace {
namespace {

uint64_t matrix(uint64_t rows, uint64_t width, uint64_t stride) {
  return (rows - 1) * stride + width;
}

uint64_t product(uint64_t a, uint64_t b, uint64_t c = 1) { return a * b * c; }

// What an op reads and does not write; whatever is not marked so may be written.
Extent read(Operand operand, uint64_t count) { return {operand, count, Access::kRead}; }

std::vector<Extent> extents(const UnpackOp& op) {
  std::vector<Extent> all;
  for (const UnpackPart& part : op.parts) {
    const uint64_t width = part.width;
    all.insert(all.end(), {{part.target, matrix(op.rows, width, part.target_stride)},
                           read(part.mirror_source, width),
                           read(part.mirror_sign, width),
                           read(part.mean, width),
                           read(part.scale, width)});
  }
  return all;
}

std::vector<Extent> extents(const GemmOp& op) {
  const uint64_t last = op.count - 1;
  const uint64_t m = op.m, n = op.n, k = op.k;
  const uint64_t a = op.transpose_a ? matrix(k, m, op.a_stride) : matrix(m, k, op.a_stride);
  const uint64_t b = op.transpose_b ? matrix(n, k, op.b_stride) : matrix(k, n, op.b_stride);
  return {{op.a, last * op.a_distance + a, Access::kRead},
          {op.b, last * op.b_distance + b, Access::kRead},
          {op.c, last * op.c_distance + matrix(m, n, op.c_stride), Access::kWrite},
          read(op.bias, op.count * n)};
}

std::vector<Extent> extents(const LayerForwardOp& op) {
  const uint64_t parameters = product(op.groups, op.width);
  const uint64_t lines = product(op.rows, op.groups);
  const uint64_t values = lines * op.width;
  return {read(op.linear, values),      read(op.bias, parameters), read(op.gain, parameters),
          read(op.shift, parameters),   {op.output, values},       {op.mean, lines},
          {op.inverse_deviation, lines}};
}

std::vector<Extent> extents(const DenseForwardOp& op) {
  std::vector<Extent> all = extents(op.product);
  for (const Extent& extent : extents(op.layer)) {  // the linear values are the product's result
    const auto is_same = [&](const Extent& other) {
      return other.operand.carrier == extent.operand.carrier &&
             other.operand.offset == extent.operand.offset;
    };
    if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(extent);
  }
  return all;
}

std::vector<Extent> extents(const LayerBackwardOp& op) {
  const uint64_t parameters = product(op.groups, op.width);
  const uint64_t lines = product(op.rows, op.groups);
  const uint64_t values = lines * op.width;
  return {{op.gradient, values},          read(op.linear, values),
          read(op.mean, lines),           read(op.inverse_deviation, lines),
          read(op.bias, parameters),      read(op.gain, parameters),
          read(op.shift, parameters),     {op.bias_gradient, parameters},
          {op.gain_gradient, parameters}, {op.shift_gradient, parameters}};
}

std::vector<Extent> extents(const ReluBackwardOp& op) {
  const uint64_t values = product(op.rows, op.width);
  return {{op.gradient, values}, read(op.output, values)};
}

std::vector<Extent> extents(const ColumnSumOp& op) {
  return {read(op.values, product(op.rows, op.width)), {op.sums, static_cast<uint64_t>(op.width)}};
}

uint64_t last_of(const BatchNorm& norm) {
  return static_cast<uint64_t>(norm.groups - 1) * norm.input_distance +
         matrix(norm.rows, norm.width, norm.input_stride);
}

std::vector<Extent> extents_of(const BatchNorm& norm) {
  const uint64_t columns = product(norm.groups, norm.width);
  return {{norm.input, last_of(norm)},
          {norm.affine, 2 * columns},
          {norm.mean, columns},
          {norm.variance, columns}};
}

std::vector<Extent> extents(const BatchNormForwardOp& op) {
  std::vector<Extent> all = extents_of(op.norm);
  const uint64_t values = product(op.norm.rows, op.norm.groups, op.norm.width);
  all.insert(all.end(), {{op.residual, values}, {op.output, values}});
  return all;
}

std::vector<Extent> extents(const BatchNormBackwardOp& op) {
  std::vector<Extent> all = extents_of(op.norm);
  const uint64_t columns = product(op.norm.groups, op.norm.width);
  const bool is_shared = op.norm.input_distance == 0;
  all.insert(all.end(), {{op.gradient, op.norm.rows * columns},
                         {op.input_gradient,
                          product(op.norm.rows, is_shared ? 1 : op.norm.groups, op.norm.width)},
                         {op.affine_gradient, 2 * columns}});
  return all;
}

std::vector<Extent> extents(const RunningStatisticsOp& op) {
  return {{op.batch, 2 * op.count}, {op.running, 2 * op.count}, {op.finite, 1}};
}

std::vector<Extent> extents(const RmsNormForwardOp& op) {
  const uint64_t values = product(op.rows, op.groups, op.width);
  return {{op.input, values},
          {op.gain, product(op.groups, op.width)},
          {op.inverse_rms, product(op.rows, op.groups)},
          {op.output, values}};
}

std::vector<Extent> extents(const RmsNormBackwardOp& op) {
  const uint64_t values = product(op.rows, op.groups, op.width);
  const uint64_t columns = product(op.groups, op.width);
  return {{op.gradient, values}, {op.input, values},          {op.inverse_rms, values / op.width},
          {op.gain, columns},    {op.input_gradient, values}, {op.gain_gradient, columns}};
}

std::vector<Extent> extents(const SampleActionOp& op) {
  return {read(op.heads, matrix(op.rows, product(2, op.actions), op.heads_stride)),
          read(op.bias, product(2, op.actions)),
          {op.action, matrix(op.rows, op.actions, op.action_stride)},
          {op.log_probability, static_cast<uint64_t>(op.rows)},
          {op.drawn_at, static_cast<uint64_t>(op.rows)},
          {op.noise, product(op.rows, op.actions)}};
}

std::vector<Extent> extents(const ActionGradientOp& op) {
  const uint64_t heads = matrix(op.rows, product(2, op.actions), op.heads_stride);
  return {read(op.heads, heads),
          read(op.bias, product(2, op.actions)),
          read(op.noise, product(op.rows, op.actions)),
          read(op.action_gradient, matrix(op.rows, op.actions, op.action_gradient_stride)),
          read(op.log_alpha, 1),
          {op.heads_gradient, heads}};
}

std::vector<Extent> extents(const MeanDeviationOp& op) {
  return {read(op.heads, matrix(op.rows, product(2, op.actions), op.heads_stride)),
          read(op.bias, product(2, op.actions)),
          {op.mean_deviation, 1}};
}

std::vector<Extent> extents(const ProjectTargetOp& op) {
  const uint64_t values = matrix(product(op.rows, op.groups), op.support.atoms, op.value_stride);
  return {read(op.logits, values),
          read(op.bias, matrix(op.groups, op.support.atoms, op.value_stride)),
          read(op.log_probability, static_cast<uint64_t>(op.rows)),
          read(op.log_alpha, 1),
          {op.target, values}};
}

std::vector<Extent> extents(const CriticLossOp& op) {
  const uint64_t values = matrix(product(op.rows, op.groups), op.support.atoms, op.value_stride);
  return {read(op.logits, values),
          read(op.bias, matrix(op.groups, op.support.atoms, op.value_stride)),
          read(op.target, values),
          {op.logits_gradient, values},
          {op.loss, 1},
          {op.value_mean, 1},
          {op.value_max, 1},
          {op.value_min, 1}};
}

std::vector<Extent> extents(const ActorLossOp& op) {
  const uint64_t values = matrix(product(op.rows, op.groups), op.support.atoms, op.value_stride);
  return {read(op.logits, values),
          read(op.bias, matrix(op.groups, op.support.atoms, op.value_stride)),
          read(op.log_probability, static_cast<uint64_t>(op.rows)),
          read(op.log_alpha, 1),
          {op.logits_gradient, values},
          {op.loss, 1},
          {op.entropy, 1}};
}

uint64_t hidden_of(const ScalarHead& head) { return product(head.rows, head.groups, head.width); }

std::vector<Extent> extents_of(const ScalarHead& head) {
  const uint64_t last = head.groups - 1;
  return {read(head.hidden, hidden_of(head)),
          read(head.weight, last * head.weight_distance + head.width),
          read(head.bias, last * head.bias_distance + 1)};
}

std::vector<Extent> extents(const ScalarTargetOp& op) {
  const uint64_t rows = op.head.rows;
  std::vector<Extent> all = extents_of(op.head);
  all.insert(all.end(), {read(op.log_probability, rows), read(op.log_alpha, 1), {op.target, rows}});
  return all;
}

std::vector<Extent> extents(const ScalarCriticGradientOp& op) {
  const uint64_t lines = product(op.head.rows, op.head.groups);
  std::vector<Extent> all = extents_of(op.head);
  all.insert(all.end(), {read(op.target, op.head.rows),
                         {op.values, lines},
                         {op.values_gradient, matrix(lines, 1, op.head.bias_distance)},
                         {op.gradient.hidden, hidden_of(op.head)}});
  return all;
}

std::vector<Extent> extents(const ScalarCriticLossOp& op) {
  return {read(op.values, product(op.rows, op.groups)),
          read(op.target, static_cast<uint64_t>(op.rows)),
          {op.loss, 1},
          {op.value_mean, 1},
          {op.value_max, 1},
          {op.value_min, 1}};
}

std::vector<Extent> extents(const ScalarActorGradientOp& op) {
  std::vector<Extent> all = extents_of(op.head);
  all.insert(all.end(), {{op.least_values, static_cast<uint64_t>(op.head.rows)},
                         {op.gradient.hidden, hidden_of(op.head)}});
  return all;
}

std::vector<Extent> extents(const ScalarActorLossOp& op) {
  const uint64_t rows = op.rows;
  return {read(op.least_values, rows),
          read(op.log_probability, rows),
          read(op.log_alpha, 1),
          {op.loss, 1},
          {op.entropy, 1}};
}

std::vector<Extent> extents(const AdamWOp& op) {
  return {{op.parameters, op.count},
          read(op.gradient, op.count),
          {op.first_moment, op.count},
          {op.second_moment, op.count},
          {op.step, 1},
          read(op.loss, 1),
          {op.norm, 1},
          {op.clip, 1},
          {op.finite, 1},
          {op.target, op.count}};
}

std::vector<Extent> extents(const TemperatureOp& op) {
  return {read(op.log_probability, static_cast<uint64_t>(op.rows)),
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
  return {read(op.scalars, op.folds.size()), {op.totals, op.folds.size() + 2}, read(op.finite, 1)};
}

std::vector<Extent> extents(const PointwiseOp& op) {
  const bool has_place = op.scalar.from == ScalarSource::From::kCarrier;
  return {{op.a, op.count, Access::kRead},
          {op.b, op.count, Access::kRead},
          {has_place ? op.scalar.place : Operand{}, 1, Access::kRead},
          {op.y, op.count, Access::kWrite}};
}

std::vector<Extent> extents(const RandomFillOp& op) {
  return {{op.target, op.count, Access::kWrite}};
}

std::vector<Extent> extents(const CopyInOp& op) { return {{op.target, op.count, Access::kWrite}}; }

std::vector<Extent> extents(const HostFunctionOp& op) {
  return {{op.source, op.source_count, Access::kRead},
          {op.target, op.target_count, Access::kWrite}};
}

// Whether the op's kernels find what it only reads wherever a run brings it.
bool can_take_inputs(const Op& op) {
  return std::holds_alternative<GemmOp>(op) || std::holds_alternative<PointwiseOp>(op);
}

// Where the last of the blocks ends; nowhere, if one does not begin where the one before it ends.
uint64_t end_of(const std::vector<RowBlock>& blocks) {
  uint64_t end = 0;
  for (const RowBlock& block : blocks) {
    if (block.first != end) return UINT64_MAX;
    end += product(block.rows, block.width);
  }
  return end;
}

// What beside its extents makes an op another one.
std::string variety_of(const Op& op) {
  if (const GemmOp* gemm = product_of(op)) {
    return std::to_string(gemm->m) + "x" + std::to_string(gemm->n) + "x" + std::to_string(gemm->k) +
           (gemm->has_relu ? " relu" : "");
  }
  if (const auto* step = std::get_if<AdamWOp>(&op)) {
    return step->rows.empty() ? "" : std::to_string(step->rows.size()) + " blocks of rows";
  }
  if (const auto* pointwise = std::get_if<PointwiseOp>(&op)) {
    return std::to_string(static_cast<int>(pointwise->function)) + "," +
           std::to_string(static_cast<int>(pointwise->scalar.from));
  }
  const auto* function = std::get_if<HostFunctionOp>(&op);
  return function != nullptr ? function->name : "";
}

}  // namespace

const GemmOp* product_of(const Op& op) {
  const auto* dense = std::get_if<DenseForwardOp>(&op);
  return dense != nullptr ? &dense->product : std::get_if<GemmOp>(&op);
}

bool Program::conflict(const std::vector<Extent>& one, const std::vector<Extent>& other) {
  for (const Extent& a : one) {
    for (const Extent& b : other) {
      if (a.operand.carrier != b.operand.carrier ||
          (a.access == Access::kRead && b.access == Access::kRead))
        continue;
      if (a.operand.offset < b.operand.offset + b.count &&
          b.operand.offset < a.operand.offset + a.count) {
        return true;
      }
    }
  }
  return false;
}

// From the latest record back: what an earlier found one runs after is after it already.
void Program::add_order(Record& record, std::vector<Extent> extents) {
  std::vector<bool> runs_after(records_.size(), false);
  for (size_t i = records_.size(); i-- > 0;) {
    if (runs_after[i] || !conflict(extents, extents_[i])) continue;
    record.after.push_back(static_cast<int>(i));
    runs_after[i] = true;
    for (size_t earlier = 0; earlier < i; ++earlier) {
      if (runs_after_[i][earlier]) runs_after[earlier] = true;
    }
  }
  extents_.push_back(std::move(extents));
  runs_after_.push_back(std::move(runs_after));
}

int Program::lane_for(const Record& record) const {
  const auto follows = [&](int latest) {
    return std::find(record.after.begin(), record.after.end(), latest) != record.after.end();
  };
  const auto found = std::find_if(latest_.begin(), latest_.end(), follows);
  const auto idle = std::min_element(latest_.begin(), latest_.end());
  return static_cast<int>((found != latest_.end() ? found : idle) - latest_.begin());
}

std::vector<Extent> extents_of(const Op& op) {
  std::vector<Extent> used;
  for (Extent& extent : std::visit([](const auto& typed) { return extents(typed); }, op)) {
    if (extent.operand.used()) used.push_back(extent);
  }
  return used;
}

void Program::record(Op op, Site site) {
  const bool is_of_host = std::holds_alternative<HostFunctionOp>(op);
  append({std::move(op), site, is_of_host, {}, 0});
}

void Program::record_on_host(Op op, Site site) { append({std::move(op), site, true, {}, 0}); }

void Program::append(const Record& record) {
  const std::string who = std::string(kind_of(record.op)) + " of program '" + name_ +
                          "' recorded at " + record.site.file + ":" +
                          std::to_string(record.site.line);
  std::vector<Extent> used;
  for (const Extent& extent : extents_of(record.op)) {
    if (extent.operand.is_input()) {
      MR_CHECK(can_take_inputs(record.op) && extent.access == Access::kRead && !record.is_on_host,
               who + " cannot take an input: only device ops that do nothing but read it can");
      const auto number = static_cast<size_t>(extent.operand.input());
      if (takes_.inputs() <= number) takes_.input_floats.resize(number + 1, 0);
      uint64_t& floats = takes_.input_floats[number];
      floats = std::max(floats, extent.operand.offset + extent.count);
      continue;
    }
    const Workspace::Carrier& carrier = workspace_->carriers().at(extent.operand.carrier);
    MR_CHECK(extent.operand.offset + extent.count <= carrier.count,
             who + " reaches beyond carrier '" + carrier.name + "'");
    used.push_back(extent);
  }
  if (const auto* unpack = std::get_if<UnpackOp>(&record.op)) {
    const std::vector<UnpackPart>& parts = unpack->parts;
    MR_CHECK(!parts.empty() && parts.size() <= kMaxUnpackParts,
             who + " has " + std::to_string(parts.size()) + " parts");
    const auto is_activation = [&](const UnpackPart& part) {
      return workspace_->carriers()[static_cast<size_t>(part.target.carrier)].role ==
             Workspace::Carrier::kActivation;
    };
    for (const UnpackPart& part : parts) {
      MR_CHECK(is_activation(part) == is_activation(parts.front()),
               who + " has targets that are not stored alike");
    }
  }
  if (const GemmOp* gemm = product_of(record.op)) {
    MR_CHECK(!gemm->accumulates || (!gemm->bias.used() && !gemm->has_relu),
             who + " accumulates, so it has no bias and no ReLU");
  }
  if (const auto* dense = std::get_if<DenseForwardOp>(&record.op)) {
    const Operand result = dense->product.c, linear = dense->layer.linear;
    MR_CHECK(result.carrier == linear.carrier && result.offset == linear.offset &&
                 dense->product.m == dense->layer.rows,
             who + " has a layer that is not of its product's result");
  }
  if (const auto* step = std::get_if<AdamWOp>(&record.op)) {
    MR_CHECK(step->rows.empty() || end_of(step->rows) == step->count,
             who + " has rows that are not all of its parameters, one behind the other");
  }
  if (const auto* pointwise = std::get_if<PointwiseOp>(&record.op)) {
    const ScalarSource& scalar = pointwise->scalar;
    if (scalar.from == ScalarSource::From::kHost || scalar.from == ScalarSource::From::kBlock) {
      takes_.scalars = std::max(takes_.scalars, static_cast<size_t>(scalar.number) + 1);
    }
  }
  if (const auto* copy = std::get_if<CopyInOp>(&record.op)) {
    takes_.buffers = std::max(takes_.buffers, static_cast<size_t>(copy->buffer) + 1);
  }
  Record placed{record.op, record.site, record.is_on_host, {}, 0};
  add_order(placed, std::move(used));
  placed.lane = lane_for(placed);
  latest_[static_cast<size_t>(placed.lane)] = static_cast<int>(records_.size());
  records_.push_back(std::move(placed));
}

bool Program::has_host_ops() const {
  return std::any_of(records_.begin(), records_.end(),
                     [](const Record& record) { return record.is_on_host; });
}

uint64_t Program::digest() const {
  uint64_t digest = digest_of(name_);
  for (const Record& record : records_) {
    std::string text = std::string("|") + kind_of(record.op) + (record.is_on_host ? "@host" : "") +
                       " " + variety_of(record.op);
    for (const Extent& extent : extents_of(record.op)) {
      text += " " + std::to_string(extent.operand.carrier) + "+" +
              std::to_string(extent.operand.offset) + ":" + std::to_string(extent.count);
    }
    digest = digest_of(text, digest);
  }
  return digest;
}

double Program::gemm_flops() const {
  double total = 0;
  for (const Record& record : records_) {
    if (const GemmOp* gemm = product_of(record.op)) {
      total += 2.0 * gemm->m * gemm->n * gemm->k * gemm->count;
    }
  }
  return total;
}

}  // namespace millrace
