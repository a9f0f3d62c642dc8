#include "network.h"

#include <cmath>

namespace millrace {

Network::Network(NetworkShape shape) : shape_(shape) {
  MR_CHECK(shape.inputs > 0 && shape.outputs > 0 && shape.groups > 0, "a network has no side 0");
  MR_CHECK(shape.hidden >= 4 && shape.hidden % 4 == 0, "hidden width must be a multiple of 4");
  const uint64_t groups = shape.groups;
  const auto place = [&](const std::string& name, std::vector<int64_t> dims, int fan_in,
                         Tensor::Kind kind, bool is_head) {
    uint64_t size = 1;
    for (const int64_t dim : dims) size *= dim;
    tensors_.push_back({name, std::move(dims), parameter_count_, size, fan_in, kind, is_head});
    const uint64_t offset = parameter_count_;
    parameter_count_ += size * groups;
    return offset;
  };
  int inputs = shape.inputs;
  for (int i = 0; i <= kHiddenLayers; ++i) {
    const bool is_head = i == kHiddenLayers;
    const bool is_plain = shape.body == NetworkBody::kPlain;
    const int outputs = is_head ? shape.outputs : is_plain ? shape.hidden : shape.hidden >> i;
    const std::string name = is_head ? "head" : "l" + std::to_string(i);
    Layer layer{inputs, outputs, 0, 0, 0, 0};
    layer.weight = place(name + "/weight", {outputs, inputs}, inputs, Tensor::kWeight, is_head);
    layer.bias = place(name + "/bias", {outputs}, inputs, Tensor::kBias, is_head);
    if (!is_head && !is_plain) {
      layer.gain = place(name + "/norm/weight", {outputs}, inputs, Tensor::kGain, false);
      layer.shift = place(name + "/norm/bias", {outputs}, inputs, Tensor::kShift, false);
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
    activations.output[i] = workspace.add_transient(prefix + "output", values);
    if (shape_.body == NetworkBody::kPlain) {
      activations.normalised[i] = activations.output[i];
    } else {
      activations.normalised[i] = workspace.add_transient(prefix + "normalised", values);
      activations.inverse_deviation[i] =
          workspace.add_transient(prefix + "inverse_deviation", lines);
    }
    if (with_gradients) {
      activations.gradient[i] = workspace.add_transient(prefix + "gradient", values);
    }
  }
  return activations;
}

// output = input weight^T. Without a distance between the groups' inputs (the first layer) the
// groups' weights are one matrix.
GemmOp Network::product(int rows, Operand input, int input_stride, uint64_t input_distance,
                        Operand parameters, const Layer& layer, Operand output) const {
  const bool is_shared = input_distance == 0;
  GemmOp op{};
  op.transpose_b = true;
  op.m = rows;
  op.n = is_shared ? shape_.groups * layer.outputs : layer.outputs;
  op.k = layer.inputs;
  op.a = input;
  op.a_stride = input_stride;
  op.a_distance = input_distance;
  op.b = parameters + layer.weight;
  op.b_stride = layer.inputs;
  op.b_distance = static_cast<uint64_t>(layer.outputs) * layer.inputs;
  op.c = output;
  op.c_stride = shape_.groups * layer.outputs;
  op.c_distance = layer.outputs;
  op.count = is_shared ? 1 : shape_.groups;
  return op;
}

// weight gradient = gradient^T input.
GemmOp Network::weight_product(int rows, Operand gradient, Operand input, int input_stride,
                               uint64_t input_distance, const Layer& layer,
                               Operand parameter_gradient) const {
  const bool is_shared = input_distance == 0;
  GemmOp op{};
  op.transpose_a = true;
  op.m = is_shared ? shape_.groups * layer.outputs : layer.outputs;
  op.n = layer.inputs;
  op.k = rows;
  op.a = gradient;
  op.a_stride = shape_.groups * layer.outputs;
  op.a_distance = layer.outputs;
  op.b = input;
  op.b_stride = input_stride;
  op.b_distance = input_distance;
  op.c = parameter_gradient + layer.weight;
  op.c_stride = layer.inputs;
  op.c_distance = static_cast<uint64_t>(layer.outputs) * layer.inputs;
  op.count = is_shared ? 1 : shape_.groups;
  return op;
}

GemmOp Network::input_product(int rows, Operand gradient, Operand parameters, const Layer& layer,
                              Operand input_gradient) const {
  GemmOp op{};
  op.m = rows;
  op.n = layer.inputs;
  op.k = layer.outputs;
  op.a = gradient;
  op.a_stride = shape_.groups * layer.outputs;
  op.a_distance = layer.outputs;
  op.b = parameters + layer.weight;
  op.b_stride = layer.inputs;
  op.b_distance = static_cast<uint64_t>(layer.outputs) * layer.inputs;
  op.c = input_gradient;
  op.c_stride = shape_.groups * layer.inputs;
  op.c_distance = layer.inputs;
  op.count = shape_.groups;
  return op;
}

void Network::record_layer_forward(Program& program, int index, Operand parameters,
                                   const Activations& activations) const {
  const Layer& layer = layers_[index];
  if (shape_.body == NetworkBody::kPlain) {
    ReluForwardOp op{};
    op.rows = activations.rows;
    op.width = shape_.groups * layer.outputs;
    op.values = activations.output[index];
    op.bias = parameters + layer.bias;
    program.record(op);
    return;
  }
  LayerForwardOp op{};
  op.rows = activations.rows;
  op.groups = shape_.groups;
  op.width = layer.outputs;
  op.linear = activations.normalised[index];
  op.bias = parameters + layer.bias;
  op.gain = parameters + layer.gain;
  op.shift = parameters + layer.shift;
  op.inverse_deviation = activations.inverse_deviation[index];
  op.output = activations.output[index];
  program.record(op);
}

void Network::record_forward(Program& program, Operand parameters, Operand input, int input_stride,
                             const Activations& activations, Operand heads) const {
  uint64_t distance = 0;
  for (int i = 0; i < kHiddenLayers; ++i) {
    const Layer& layer = layers_[i];
    program.record(product(activations.rows, input, input_stride, distance, parameters, layer,
                           activations.normalised[i]));
    record_layer_forward(program, i, parameters, activations);
    input = activations.output[i];
    input_stride = shape_.groups * layer.outputs;
    distance = layer.outputs;
  }
  program.record(
      product(activations.rows, input, input_stride, distance, parameters, head(), heads));
}

void Network::record_layer_backward(Program& program, int index, Operand parameters,
                                    const Activations& activations,
                                    Operand parameter_gradient) const {
  const Layer& layer = layers_[index];
  if (shape_.body == NetworkBody::kPlain) {
    ReluBackwardOp op{};
    op.rows = activations.rows;
    op.width = shape_.groups * layer.outputs;
    op.gradient = activations.gradient[index];
    op.output = activations.output[index];
    if (parameter_gradient.used()) op.bias_gradient = parameter_gradient + layer.bias;
    program.record(op);
    return;
  }
  LayerBackwardOp op{};
  op.rows = activations.rows;
  op.groups = shape_.groups;
  op.width = layer.outputs;
  op.gradient = activations.gradient[index];
  op.normalised = activations.normalised[index];
  op.inverse_deviation = activations.inverse_deviation[index];
  op.gain = parameters + layer.gain;
  op.shift = parameters + layer.shift;
  if (parameter_gradient.used()) {
    op.bias_gradient = parameter_gradient + layer.bias;
    op.gain_gradient = parameter_gradient + layer.gain;
    op.shift_gradient = parameter_gradient + layer.shift;
  }
  program.record(op);
}

void Network::record_backward(Program& program, Operand parameters, Operand input, int input_stride,
                              const Activations& activations, Operand heads_gradient,
                              Operand parameter_gradient) const {
  const int rows = activations.rows;
  ColumnSumOp bias{};
  bias.rows = rows;
  bias.width = shape_.groups * shape_.outputs;
  bias.values = heads_gradient;
  bias.sums = parameter_gradient + head().bias;
  program.record(bias);
  Operand gradient = heads_gradient;
  for (int i = kHiddenLayers; i > 0; --i) {
    const Layer& layer = layers_[i];
    program.record(weight_product(rows, gradient, activations.output[i - 1],
                                  shape_.groups * layer.inputs, layer.inputs, layer,
                                  parameter_gradient));
    program.record(input_product(rows, gradient, parameters, layer, activations.gradient[i - 1]));
    record_layer_backward(program, i - 1, parameters, activations, parameter_gradient);
    gradient = activations.gradient[i - 1];
  }
  program.record(
      weight_product(rows, gradient, input, input_stride, 0, layers_[0], parameter_gradient));
}

void Network::record_input_gradient(Program& program, Operand parameters,
                                    const Activations& activations, Operand heads_gradient,
                                    int first_column, int columns, Operand input_gradient) const {
  Operand gradient = heads_gradient;
  for (int i = kHiddenLayers; i > 0; --i) {
    program.record(input_product(activations.rows, gradient, parameters, layers_[i],
                                 activations.gradient[i - 1]));
    record_layer_backward(program, i - 1, parameters, activations, Operand{});
    gradient = activations.gradient[i - 1];
  }
  const Layer& first = layers_[0];
  GemmOp op{};
  op.m = activations.rows;
  op.n = columns;
  op.k = shape_.groups * first.outputs;
  op.a = gradient;
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
      const RandomSource source = random_source(seed, kStreamInitialWeights, environment, 0);
      for (uint64_t i = 0; i < tensor.distance; ++i) {
        const bool is_drawn = tensor.kind == Tensor::kWeight || tensor.kind == Tensor::kBias;
        values[i] = is_drawn && !(tensor.is_head && zero_head)
                        ? random_uniform(source, static_cast<u32>(i), -limit, limit)
                        : (tensor.kind == Tensor::kGain ? 1.0f : 0.0f);
      }
    }
  }
}

}  // namespace millrace
