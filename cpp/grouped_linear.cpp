#include "grouped_linear.h"

namespace millrace {

GemmOp GroupedLinear::forward(int rows, const Input& input, Operand parameters,
                              Operand output) const {
  const bool is_shared = input.distance == 0;
  GemmOp op{};
  op.transpose_b = true;
  op.m = rows;
  op.n = is_shared ? groups * outputs : outputs;
  op.k = inputs;
  op.a = input.first;
  op.a_stride = input.stride;
  op.a_distance = input.distance;
  op.b = parameters + weight;
  op.b_stride = inputs;
  op.b_distance = distance();
  op.c = output;
  op.c_stride = groups * outputs;
  op.c_distance = outputs;
  op.count = is_shared ? 1 : groups;
  return op;
}

GemmOp GroupedLinear::weight_gradient(int rows, Operand gradient, const Input& input,
                                      Operand parameter_gradient) const {
  const bool is_shared = input.distance == 0;
  GemmOp op{};
  op.transpose_a = true;
  op.m = is_shared ? groups * outputs : outputs;
  op.n = inputs;
  op.k = rows;
  op.a = gradient;
  op.a_stride = groups * outputs;
  op.a_distance = outputs;
  op.b = input.first;
  op.b_stride = input.stride;
  op.b_distance = input.distance;
  op.c = parameter_gradient + weight;
  op.c_stride = inputs;
  op.c_distance = distance();
  op.count = is_shared ? 1 : groups;
  return op;
}

GemmOp GroupedLinear::input_gradient(int rows, Operand gradient, Operand parameters,
                                     int first_column, int columns, Operand result) const {
  GemmOp op{};
  op.m = rows;
  op.n = columns;
  op.k = outputs;
  op.a = gradient;
  op.a_stride = groups * outputs;
  op.a_distance = outputs;
  op.b = parameters + weight + first_column;
  op.b_stride = inputs;
  op.b_distance = distance();
  op.c = result;
  op.c_stride = groups * columns;
  op.c_distance = columns;
  op.count = groups;
  return op;
}

}  // namespace millrace
