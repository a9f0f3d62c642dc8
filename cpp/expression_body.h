// Expressions as the update step runs them: reward terms that a configuration brings, compiled by
// expression.h to instructions on scalar registers.
//
// A vector costs no registers: a loop runs its body once per component, and loads use the number of
// the round. Loops do not nest, and an expression ends after its last instruction: every one ends.
// Pure functions of one environment, like terms.h: cannot allocate, draw, wait or see another
// environment. Division by zero and the like give what IEEE 754 says. Freestanding C++14, no
// double.
#pragma once

#include "elementary.h"
#include "portable.h"
#include "state.h"
#include "terms.h"

namespace millrace {

enum {
  kMaxExpressionLength = 64,  // instructions of one expression
  kMaxExpressionRegisters = 32,
  kMaxExpressionCode = 256  // instructions of all expressions of a task
};

enum ExpressionOperation {
  kExpressionConstant,
  kExpressionLoad,
  kExpressionLoadJointPosition,  // relative to the default pose
  kExpressionRepeat,
  kExpressionNegate,
  kExpressionAbs,
  kExpressionSquare,
  kExpressionSqrt,
  kExpressionExp,
  kExpressionLog,
  kExpressionSin,
  kExpressionCos,
  kExpressionAdd,
  kExpressionSubtract,
  kExpressionMultiply,
  kExpressionDivide,
  kExpressionMin,
  kExpressionMax,
  kExpressionLess,
  kExpressionLessEqual,
  kExpressionGreater,
  kExpressionGreaterEqual,
  kExpressionEqual,
  kExpressionNotEqual
};

struct ExpressionInstruction {
  unsigned char operation;
  unsigned char target;       // the register that it writes
  unsigned char left, right;  // those it reads (right = left if it takes one); of a load: left is
                              // the field, episode fields counting from kSimFieldCount
  short offset, stride;       // of a load: component offset + stride * round
                              // of a repeat: the number of rounds, the instructions of one
  float value;                // of a constant
};

struct ExpressionCode {
  ExpressionInstruction instruction[kMaxExpressionCode];
  int count;
};

// One expression in the code; none when count is 0.
struct ExpressionRange {
  int first, count;
};

MR_FN float expression_result(int operation, float a, float b) {
  switch (operation) {
    case kExpressionNegate:
      return -a;
    case kExpressionAbs:
      return mr_abs(a);
    case kExpressionSquare:
      return squared(a);
    case kExpressionSqrt:
      return mr_sqrt(a);
    case kExpressionExp:
      return mr_exp(a);
    case kExpressionLog:
      return mr_log(a);
    case kExpressionSin:
      return mr_sin(a);
    case kExpressionCos:
      return mr_cos(a);
    case kExpressionAdd:
      return a + b;
    case kExpressionSubtract:
      return a - b;
    case kExpressionMultiply:
      return a * b;
    case kExpressionDivide:
      return a / b;
    case kExpressionMin:
      return mr_min(a, b);
    case kExpressionMax:
      return mr_max(a, b);
    case kExpressionLess:
      return a < b ? 1.0f : 0.0f;
    case kExpressionLessEqual:
      return a <= b ? 1.0f : 0.0f;
    case kExpressionGreater:
      return a > b ? 1.0f : 0.0f;
    case kExpressionGreaterEqual:
      return a >= b ? 1.0f : 0.0f;
    case kExpressionEqual:
      return a == b ? 1.0f : 0.0f;
    case kExpressionNotEqual:
      return a != b ? 1.0f : 0.0f;
  }
  return 0.0f;
}

MR_FN float expression_load(MR_CONSTANT const ExpressionInstruction& load,
                            MR_CONSTANT const TermConstants& constants,
                            MR_CONSTANT const StateView& state, int env, int round) {
  const int i = load.offset + load.stride * round;
  if (load.operation == kExpressionLoadJointPosition) {
    return component(state.sim[kJointPosition], env, i) - constants.default_joint_position[i];
  }
  const int field = load.left;
  return field < kSimFieldCount ? component(state.sim[field], env, i)
                                : component(state.episode[field - kSimFieldCount], env, i);
}

MR_FN float evaluate_expression(MR_CONSTANT const ExpressionCode& code, ExpressionRange range,
                                MR_CONSTANT const TermConstants& constants,
                                MR_CONSTANT const StateView& state, int env) {
  float registers[kMaxExpressionRegisters] = {};
  int round = 0;
  const int end = range.first + range.count;
  for (int at = range.first; at < end; ++at) {
    MR_CONSTANT const ExpressionInstruction& step = code.instruction[at];
    switch (step.operation) {
      case kExpressionConstant:
        registers[step.target] = step.value;
        break;
      case kExpressionLoad:
      case kExpressionLoadJointPosition:
        registers[step.target] = expression_load(step, constants, state, env, round);
        break;
      case kExpressionRepeat:
        round += 1;
        if (round < step.offset) {
          at -= step.stride + 1;
        } else {
          round = 0;
        }
        break;
      default:
        registers[step.target] =
            expression_result(step.operation, registers[step.left], registers[step.right]);
    }
  }
  return registers[0];
}

}  // namespace millrace
