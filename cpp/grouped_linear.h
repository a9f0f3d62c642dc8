// The matrix products of a linear layer of several groups (program.h): weights [group][output]
// [input] from element `weight` of the parameters, rows [group][input] in and [group][output] out.
// Only records programs; owns no memory.
#pragma once

#include "program.h"

namespace millrace {

// Devices read rows in vectors of that many elements; widths that come from outside are filled up
// to it with zeros, which stay zero: zero inputs make no gradient, and zero weights no output.
constexpr int kVectorWidth = 8;
constexpr int filled_up(int width) {
  return (width + kVectorWidth - 1) / kVectorWidth * kVectorWidth;
}

struct GroupedLinear {
  int groups, inputs, outputs;
  uint64_t weight;

  uint64_t distance() const { return static_cast<uint64_t>(outputs) * inputs; }
  uint64_t count() const { return groups * distance(); }

  // What a product reads: rows `stride` apart; a group's part `distance` behind the one before, or
  // the same for all groups at distance 0, whose weights are then one matrix.
  struct Input {
    Operand first;
    int stride;
    uint64_t distance;
  };

  // output = input weight^T.
  GemmOp forward(int rows, const Input& input, Operand parameters, Operand output) const;
  // gradient^T input, into the weight's place in `parameter_gradient`.
  GemmOp weight_gradient(int rows, Operand gradient, const Input& input,
                         Operand parameter_gradient) const;
  // input_gradient[row][group][column] = gradient weight, of `columns` columns from `first_column`.
  GemmOp input_gradient(int rows, Operand gradient, Operand parameters, int first_column,
                        int columns, Operand input_gradient) const;
  // The same of all columns.
  GemmOp input_gradient(int rows, Operand gradient, Operand parameters, Operand result) const {
    return input_gradient(rows, gradient, parameters, 0, inputs, result);
  }
};

}  // namespace millrace
