#include "flashsac_network.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr float kMomentum = 0.01f;

float root(int width) { return std::sqrt(static_cast<float>(width)); }

// What a product reads of an activation of that width.
GroupedLinear::Input rows_of(Operand activation, int groups, int width) {
  return {activation, groups * width, static_cast<uint64_t>(width)};
}

// Vectors of `length`, `count` of them, made orthonormal one after the other (twice, against
// rounding). Throws kBug when there are more of them than dimensions.
void make_orthonormal(std::vector<double>& vectors, int count, int length) {
  MR_CHECK(count <= length, "so many vectors cannot be orthogonal");
  for (int i = 0; i < count; ++i) {
    double* own = vectors.data() + static_cast<size_t>(i) * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < i; ++j) {
        const double* other = vectors.data() + static_cast<size_t>(j) * length;
        double along = 0;
        for (int k = 0; k < length; ++k) along += own[k] * other[k];
        for (int k = 0; k < length; ++k) own[k] -= along * other[k];
      }
    }
    double squares = 0;
    for (int k = 0; k < length; ++k) squares += own[k] * own[k];
    for (int k = 0; k < length; ++k) own[k] /= std::sqrt(squares);
  }
}

// [output][input]: orthonormal rows, or columns where there are more rows than columns; then rows
// of length 1.
void draw_weights(RandomSource source, int outputs, int inputs, uint64_t row_stride,
                  float* weights) {
  const bool has_long_rows = outputs <= inputs;
  const int count = std::min(outputs, inputs), length = std::max(outputs, inputs);
  std::vector<double> vectors(static_cast<size_t>(count) * length);
  for (size_t i = 0; i < vectors.size(); ++i) {
    vectors[i] = random_normal(source, static_cast<u32>(i));
  }
  make_orthonormal(vectors, count, length);
  for (int o = 0; o < outputs; ++o) {
    double squares = 0;
    const auto value = [&](int i) {
      return has_long_rows ? vectors[static_cast<size_t>(o) * length + i]
                           : vectors[static_cast<size_t>(i) * length + o];
    };
    for (int i = 0; i < inputs; ++i) squares += value(i) * value(i);
    for (int i = 0; i < inputs; ++i) {
      weights[static_cast<size_t>(o) * row_stride + i] =
          static_cast<float>(value(i) / std::sqrt(squares));
    }
  }
}

}  // namespace

FlashSacNetwork::FlashSacNetwork(NetworkShape shape) : shape_(shape) {
  MR_CHECK(shape.inputs > 0 && shape.outputs > 0 && shape.groups > 0 && shape.hidden > 0,
           "a network has no side 0");
  const int wide = kExpansion * shape.hidden;
  embed_norm_ = add_norm("embed/norm", shape.inputs, filled_up(shape.inputs));
  embed_ = add_linear("embed", shape.inputs, shape.hidden, {true, false});
  for (int b = 0; b < kBlocks; ++b) {
    const std::string name = "b" + std::to_string(b);
    blocks_[b].widen = add_linear(name + "/l0", shape.hidden, wide, {false, false});
    blocks_[b].wide_norm = add_norm(name + "/l0/norm", wide, wide);
    blocks_[b].narrow = add_linear(name + "/l1", wide, shape.hidden, {false, false});
    blocks_[b].narrow_norm = add_norm(name + "/l1/norm", shape.hidden, shape.hidden);
  }
  final_gain_ = parameter_count_;
  const uint64_t hidden = shape.hidden;
  tensors_.push_back(
      {"norm/weight", {shape.hidden}, final_gain_, hidden, hidden, 0, NetworkTensor::kGain, false});
  row_blocks_.push_back({final_gain_, shape.groups, shape.hidden, root(shape.hidden)});
  parameter_count_ += shape.groups * hidden;
  head_ = add_linear("head", shape.hidden, shape.outputs, {false, true});
  head_bias_ = parameter_count_;
  const uint64_t head_width = head_.outputs;
  tensors_.push_back({"head/bias",
                      {shape.outputs},
                      head_bias_,
                      head_width,
                      head_width,
                      shape.hidden,
                      NetworkTensor::kBias,
                      true});
  row_blocks_.push_back({head_bias_, shape.groups, head_.outputs, 0.0f});
  parameter_count_ += shape.groups * head_width;
  add_statistics("embed/norm", embed_norm_);
  for (int b = 0; b < kBlocks; ++b) {
    const std::string name = "b" + std::to_string(b);
    add_statistics(name + "/l0/norm", blocks_[b].wide_norm);
    add_statistics(name + "/l1/norm", blocks_[b].narrow_norm);
  }
}

