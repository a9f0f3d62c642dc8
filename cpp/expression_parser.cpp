#include "expression_parser.h"

#include <charconv>
#include <cmath>

#include "expression_body.h"
#include "status.h"
#include "term_table.h"

namespace millrace {

namespace {

using Node = ExpressionNode;
using Kind = ExpressionNode::Kind;
using NodePtr = std::unique_ptr<ExpressionNode>;

// Both bound the recursion of parser and compiler.
constexpr size_t kMaxText = 1000;
constexpr int kMaxDepth = 32;

struct Token {
  enum class Kind { kNumber, kName, kSymbol, kEnd };
  Kind kind;
  std::string text;
  int column;
  double number = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Tokenizer {
 public:
  Tokenizer(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  std::vector<Token> all() {
    std::vector<Token> tokens;
    for (;;) {
      while (at_ < text_.size() && std::string(" \t\r\n").find(text_[at_]) != std::string::npos) {
        ++at_;
      }
      if (at_ == text_.size()) break;
      tokens.push_back(next());
    }
    tokens.push_back({Token::Kind::kEnd, "", column()});
    return tokens;
  }

 private:
  int column() const { return static_cast<int>(at_) + 1; }

  Token next() {
    const char c = text_[at_];
    const bool point = c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
    if (is_digit(c) || point) return number();
    if (is_letter(c)) {
      size_t end = at_;
      while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
      return take(Token::Kind::kName, end - at_);
    }
    for (const char* symbol : {"<=", ">=", "==", "!="}) {
      if (text_.compare(at_, 2, symbol) == 0) return take(Token::Kind::kSymbol, 2);
    }
    if (std::string("+-*/()[],.:<>").find(c) == std::string::npos) refuse_character(c);
    return take(Token::Kind::kSymbol, 1);
  }

  Token number() {
    const char* begin = text_.data() + at_;
    double value = 0;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    Token token = take(Token::Kind::kNumber, static_cast<size_t>(end - begin));
    if (error != std::errc() || !std::isfinite(static_cast<float>(value))) {
      refuse_expression(path_, token.column, token.text + " does not fit a 32-bit float");
    }
    token.number = value;
    return token;
  }

  Token take(Token::Kind kind, size_t length) {
    Token token = {kind, text_.substr(at_, length), column()};
    at_ += length;
    return token;
  }

  [[noreturn]] void refuse_character(char c) const {
    const bool shown = c > ' ' && c < 0x7f;
    refuse_expression(path_, column(),
                      shown ? std::string("unexpected \"") + c + "\"" : "unexpected character");
  }

  const std::string& text_;
  const std::string& path_;
  size_t at_ = 0;
};

struct Operator {
  const char* text;
  int operation;
};

constexpr Operator kComparisons[] = {{"<", kExpressionLess},    {"<=", kExpressionLessEqual},
                                     {">", kExpressionGreater}, {">=", kExpressionGreaterEqual},
                                     {"==", kExpressionEqual},  {"!=", kExpressionNotEqual}};
constexpr Operator kSums[] = {{"+", kExpressionAdd}, {"-", kExpressionSubtract}};
constexpr Operator kProducts[] = {{"*", kExpressionMultiply}, {"/", kExpressionDivide}};

// Functions that are one elementwise operation.
constexpr Operator kElementwise[] = {
    {"abs", kExpressionAbs}, {"square", kExpressionSquare}, {"sqrt", kExpressionSqrt},
    {"exp", kExpressionExp}, {"log", kExpressionLog},       {"sin", kExpressionSin},
    {"cos", kExpressionCos}, {"min", kExpressionMin},       {"max", kExpressionMax}};

std::string shape(const Node& node) {
  return node.width == 0 ? "a number" : "a vector of " + std::to_string(node.width);
}

class Parser {
 public:
  Parser(const std::string& text, const ExpressionScope& scope, const std::string& path)
      : tokens_(Tokenizer(text, path).all()), scope_(scope), path_(path) {}

  NodePtr parse() {
    NodePtr root = comparison();
    if (token().kind != Token::Kind::kEnd) refuse_token("");
    if (root->width > 0) {
      refuse(root->column, "a reward is a number, this is " + shape(*root) +
                               ": take its sum, mean or norm, or one component");
    }
    return root;
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  const Token& take() { return tokens_[at_++]; }
  bool sees(const char* symbol) const {
    return token().kind == Token::Kind::kSymbol && token().text == symbol;
  }
  [[noreturn]] void refuse(int column, const std::string& problem) const {
    refuse_expression(path_, column, problem);
  }
  // `expected` says what could stand there; empty: nothing.
  [[noreturn]] void refuse_token(const std::string& expected) const {
    const bool at_end = token().kind == Token::Kind::kEnd;
    refuse(token().column, (at_end ? "unexpected end" : "unexpected \"" + token().text + "\"") +
                               (expected.empty() ? "" : ", expected " + expected));
  }
  void expect(const char* symbol) {
    if (!sees(symbol)) refuse_token(std::string("\"") + symbol + "\"");
    ++at_;
  }

  template <size_t N>
  const Operator* find(const Operator (&operators)[N], Token::Kind kind) const {
    for (const Operator& each : operators) {
      if (token().kind == kind && token().text == each.text) return &each;
    }
    return nullptr;
  }

  NodePtr comparison() {
    NodePtr left = sum();
    if (const Operator* found = find(kComparisons, Token::Kind::kSymbol)) {
      const Token& sign = take();
      left = elementwise(found->operation, sign, std::move(left), sum());
    }
    return left;
  }

  NodePtr sum() {
    NodePtr left = product();
    while (const Operator* found = find(kSums, Token::Kind::kSymbol)) {
      const Token& sign = take();
      left = elementwise(found->operation, sign, std::move(left), product());
    }
    return left;
  }

  NodePtr product() {
    NodePtr left = unary();
    while (const Operator* found = find(kProducts, Token::Kind::kSymbol)) {
      const Token& sign = take();
      left = elementwise(found->operation, sign, std::move(left), unary());
    }
    return left;
  }

  // Whatever nests passes through here.
  NodePtr unary() {
    if (++depth_ > kMaxDepth) {
      refuse(token().column, "nested deeper than " + std::to_string(kMaxDepth));
    }
    NodePtr node;
    if (sees("-")) {
      const Token& sign = take();
      node = elementwise(kExpressionNegate, sign, unary(), nullptr);
    } else {
      node = primary();
      while (sees(".") || sees("[")) {
        node = take().text == "." ? letters(std::move(node)) : indices(std::move(node));
      }
    }
    --depth_;
    return node;
  }

  NodePtr primary() {
    if (sees("(")) {
      ++at_;
      NodePtr inner = comparison();
      expect(")");
      return inner;
    }
    if (token().kind == Token::Kind::kNumber) {
      const Token& number = take();
      NodePtr node = make(Kind::kNumber, number.column, 0);
      node->value = static_cast<float>(number.number);
      return node;
    }
    if (token().kind != Token::Kind::kName) refuse_token("a number, a name or \"(\"");
    const Token& word = take();
    return sees("(") ? call(word) : name(word);
  }

  static NodePtr make(Kind kind, int column, int width) {
    return NodePtr(new Node{kind, column, width});
  }

  NodePtr name(const Token& word) const {
    std::vector<std::string> available;
    for (const ExpressionName& each : expression_names()) {
      const int width = each.width(scope_);
      if (width == 0) {
        if (word.text == each.name) refuse(word.column, "this task has no " + word.text);
        continue;
      }
      if (word.text == each.name) {
        NodePtr node = make(Kind::kName, word.column, width);
        node->name = &each;
        const std::string letters = each.letters;
        if (letters.size() == static_cast<size_t>(width)) node->letters = letters;
        return node;
      }
      available.push_back(each.name);
    }
    for (const ExpressionFunction& function : expression_functions()) {
      if (word.text == function.name) refuse(word.column, word.text + " is a function: it takes (");
    }
    refuse_unknown(path_ + ": column " + std::to_string(word.column), "name", word.text, available);
  }

  // `right` is null for an operation on one part.
  NodePtr elementwise(int operation, const Token& sign, NodePtr left, NodePtr right) const {
    NodePtr node = make(Kind::kElementwise, sign.column, left->width);
    node->operation = operation;
    node->letters = left->letters;
    if (right && right->width > 0) {
      if (left->width > 0 && left->width != right->width) {
        refuse(sign.column, "\"" + sign.text + "\" takes vectors of one width, got " +
                                std::to_string(left->width) + " and " +
                                std::to_string(right->width));
      }
      if (left->width == 0) node->letters = right->letters;
      node->width = right->width;
    }
    node->parts.push_back(std::move(left));
    if (right) node->parts.push_back(std::move(right));
    return node;
  }

  std::vector<NodePtr> arguments(const Token& word, const ExpressionFunction& function) {
    std::vector<NodePtr> list;
    expect("(");
    while (!sees(")")) {
      if (!list.empty()) expect(",");
      list.push_back(comparison());
    }
    expect(")");
    if (list.size() != static_cast<size_t>(function.arguments)) {
      refuse(word.column, word.text + " takes " + std::to_string(function.arguments) +
                              (function.arguments == 1 ? " argument" : " arguments") + ", got " +
                              std::to_string(list.size()));
    }
    for (const NodePtr& argument : list) {
      if (function.reduces && argument->width == 0) {
        refuse(argument->column, word.text + " takes a vector, got a number");
      }
    }
    return list;
  }

  NodePtr call(const Token& word) {
    std::vector<std::string> names;
    for (const ExpressionFunction& function : expression_functions()) {
      names.push_back(function.name);
      if (word.text != function.name) continue;
      std::vector<NodePtr> list = arguments(word, function);
      return function.reduces ? reduction(word, std::move(list)) : mapping(word, std::move(list));
    }
    refuse_unknown(path_ + ": column " + std::to_string(word.column), "function", word.text, names);
  }

  NodePtr mapping(const Token& word, std::vector<NodePtr> list) const {
    if (word.text == "clamp") {
      NodePtr raised = elementwise(kExpressionMax, word, std::move(list[0]), std::move(list[1]));
      return elementwise(kExpressionMin, word, std::move(raised), std::move(list[2]));
    }
    for (const Operator& each : kElementwise) {
      if (word.text != each.text) continue;
      NodePtr second = list.size() > 1 ? std::move(list[1]) : nullptr;
      return elementwise(each.operation, word, std::move(list[0]), std::move(second));
    }
    throw Failure(Code::kBug, "no operation for the function " + word.text);
  }

  // Every reduction is a sum of something, with something done to it.
  NodePtr reduction(const Token& word, std::vector<NodePtr> list) const {
    NodePtr summed = std::move(list[0]);
    if (word.text == "dot") {
      summed = elementwise(kExpressionMultiply, word, std::move(summed), std::move(list[1]));
    } else if (word.text == "norm" || word.text == "norm2") {
      summed = elementwise(kExpressionSquare, word, std::move(summed), nullptr);
    }
    NodePtr count = make(Kind::kNumber, word.column, 0);
    count->value = static_cast<float>(summed->width);
    NodePtr node = make(Kind::kSum, word.column, 0);
    node->parts.push_back(std::move(summed));
    if (word.text == "norm") return elementwise(kExpressionSqrt, word, std::move(node), nullptr);
    if (word.text == "mean") {
      return elementwise(kExpressionDivide, word, std::move(node), std::move(count));
    }
    return node;
  }

  NodePtr selection(NodePtr from, int width, int offset, int stride) const {
    NodePtr node = make(Kind::kSelection, from->column, width);
    node->offset = offset;
    node->stride = stride;
    node->parts.push_back(std::move(from));
    return node;
  }

  // After ".": some of the letters in their order, one step apart or every second one.
  NodePtr letters(NodePtr from) {
    if (token().kind != Token::Kind::kName) refuse_token("the letters of components");
    const Token& word = take();
    if (from->letters.empty()) {
      refuse(word.column, from->width == 0
                              ? "a number has no components"
                              : shape(*from) + " has no letters: [0] to [" +
                                    std::to_string(from->width - 1) + "] are its components");
    }
    std::vector<int> indices;
    for (const char letter : word.text) {
      const size_t index = from->letters.find(letter);
      if (index == std::string::npos) {
        refuse(word.column, "\"." + word.text + "\": the components here are " + from->letters);
      }
      indices.push_back(static_cast<int>(index));
    }
    const int stride = indices.size() > 1 ? indices[1] - indices[0] : 1;
    for (size_t i = 1; i < indices.size(); ++i) {
      if (stride < 1 || indices[i] - indices[i - 1] != stride) {
        refuse(word.column, "\"." + word.text + "\": components stand in their order, as in .xy");
      }
    }
    const int width = indices.size() > 1 ? static_cast<int>(indices.size()) : 0;
    NodePtr node = selection(std::move(from), width, indices[0], stride);
    if (width > 0) node->letters = word.text;
    return node;
  }

  int index(int limit) {
    const Token& number = token();
    const bool is_whole = number.kind == Token::Kind::kNumber &&
                          number.text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_whole) refuse_token("a whole number");
    if (number.number > limit) {
      refuse(number.column, number.text + " is beyond " + std::to_string(limit));
    }
    return static_cast<int>(take().number);
  }

  // After "[": one component, or those from the first index up to before the second.
  NodePtr indices(NodePtr from) {
    if (from->width == 0) refuse(token().column, "a number has no components");
    const int first = index(from->width - 1);
    int width = 0;
    if (sees(":")) {
      const Token& colon = take();
      width = index(from->width) - first;
      if (width < 1) refuse(colon.column, "no components between these two");
    }
    expect("]");
    return selection(std::move(from), width, first, 1);
  }

  const std::vector<Token> tokens_;
  const ExpressionScope& scope_;
  const std::string& path_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

void refuse_expression(const std::string& path, int column, const std::string& problem) {
  throw Failure(Code::kInvalid, path + ": column " + std::to_string(column) + ": " + problem);
}

NodePtr parse_expression(const std::string& text, const ExpressionScope& scope,
                         const std::string& path) {
  if (text.size() > kMaxText) {
    refuse_expression(path, static_cast<int>(kMaxText) + 1,
                      "longer than " + std::to_string(kMaxText) + " characters");
  }
  return Parser(text, scope, path).parse();
}

}  // namespace millrace
