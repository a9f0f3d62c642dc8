// Reward terms that a configuration brings as text: `expr: "exp(-norm2(cmd.xy) / 0.25)"`. Names,
// shapes and sizes are checked here, so that what expression_body.h runs needs no checks.
// Called on the thread that opens a run.
#pragma once

#include <string>
#include <vector>

#include "expression_body.h"
#include "expression_names.h"

namespace millrace {

// Throws Failure(kInvalid), which begins with `path`, the text's key, and a column.
std::vector<ExpressionInstruction> compile_expression(const std::string& text,
                                                      const ExpressionScope& scope,
                                                      const std::string& path);

// Puts the instructions behind what `code` holds; throws Failure(kInvalid) naming `path` when they
// do not fit.
ExpressionRange append_expression(const std::vector<ExpressionInstruction>& instructions,
                                  const std::string& path, ExpressionCode& code);

}  // namespace millrace