GroupedLinear FlashSacNetwork::add_linear(const std::string& name, int inputs, int outputs,
                                          Outer is_outer) {
  const GroupedLinear linear = {shape_.groups, is_outer.inputs ? filled_up(inputs) : inputs,
                                is_outer.outputs ? filled_up(outputs) : outputs, parameter_count_};
  tensors_.push_back({name + "/weight",
                      {outputs, inputs},
                      linear.weight,
                      static_cast<uint64_t>(linear.inputs),
                      linear.distance(),
                      inputs,
                      NetworkTensor::kWeight,
                      is_outer.outputs});
  row_blocks_.push_back({linear.weight, shape_.groups * linear.outputs, linear.inputs, 1.0f});
  parameter_count_ += linear.count();
  return linear;
}

FlashSacNetwork::Norm FlashSacNetwork::add_norm(const std::string& name, int columns, int width) {
  const Norm norm = {columns, width, parameter_count_, statistics_count_};
  const uint64_t both = 2 * static_cast<uint64_t>(norm.width);
  tensors_.push_back(
      {name + "/weight", {columns}, norm.affine, both, both, 0, NetworkTensor::kGain, false});
  tensors_.push_back({name + "/bias",
                      {columns},
                      norm.affine + norm.width,
                      both,
                      both,
                      0,
                      NetworkTensor::kShift,
                      false});
  row_blocks_.push_back({norm.affine, shape_.groups, 2 * norm.width, root(columns)});
  parameter_count_ += shape_.groups * both;
  statistics_count_ += static_cast<uint64_t>(shape_.groups) * norm.width;
  return norm;
}

// Once all parameters have their places.
void FlashSacNetwork::add_statistics(const std::string& name, const Norm& norm) {
  const uint64_t width = norm.width;
  const uint64_t mean = parameter_count_ + norm.statistics;
  tensors_.push_back(
      {name + "/mean", {norm.columns}, mean, width, width, 0, NetworkTensor::kMean, false});
  tensors_.push_back({name + "/var",
                      {norm.columns},
                      mean + statistics_count_,
                      width,
                      width,
                      0,
                      NetworkTensor::kVariance,
                      false});
}

FlashSacNetwork::Activations FlashSacNetwork::add_activations(Workspace& workspace,
                                                              const std::string& name, int rows,
                                                              bool with_gradients) const {
  const uint64_t lines = static_cast<uint64_t>(rows) * shape_.groups;
  const uint64_t narrow = lines * shape_.hidden, wide = kExpansion * narrow;
  const auto add = [&](const std::string& what, uint64_t count) {
    return workspace.add_activation(name + "/" + what, count);
  };
  Activations activations;
  activations.rows = rows;
  activations.embedded = add("embedded", lines * input_stride());
  activations.stream[0] = add("stream0", narrow);
  for (int b = 0; b < kBlocks; ++b) {
    const std::string block = "b" + std::to_string(b) + "/";
    activations.wide[b] = add(block + "wide", wide);
    activations.wide_output[b] = add(block + "wide_output", wide);
    activations.narrow[b] = add(block + "narrow", narrow);
    activations.stream[b + 1] = add("stream" + std::to_string(b + 1), narrow);
  }
  activations.final_output = add("final_output", narrow);
  activations.inverse_rms = workspace.add_transient(name + "/inverse_rms", lines);
  if (with_gradients) {
    activations.final_gradient = add("final_gradient", narrow);
    activations.stream_gradient = add("stream_gradient", narrow);
    activations.wide_gradient = add("wide_gradient", wide);
    activations.narrow_gradient = add("narrow_gradient", narrow);
    activations.embedded_gradient = add("embedded_gradient", lines * input_stride());
  }
  return activations;
}

BatchNorm FlashSacNetwork::batch_norm(const Norm& norm, const Weights& weights, int rows,
                                      Operand input, bool has_relu) const {
  const Operand statistics =
      weights.is_training() ? weights.statistics : weights.parameters + parameter_count_;
  BatchNorm op{};
  op.rows = rows;
  op.groups = shape_.groups;
  op.width = norm.width;
  op.input = input;
  op.input_stride = shape_.groups * norm.width;
  op.input_distance = norm.width;
  op.affine = weights.parameters + norm.affine;
  op.mean = statistics + norm.statistics;
  op.variance = op.mean + statistics_count_;
  op.is_training = weights.is_training();
  op.has_relu = has_relu;
  return op;
}

