// The network of both roles: three hidden layers, then a linear head; `groups` of them side by side
// on one input. All parameters lie in one span, tensor by tensor; within a tensor, group by group,
// so that group g of a layer is one matrix and the first layer of all groups is one matrix, too.
// Gradients, moments and targets share this layout.
//
// What comes from outside and what goes out has any width: the first layer's columns and the head's
// rows are filled up (grouped_linear.h).
//
// Only records programs; owns no memory.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "grouped_linear.h"
#include "network_tensor.h"
#include "program.h"

namespace millrace {

// What hidden layers are.
enum class NetworkBody {
  kFastSac,  // h, h/2, h/4 wide; Linear, LayerNorm, SiLU
  kPlain     // all h wide; Linear, ReLU
};

struct NetworkShape {
  int inputs, hidden, outputs, groups;
  NetworkBody body = NetworkBody::kFastSac;
};

class Network {
 public:
  static constexpr int kHiddenLayers = 3;

  // Filled-up widths. Offsets are elements from the start of the span.
  struct Layer {
    int inputs, outputs;
    uint64_t weight, bias;  // [group][output][input], [group][output]
    uint64_t gain, shift;   // [group][output]; of LayerNorm
  };

  // "l0/weight", "l0/bias", "l0/norm/weight", "l0/norm/bias", …, "head/weight", "head/bias"
  using Tensor = NetworkTensor;

  // Carriers of one evaluation at a fixed number of rows. Without gradients, and where layers are
  // ReLU's, a layer works in place: its linear values become the output. ReLU has no mean or
  // deviation.
  struct Activations {
    int rows;
    std::array<Operand, kHiddenLayers> linear, output, mean, inverse_deviation, gradient;
  };

  explicit Network(NetworkShape shape);

  const NetworkShape& shape() const { return shape_; }
  int input_stride() const { return layers_[0].inputs; }  // at least, of rows of inputs
  int head_width() const { return head().outputs; }       // of one group's heads
  const Layer& layer(int i) const { return layers_[i]; }
  const Layer& head() const { return layers_[kHiddenLayers]; }
  uint64_t parameter_count() const { return parameter_count_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

  Activations add_activations(Workspace& workspace, const std::string& name, int rows,
                              bool with_gradients) const;

  // heads [row][group][head_width()], without the head's bias (the op that reads them adds it);
  // unused: the op computes them from the last hidden layer.
  void record_forward(Program& program, Operand parameters, Operand input, int input_stride,
                      const Activations& activations, Operand heads) const;

  // What an op that computes the heads itself has of them, and leaves of their gradient. Of
  // networks with one output.
  ScalarHead scalar_head(Operand parameters, const Activations& activations) const;
  ScalarHeadGradient scalar_head_gradient(const Activations& activations) const;

  // Whether a way back begins at the heads, or at the last hidden layer, whose gradient an op has
  // left (scalar_head_gradient()); that of the heads then only makes that of their parameters.
  enum class HeadGradient { kIsGiven, kHasPassed };

  // From the gradient of the heads to that of every parameter.
  void record_backward(Program& program, Operand parameters, Operand input, int input_stride,
                       const Activations& activations, Operand heads_gradient,
                       Operand parameter_gradient,
                       HeadGradient head = HeadGradient::kIsGiven) const;

  // From the gradient of the heads to that of `columns` input columns, summed over the groups.
  // Devices are fastest where first_column is a multiple of kVectorWidth.
  void record_input_gradient(Program& program, Operand parameters, const Activations& activations,
                             Operand heads_gradient, int first_column, int columns,
                             Operand input_gradient,
                             HeadGradient head = HeadGradient::kIsGiven) const;

  // PyTorch's default for Linear: U(+-1/sqrt(fan in)) for weight and bias; norms at one and zero;
  // the head zero where `zero_head`. Tensor k of group g draws as environment first_environment +
  // k * groups + g of the initial-weights stream.
  void initialise(float* parameters, u64 seed, u32 first_environment, bool zero_head) const;

 private:
  GroupedLinear linear(const Layer& layer) const {
    return {shape_.groups, layer.inputs, layer.outputs, layer.weight};
  }
  bool is_plain() const { return shape_.body == NetworkBody::kPlain; }
  bool is_scalar() const { return shape_.outputs == 1; }
  // From the product of a hidden layer to its output.
  LayerForwardOp layer_forward(int index, Operand parameters, const Activations& activations) const;
  // Of a layer's weights, and of its bias where nothing else sums it.
  void record_parameter_gradients(Program& program, int index, int rows,
                                  const GroupedLinear::Input& input, Operand gradient,
                                  Operand parameter_gradient) const;
  void record_layer_backward(Program& program, int index, Operand parameters,
                             const Activations& activations, Operand parameter_gradient) const;
  // From the gradient of the heads down to that of the first layer's product, in
  // activations.gradient[0], and to that of the parameters above it. Without a parameter gradient:
  // only that.
  void record_backward_to_first_layer(Program& program, Operand parameters,
                                      const Activations& activations, Operand heads_gradient,
                                      HeadGradient head, Operand parameter_gradient) const;

  NetworkShape shape_;
  std::vector<Layer> layers_;
  std::vector<Tensor> tensors_;
  uint64_t parameter_count_ = 0;
};

}  // namespace millrace
