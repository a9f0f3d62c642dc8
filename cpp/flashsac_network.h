// FlashSAC's network of both roles: BatchNorm and Linear embed the input; two residual blocks of
// Linear (four times as wide), BatchNorm, ReLU, Linear, BatchNorm, ReLU; RMSNorm; a linear head.
// Only the head has a bias, which the op that reads the heads adds. `groups` of them side by side
// on one input, activations [row][group][column].
//
// Trained parameters lie in one span, within a tensor group by group, a BatchNorm's gain and shift
// together; behind them the running means of all BatchNorms, then their running variances. A batch
// in training mode leaves its own statistics in the order of the running ones, which move towards
// them only after the step, so that a step that is left out leaves them alone, too.
//
// The input's columns and the head's rows are filled up (grouped_linear.h); so are the embedding's
// BatchNorm and its statistics, with gains of zero.
//
// Only records programs; owns no memory.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "grouped_linear.h"
#include "network.h"
#include "network_tensor.h"
#include "program.h"

namespace millrace {

class FlashSacNetwork {
 public:
  static constexpr int kBlocks = 2;
  static constexpr int kExpansion = 4;

  // Places from the start of the span; statistics: of the means, the variances stand
  // statistics_count() behind.
  struct Norm {
    int columns, width;  // without and with what fills them up
    uint64_t affine, statistics;
  };
  struct Block {
    GroupedLinear widen, narrow;
    Norm wide_norm, narrow_norm;
  };

  // What an evaluation runs on. In training mode `statistics` is where those of the batch go;
  // otherwise it is not used, and the running ones count.
  struct Weights {
    Operand parameters, statistics;
    bool is_training() const { return statistics.used(); }
  };

  // Carriers of evaluations of at most `rows` rows.
  struct Activations {
    int rows;
    Operand embedded;  // the normalised input
    std::array<Operand, kBlocks + 1> stream;
    std::array<Operand, kBlocks> wide, wide_output, narrow;
    Operand final_output, inverse_rms;
    // Only with gradients.
    Operand final_gradient, stream_gradient, wide_gradient, narrow_gradient, embedded_gradient;
  };

  explicit FlashSacNetwork(NetworkShape shape);

  const NetworkShape& shape() const { return shape_; }
  int input_stride() const { return embed_.inputs; }  // of rows of inputs
  int head_width() const { return head_.outputs; }    // of one group's heads
  uint64_t head_bias() const { return head_bias_; }
  uint64_t parameter_count() const { return parameter_count_; }    // trained
  uint64_t statistics_count() const { return statistics_count_; }  // means, as many variances
  uint64_t span() const { return parameter_count_ + 2 * statistics_count_; }
  // "embed/weight", "b0/l1/norm/mean", …
  const std::vector<NetworkTensor>& tensors() const { return tensors_; }
  // Every trained parameter once: rows of weights of length 1, a norm's vectors of the square root
  // of their width.
  const std::vector<RowBlock>& row_blocks() const { return row_blocks_; }

  Activations add_activations(Workspace& workspace, const std::string& name, int rows,
                              bool with_gradients) const;

  // heads [row][group][head_width()], of the first `rows` rows.
  void record_forward(Program& program, const Weights& weights, int rows, Operand input,
                      int input_stride, const Activations& activations, Operand heads) const;

  // From the gradient of the heads of the first `head_rows` rows, of the `rows` that the training
  // batch had, to that of every parameter. Of the rows behind, activations.final_gradient must be
  // 0.
  void record_backward(Program& program, const Weights& weights, int rows, int head_rows,
                       Operand input, int input_stride, const Activations& activations,
                       Operand heads_gradient, Operand parameter_gradient) const;

  // In evaluation mode: to the gradient of the input, [row][input_stride()], summed over the
  // groups.
  void record_input_gradient(Program& program, Operand parameters, int rows, Operand input,
                             int input_stride, const Activations& activations,
                             Operand heads_gradient, Operand input_gradient) const;

  // Towards the statistics of a batch of that many rows, where `finite` is 1.
  RunningStatisticsOp move_statistics(Operand parameters, Operand batch_statistics, int rows,
                                      Operand finite) const;

  // Orthogonal weights, rows of length 1; norms at one and zero; no bias; running statistics of a
  // standard normal. Tensor k of group g draws as environment first_environment + k * groups + g of
  // the initial-weights stream.
  void initialise(float* parameters, u64 seed, u32 first_environment) const;

 private:
  // With the widths of the tensor, which are filled up where `is_outer` says so.
  struct Outer {
    bool inputs, outputs;
  };
  GroupedLinear add_linear(const std::string& name, int inputs, int outputs, Outer is_outer);
  Norm add_norm(const std::string& name, int columns, int width);
  void add_statistics(const std::string& name, const Norm& norm);
  BatchNorm batch_norm(const Norm& norm, const Weights& weights, int rows, Operand input,
                       bool has_relu) const;
  BatchNorm embedding_norm(const Weights& weights, int rows, Operand input, int input_stride) const;
  // From the gradient of the heads down to that of the embedding, in activations.stream_gradient.
  // Without a parameter gradient: only that.
  void record_blocks_backward(Program& program, const Weights& weights, int rows, int head_rows,
                              const Activations& activations, Operand heads_gradient,
                              Operand parameter_gradient) const;

  NetworkShape shape_;
  Norm embed_norm_{};
  GroupedLinear embed_{};
  std::array<Block, kBlocks> blocks_{};
  uint64_t final_gain_ = 0;
  GroupedLinear head_{};
  uint64_t head_bias_ = 0;
  uint64_t parameter_count_ = 0, statistics_count_ = 0;
  std::vector<NetworkTensor> tensors_;
  std::vector<RowBlock> row_blocks_;
};

}  // namespace millrace