// All groups read the same input.
BatchNorm FlashSacNetwork::embedding_norm(const Weights& weights, int rows, Operand input,
                                          int input_stride) const {
  BatchNorm norm = batch_norm(embed_norm_, weights, rows, input, false);
  norm.input_stride = input_stride;
  norm.input_distance = 0;
  return norm;
}

void FlashSacNetwork::record_forward(Program& program, const Weights& weights, int rows,
                                     Operand input, int input_stride,
                                     const Activations& activations, Operand heads) const {
  const Operand parameters = weights.parameters;
  const int groups = shape_.groups, hidden = shape_.hidden;
  const auto normalise = [&](const BatchNorm& norm, Operand residual, Operand output) {
    BatchNormForwardOp op{};
    op.norm = norm;
    op.residual = residual;
    op.output = output;
    program.record(op);
  };
  normalise(embedding_norm(weights, rows, input, input_stride), Operand{}, activations.embedded);
  program.record(embed_.forward(rows, rows_of(activations.embedded, groups, embed_.inputs),
                                parameters, activations.stream[0]));
  for (int b = 0; b < kBlocks; ++b) {
    const Block& block = blocks_[b];
    const Operand stream = activations.stream[b];
    program.record(block.widen.forward(rows, rows_of(stream, groups, hidden), parameters,
                                       activations.wide[b]));
    normalise(batch_norm(block.wide_norm, weights, rows, activations.wide[b], true), Operand{},
              activations.wide_output[b]);
    program.record(
        block.narrow.forward(rows, rows_of(activations.wide_output[b], groups, kExpansion * hidden),
                             parameters, activations.narrow[b]));
    normalise(batch_norm(block.narrow_norm, weights, rows, activations.narrow[b], true), stream,
              activations.stream[b + 1]);
  }
  RmsNormForwardOp final_norm{};
  final_norm.rows = rows;
  final_norm.groups = groups;
  final_norm.width = hidden;
  final_norm.input = activations.stream[kBlocks];
  final_norm.gain = parameters + final_gain_;
  final_norm.inverse_rms = activations.inverse_rms;
  final_norm.output = activations.final_output;
  program.record(final_norm);
  program.record(
      head_.forward(rows, rows_of(activations.final_output, groups, hidden), parameters, heads));
}

void FlashSacNetwork::record_blocks_backward(Program& program, const Weights& weights, int rows,
                                             int head_rows, const Activations& activations,
                                             Operand heads_gradient,
                                             Operand parameter_gradient) const {
  const Operand parameters = weights.parameters;
  const int groups = shape_.groups, hidden = shape_.hidden;
  const bool has_parameters = parameter_gradient.used();
  const auto place = [&](uint64_t at) {
    return has_parameters ? parameter_gradient + at : Operand{};
  };
  program.record(
      head_.input_gradient(head_rows, heads_gradient, parameters, activations.final_gradient));
  RmsNormBackwardOp final_norm{};
  final_norm.rows = rows;
  final_norm.groups = groups;
  final_norm.width = hidden;
  final_norm.gradient = activations.final_gradient;
  final_norm.input = activations.stream[kBlocks];
  final_norm.inverse_rms = activations.inverse_rms;
  final_norm.gain = parameters + final_gain_;
  final_norm.input_gradient = activations.stream_gradient;
  final_norm.gain_gradient = place(final_gain_);
  program.record(final_norm);
  for (int b = kBlocks - 1; b >= 0; --b) {
    const Block& block = blocks_[b];
    // The stream's gradient passes the block by, too: the block's own goes elsewhere, then joins.
    BatchNormBackwardOp narrow{};
    narrow.norm = batch_norm(block.narrow_norm, weights, rows, activations.narrow[b], true);
    narrow.gradient = activations.stream_gradient;
    narrow.input_gradient = activations.narrow_gradient;
    narrow.affine_gradient = place(block.narrow_norm.affine);
    program.record(narrow);
    if (has_parameters) {
      program.record(block.narrow.weight_gradient(
          rows, activations.narrow_gradient,
          rows_of(activations.wide_output[b], groups, kExpansion * hidden), parameter_gradient));
    }
    program.record(block.narrow.input_gradient(rows, activations.narrow_gradient, parameters,
                                               activations.wide_gradient));
    BatchNormBackwardOp wide{};
    wide.norm = batch_norm(block.wide_norm, weights, rows, activations.wide[b], true);
    wide.gradient = wide.input_gradient = activations.wide_gradient;
    wide.affine_gradient = place(block.wide_norm.affine);
    program.record(wide);
    if (has_parameters) {
      program.record(block.widen.weight_gradient(rows, activations.wide_gradient,
                                                 rows_of(activations.stream[b], groups, hidden),
                                                 parameter_gradient));
    }
    GemmOp through = block.widen.input_gradient(rows, activations.wide_gradient, parameters,
                                                activations.stream_gradient);
    through.accumulates = true;
    program.record(through);
  }
}

