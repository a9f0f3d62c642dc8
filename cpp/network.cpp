#include "network.h"

#include <algorithm>
#include <cmath>

namespace millrace {

Network::Network(NetworkShape shape) : shape_(shape) {
  MR_CHECK(shape.inputs > 0 && shape.outputs > 0 && shape.groups > 0, "a network has no side 0");
  MR_CHECK(shape.hidden >= 4 && shape.hidden % 4 == 0, "hidden width must be a multiple of 4");
  const uint64_t groups = shape.groups;
  const auto place = [&](const std::string& name, std::vector<int64_t> dims, int rows, int columns,
                         int fan_in, Tensor::Kind kind, bool is_head) {
    const uint64_t offset = parameter_count_;
    const uint64_t size = static_cast<uint64_t>(rows) * columns;
    tensors_.push_back({name, std::move(dims), offset, static_cast<uint64_t>(columns), size, fan_in,
                        kind, is_head});
    parameter_count_ += size * groups;
    return offset;
  };
  int inputs = shape.inputs;
  for (int i = 0; i <= kHiddenLayers; ++i) {
    const bool is_head = i == kHiddenLayers;
    const int outputs = is_head ? shape.outputs : is_plain() ? shape.hidden : shape.hidden >> i;
    const std::string name = is_head ? "head" : "l" + std::to_string(i);
    Layer layer{
        i == 0 ? filled_up(inputs) : inputs, is_head ? filled_up(outputs) : outputs, 0, 0, 0, 0};
    layer.weight = place(name + "/weight", {outputs, inputs}, layer.outputs, layer.inputs, inputs,
                         Tensor::kWeight, is_head);
    const auto place_vector = [&](const char* part, Tensor::Kind kind) {
      return place(name + part, {outputs}, 1, layer.outputs, inputs, kind, is_head);
    };
    layer.bias = place_vector("/bias", Tensor::kBias);
    if (!is_head && !is_plain()) {
      layer.gain = place_vector("/norm/weight", Tensor::kGain);
      layer.shift = place_vector("/norm/bias", Tensor::kShift);
    }
    layers_.push_back(layer);
    inputs = outputs;
  }
}

Network::Activations Network::add_activations(Workspace& workspace, const std::string& name,
                                              int rows, bool with_gradients) const {
  Activations activations;
  activations.rows = rows;
  const uint64_t lines = static_cast<uint64_t>(rows) * shape_.groups;
  for (int i = 0; i < kHiddenLayers; ++i) {
    const std::string prefix = name + "/l" + std::to_string(i) + "/";
    const uint64_t values = lines * layers_[i].outputs;
    activations.output[i] = workspace.add_activation(prefix + "output", values);
    activations.linear[i] = is_plain() || !with_gradients
                                ? activations.output[i]
                                : workspace.add_activation(prefix + "linear", values);
    if (!is_plain()) {
      activations.mean[i] = workspace.add_transient(prefix + "mean", lines);
      activations.inverse_deviation[i] =
          workspace.add_transient(prefix + "inverse_deviation", lines);
    }
    if (with_gradients) {
      activations.gradient[i] = workspace.add_activation(prefix + "gradient", values);
    }
  }
  return activations;
}

LayerForwardOp Network::layer_forward(int index, Operand parameters,
                                      const Activations& activations) const {
  const Layer& layer = layers_[index];
  LayerForwardOp op{};
  op.rows = activations.rows;
  op.groups = shape_.groups;
  op.width = layer.outputs;
  op.linear = activations.linear[index];
  op.bias = parameters + layer.bias;
  op.gain = parameters + layer.gain;
  op.shift = parameters + layer.shift;
  op.mean = activations.mean[index];
  op.inverse_deviation = activations.inverse_deviation[index];
  op.output = activations.output[index];
  return op;
}

void Network::record_forward(Program& program, Operand parameters, Operand input, int input_stride,
                             const Activations& activations, Operand heads) const {
  MR_CHECK(input_stride >= this->input_stride(), "rows of inputs are filled up");
  uint64_t distance = 0;
  for (int i = 0; i < kHiddenLayers; ++i) {
    const Layer& layer = layers_[i];
    GemmOp product = linear(layer).forward(activations.rows, {input, input_stride, distance},
                                           parameters, activations.linear[i]);
    if (is_plain()) {
      product.bias = parameters + layer.bias;
      product.has_relu = true;
      program.record(product);
    } else {
      program.record(DenseForwardOp{product, layer_forward(i, parameters, activations)});
    }
    input = activations.output[i];
    input_stride = shape_.groups * layer.outputs;
    distance = layer.outputs;
  }
  if (!heads.used()) return;
  program.record(
      linear(head()).forward(activations.rows, {input, input_stride, distance}, parameters, heads));
}

ScalarHead Network::scalar_head(Operand parameters, const Activations& activations) const {
  MR_CHECK(is_scalar(), "a head of several outputs is a product");
  ScalarHead scalar{};
  scalar.rows = activations.rows;
  scalar.groups = shape_.groups;
  scalar.width = head().inputs;
  scalar.hidden = activations.output[kHiddenLayers - 1];
  scalar.weight = parameters + head().weight;
  scalar.bias = parameters + head().bias;
  scalar.weight_distance = linear(head()).distance();
  scalar.bias_distance = head().outputs;
  return scalar;
}

ScalarHeadGradient Network::scalar_head_gradient(const Activations& activations) const {
  return {activations.gradient[kHiddenLayers - 1], is_plain()};
}

void Network::record_layer_backward(Program& program, int index, Operand parameters,
                                    const Activations& activations,
                                    Operand parameter_gradient) const {
  const Layer& layer = layers_[index];
  if (is_plain()) {
    ReluBackwardOp op{};
    op.rows = activations.rows;
    op.width = shape_.groups * layer.outputs;
    op.gradient = activations.gradient[index];
    op.output = activations.output[index];
    program.record(op);
    return;
  }
  LayerBackwardOp op{};
  op.rows = activations.rows;
  op.groups = shape_.groups;
  op.width = layer.outputs;
  op.gradient = activations.gradient[index];
  op.linear = activations.linear[index];
  op.mean = activations.mean[index];
  op.inverse_deviation = activations.inverse_deviation[index];
  op.bias = parameters + layer.bias;
  op.gain = parameters + layer.gain;
  op.shift = parameters + layer.shift;
  if (parameter_gradient.used()) {
    op.bias_gradient = parameter_gradient + layer.bias;
    op.gain_gradient = parameter_gradient + layer.gain;
    op.shift_gradient = parameter_gradient + layer.shift;
  }
  program.record(op);
}

void Network::record_parameter_gradients(Program& program, int index, int rows,
                                         const GroupedLinear::Input& input, Operand gradient,
                                         Operand parameter_gradient) const {
  const Layer& layer = layers_[index];
  program.record(linear(layer).weight_gradient(rows, gradient, input, parameter_gradient));
  if (index < kHiddenLayers && !is_plain()) return;  // the layer's normalisation sums its bias
  ColumnSumOp bias{};
  bias.rows = rows;
  bias.width = shape_.groups * layer.outputs;
  bias.values = gradient;
  bias.sums = parameter_gradient + layer.bias;
  program.record(bias);
}

void Network::record_backward_to_first_layer(Program& program, Operand parameters,
                                             const Activations& activations, Operand heads_gradient,
                                             HeadGradient head, Operand parameter_gradient) const {
  const int rows = activations.rows;
  Operand gradient = heads_gradient;
  for (int i = kHiddenLayers; i > 0; --i) {
    const Layer& layer = layers_[i];
    const bool has_passed = i == kHiddenLayers && head == HeadGradient::kHasPassed;
    // First: all layers below wait for it, and nothing does for the parameters'.
    if (!has_passed) {
      program.record(
          linear(layer).input_gradient(rows, gradient, parameters, activations.gradient[i - 1]));
    }
    if (parameter_gradient.used()) {
      record_parameter_gradients(program, i, rows,
                                 {activations.output[i - 1], shape_.groups * layer.inputs,
                                  static_cast<uint64_t>(layer.inputs)},
                                 gradient, parameter_gradient);
    }
    if (!has_passed || !is_plain()) {
      record_layer_backward(program, i - 1, parameters, activations, parameter_gradient);
    }
    gradient = activations.gradient[i - 1];
  }
}

void Network::record_backward(Program& program, Operand parameters, Operand input, int input_stride,
                              const Activations& activations, Operand heads_gradient,
                              Operand parameter_gradient, HeadGradient head) const {
  record_backward_to_first_layer(program, parameters, activations, heads_gradient, head,
                                 parameter_gradient);
  record_parameter_gradients(program, 0, activations.rows, {input, input_stride, 0},
                             activations.gradient[0], parameter_gradient);
}

void Network::record_input_gradient(Program& program, Operand parameters,
                                    const Activations& activations, Operand heads_gradient,
                                    int first_column, int columns, Operand input_gradient,
                                    HeadGradient head) const {
  record_backward_to_first_layer(program, parameters, activations, heads_gradient, head, Operand{});
  const Layer& first = layers_[0];
  GemmOp op{};
  op.m = activations.rows;
  op.n = columns;
  op.k = shape_.groups * first.outputs;
  op.a = activations.gradient[0];
  op.a_stride = shape_.groups * first.outputs;
  op.b = parameters + first.weight + first_column;
  op.b_stride = first.inputs;
  op.c = input_gradient;
  op.c_stride = columns;
  op.count = 1;
  program.record(op);
}

void Network::initialise(float* parameters, u64 seed, u32 first_environment, bool zero_head) const {
  u32 environment = first_environment;
  for (const Tensor& tensor : tensors_) {
    const float limit = 1.0f / std::sqrt(static_cast<float>(tensor.fan_in));
    for (int g = 0; g < shape_.groups; ++g, ++environment) {
      float* values = parameters + tensor.offset + g * tensor.distance;
      std::fill_n(values, tensor.distance, 0.0f);
      const RandomSource source = random_source(seed, kStreamInitialWeights, environment, 0);
      const bool is_drawn = (tensor.kind == Tensor::kWeight || tensor.kind == Tensor::kBias) &&
                            !(tensor.is_head && zero_head);
      const uint64_t columns = static_cast<uint64_t>(tensor.shape.back());
      for (uint64_t i = 0; i < tensor.count(); ++i) {
        float& value = values[i / columns * tensor.row_stride + i % columns];
        if (is_drawn) value = random_uniform(source, static_cast<u32>(i), -limit, limit);
        if (tensor.kind == Tensor::kGain) value = 1.0f;
      }
    }
  }
}

}  // namespace millrace
