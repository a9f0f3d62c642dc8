#include "policy_network.h"

#include "flashsac_network.h"

namespace millrace {
namespace {

class FastSacPolicy : public PolicyNetwork {
 public:
  explicit FastSacPolicy(NetworkShape shape) : network_(shape) {}

  uint64_t parameter_count() const override { return network_.parameter_count(); }
  const std::vector<NetworkTensor>& tensors() const override { return network_.tensors(); }
  uint64_t head_bias() const override { return network_.head().bias; }
  int input_stride() const override { return network_.input_stride(); }
  int head_width() const override { return network_.head_width(); }
  void add_carriers(Workspace& workspace, int rows) override {
    activations_ = network_.add_activations(workspace, "policy", rows, false);
  }
  void record(Program& program, Operand parameters, int rows, Operand input,
              Operand heads) const override {
    Network::Activations activations = activations_;
    activations.rows = rows;
    network_.record_forward(program, parameters, input, input_stride(), activations, heads);
  }

 private:
  Network network_;
  Network::Activations activations_;
};

class FlashSacPolicy : public PolicyNetwork {
 public:
  explicit FlashSacPolicy(NetworkShape shape) : network_(shape) {}

  uint64_t parameter_count() const override { return network_.span(); }
  const std::vector<NetworkTensor>& tensors() const override { return network_.tensors(); }
  uint64_t head_bias() const override { return network_.head_bias(); }
  int input_stride() const override { return network_.input_stride(); }
  int head_width() const override { return network_.head_width(); }
  void add_carriers(Workspace& workspace, int rows) override {
    activations_ = network_.add_activations(workspace, "policy", rows, false);
  }
  void record(Program& program, Operand parameters, int rows, Operand input,
              Operand heads) const override {
    network_.record_forward(program, {parameters, Operand{}}, rows, input, input_stride(),
                            activations_, heads);
  }

 private:
  FlashSacNetwork network_;
  FlashSacNetwork::Activations activations_;
};

}  // namespace

std::unique_ptr<PolicyNetwork> PolicyNetwork::make(const PolicyShape& shape) {
  if (shape.algorithm == Algorithm::kFlashSac) {
    return std::make_unique<FlashSacPolicy>(shape.network());
  }
  return std::make_unique<FastSacPolicy>(shape.network());
}

}  // namespace millrace
