// From the text of an expression to a tree whose names, shapes and numbers of arguments are right.
// Every error is a Failure(kInvalid) that begins with the key's path and the column, from 1.
// Called on the thread that opens a run.
//
//   comparison := sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]       1 or 0
//   sum        := product {("+" | "-") product}
//   product    := unary {("*" | "/") unary}
//   unary      := "-" unary | primary {"." letters | "[" integer [":" integer] "]"}
//   primary    := number | name | name "(" comparison {"," comparison} ")" | "(" comparison ")"
//
// Operators and most functions work component by component; a number goes with every component.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "expression_names.h"

namespace millrace {

struct ExpressionNode {
  // Elementwise nodes apply `operation` to their one or two parts, which are numbers or of one
  // width; a selection takes components offset + stride * i of its part.
  enum class Kind { kNumber, kName, kSelection, kElementwise, kSum };
  Kind kind;
  int column;
  int width;                             // components; 0: a number
  std::string letters = {};              // what the components are called, if anything
  float value = 0;                       // of a number
  const ExpressionName* name = nullptr;  // of a name
  int offset = 0, stride = 1;            // of a selection
  int operation = 0;                     // of an elementwise node
  std::vector<std::unique_ptr<ExpressionNode>> parts = {};
};

// The tree of a number. `path` is the key that holds `text`.
std::unique_ptr<ExpressionNode> parse_expression(const std::string& text,
                                                 const ExpressionScope& scope,
                                                 const std::string& path);

[[noreturn]] void refuse_expression(const std::string& path, int column,
                                    const std::string& problem);

}  // namespace millrace
