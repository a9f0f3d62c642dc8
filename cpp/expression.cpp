#include "expression.h"

#include <algorithm>
#include <map>

#include "expression_parser.h"
#include "status.h"

namespace millrace {

namespace {

using Node = ExpressionNode;
using Kind = ExpressionNode::Kind;

// Component offset + stride * round of a vector.
struct Index {
  int offset, stride;
};

constexpr Index kEachRound = {0, 1};

// A node's value goes to `target`; registers behind it are free. A loop's accumulator and the
// numbers that its body uses stand before the body's registers.
class Compiler {
 public:
  explicit Compiler(const std::string& path) : path_(path) {}

  std::vector<ExpressionInstruction> compile(const Node& root) {
    value(root, kEachRound, 0);
    return std::move(code_);
  }

 private:
  // The register that then holds the number, or the component of a vector at `index`.
  int value(const Node& node, Index index, int target) {
    const auto known = computed_.find(&node);
    if (known != computed_.end()) return known->second;
    switch (node.kind) {
      case Kind::kNumber:
        emit(node, {kExpressionConstant, 0, 0, 0, 0, 0, node.value}, target);
        break;
      case Kind::kName:
        load(node, index, target);
        break;
      case Kind::kSelection:
        return value(*node.parts[0], selected(node, index), target);
      case Kind::kElementwise:
        elementwise(node, index, target);
        break;
      case Kind::kSum:
        sum(node, target);
        break;
    }
    return target;
  }

  static Index selected(const Node& node, Index index) {
    if (node.width == 0) return {node.offset, 0};
    return {node.offset + node.stride * index.offset, node.stride * index.stride};
  }

  void load(const Node& node, Index index, int target) {
    const ExpressionName& name = *node.name;
    const auto field = static_cast<unsigned char>(name.field);
    const auto offset = static_cast<short>(name.offset + name.stride * index.offset);
    const auto stride = static_cast<short>(name.stride * index.stride);
    const auto operation = static_cast<unsigned char>(name.operation);
    emit(node, {operation, 0, field, 0, offset, stride, 0}, target);
  }

  void elementwise(const Node& node, Index index, int target) {
    const int left = value(*node.parts[0], index, target);
    const int right = node.parts.size() > 1 ? value(*node.parts[1], index, target + 1) : left;
    emit(node,
         {static_cast<unsigned char>(node.operation), 0, static_cast<unsigned char>(left),
          static_cast<unsigned char>(right), 0, 0, 0},
         target);
  }

  void sum(const Node& node, int target) {
    const Node& part = *node.parts[0];
    emit(node, {kExpressionConstant, 0, 0, 0, 0, 0, 0.0f}, target);
    int next = target + 1;
    compute_numbers(part, next);
    const size_t begin = code_.size();
    const auto term = static_cast<unsigned char>(value(part, kEachRound, next));
    emit(node, {kExpressionAdd, 0, static_cast<unsigned char>(target), term, 0, 0, 0}, target);
    const auto rounds = static_cast<short>(part.width);
    const auto length = static_cast<short>(code_.size() - begin);
    emit(node, {kExpressionRepeat, 0, 0, 0, rounds, length, 0}, target);
  }

  // The numbers within a vector are the same in every round: loops need not nest.
  void compute_numbers(const Node& node, int& next) {
    if (node.width == 0) {
      value(node, kEachRound, next);
      computed_[&node] = next++;
      return;
    }
    for (const auto& part : node.parts) compute_numbers(*part, next);
  }

  void emit(const Node& node, ExpressionInstruction instruction, int target) {
    if (target >= kMaxExpressionRegisters) {
      refuse_expression(
          path_, node.column,
          "needs more than " + std::to_string(int{kMaxExpressionRegisters}) + " values at a time");
    }
    if (code_.size() == kMaxExpressionLength) {
      refuse_expression(
          path_, node.column,
          "longer than " + std::to_string(int{kMaxExpressionLength}) + " instructions");
    }
    instruction.target = static_cast<unsigned char>(target);
    code_.push_back(instruction);
  }

  const std::string& path_;
  std::vector<ExpressionInstruction> code_;
  std::map<const Node*, int> computed_;
};

}  // namespace

std::vector<ExpressionInstruction> compile_expression(const std::string& text,
                                                      const ExpressionScope& scope,
                                                      const std::string& path) {
  return Compiler(path).compile(*parse_expression(text, scope, path));
}

ExpressionRange append_expression(const std::vector<ExpressionInstruction>& instructions,
                                  const std::string& path, ExpressionCode& code) {
  const auto count = static_cast<int>(instructions.size());
  if (code.count + count > kMaxExpressionCode) {
    throw Failure(Code::kInvalid, path + ": all expressions together are longer than " +
                                      std::to_string(int{kMaxExpressionCode}) + " instructions");
  }
  std::copy(instructions.begin(), instructions.end(), code.instruction + code.count);
  const ExpressionRange range = {code.count, count};
  code.count += count;
  return range;
}

}  // namespace millrace