void FlashSacNetwork::record_backward(Program& program, const Weights& weights, int rows,
                                      int head_rows, Operand input, int input_stride,
                                      const Activations& activations, Operand heads_gradient,
                                      Operand parameter_gradient) const {
  const int groups = shape_.groups;
  ColumnSumOp bias{};
  bias.rows = head_rows;
  bias.width = groups * head_width();
  bias.values = heads_gradient;
  bias.sums = parameter_gradient + head_bias_;
  program.record(bias);
  program.record(head_.weight_gradient(head_rows, heads_gradient,
                                       rows_of(activations.final_output, groups, shape_.hidden),
                                       parameter_gradient));
  record_blocks_backward(program, weights, rows, head_rows, activations, heads_gradient,
                         parameter_gradient);
  program.record(embed_.weight_gradient(rows, activations.stream_gradient,
                                        rows_of(activations.embedded, groups, embed_.inputs),
                                        parameter_gradient));
  program.record(embed_.input_gradient(rows, activations.stream_gradient, weights.parameters,
                                       activations.embedded_gradient));
  BatchNormBackwardOp embedding{};
  embedding.norm = embedding_norm(weights, rows, input, input_stride);
  embedding.gradient = activations.embedded_gradient;
  embedding.affine_gradient = parameter_gradient + embed_norm_.affine;
  program.record(embedding);
}

void FlashSacNetwork::record_input_gradient(Program& program, Operand parameters, int rows,
                                            Operand input, int input_stride,
                                            const Activations& activations, Operand heads_gradient,
                                            Operand input_gradient) const {
  const Weights weights = {parameters, Operand{}};
  record_blocks_backward(program, weights, rows, rows, activations, heads_gradient, Operand{});
  program.record(embed_.input_gradient(rows, activations.stream_gradient, parameters,
                                       activations.embedded_gradient));
  BatchNormBackwardOp embedding{};
  embedding.norm = embedding_norm(weights, rows, input, input_stride);
  embedding.gradient = activations.embedded_gradient;
  embedding.input_gradient = input_gradient;
  program.record(embedding);
}

RunningStatisticsOp FlashSacNetwork::move_statistics(Operand parameters, Operand batch_statistics,
                                                     int rows, Operand finite) const {
  RunningStatisticsOp op{};
  op.count = statistics_count_;
  op.batch = batch_statistics;
  op.running = parameters + parameter_count_;
  op.finite = finite;
  op.share = kMomentum;
  op.correction = rows > 1 ? static_cast<float>(rows) / static_cast<float>(rows - 1) : 1.0f;
  return op;
}

void FlashSacNetwork::initialise(float* parameters, u64 seed, u32 first_environment) const {
  std::fill_n(parameters, span(), 0.0f);
  u32 environment = first_environment;
  for (const NetworkTensor& tensor : tensors_) {
    for (int g = 0; g < shape_.groups; ++g, ++environment) {
      float* values = parameters + tensor.offset + g * tensor.distance;
      if (tensor.kind == NetworkTensor::kWeight) {
        draw_weights(random_source(seed, kStreamInitialWeights, environment, 0),
                     static_cast<int>(tensor.shape[0]), static_cast<int>(tensor.shape[1]),
                     tensor.row_stride, values);
        continue;
      }
      const bool is_one =
          tensor.kind == NetworkTensor::kGain || tensor.kind == NetworkTensor::kVariance;
      std::fill_n(values, tensor.count(), is_one ? 1.0f : 0.0f);
    }
  }
}

}  // namespace millrace
