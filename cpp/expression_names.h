// What expressions can name: the parts of an environment's state and the functions on them. One
// table, which the parser checks against and `millrace terms --kind expression` prints.
// Immutable; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace millrace {

// What a task has to name.
struct ExpressionScope {
  int joints = 0;
  int actions = 0;
  int bodies = 0;            // tracked ones
  bool is_legged = false;    // has a free root, IMUs and two feet
  bool has_command = false;  // follows a velocity command
  bool has_gait = false;
};

enum class ExpressionExtent { kLegged, kCommand, kGait, kJoints, kActions, kBodies };

// Component i of the name is component offset + stride * i of the field.
struct ExpressionName {
  const char* name;
  int operation;  // kExpressionLoad or kExpressionLoadJointPosition
  int field;      // as ExpressionInstruction counts them
  int offset, stride;
  ExpressionExtent extent;
  int dim;              // in all; of joints, actions and bodies: for each of them
  const char* letters;  // of its components, if it has as many
  const char* unit;
  const char* summary;

  // Components in this task; 0 if it has none of them.
  int width(const ExpressionScope& scope) const;
};

struct ExpressionFunction {
  const char* name;
  int arguments;
  bool reduces;  // takes vectors and gives a number; others work component by component
  const char* summary;
};

const std::vector<ExpressionName>& expression_names();
const std::vector<ExpressionFunction>& expression_functions();

// Both, in the shape of describe_terms(), with the kind "expression".
nlohmann::json describe_expressions();

}  // namespace millrace
