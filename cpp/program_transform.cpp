#include "program_transform.h"

#include <algorithm>

#include "op_facts.h"

namespace millrace {

namespace {

bool overlap(const Extent& a, const Extent& b) {
  return a.operand.carrier == b.operand.carrier && a.operand.offset < b.operand.offset + b.count &&
         b.operand.offset < a.operand.offset + a.count;
}

bool touch_the_same(const Op& a, const Op& b) {
  const std::vector<Extent> of_a = extents_of(a), of_b = extents_of(b);
  return std::any_of(of_a.begin(), of_a.end(), [&](const Extent& one) {
    return std::any_of(of_b.begin(), of_b.end(),
                       [&](const Extent& other) { return overlap(one, other); });
  });
}

// Whether host and device give the same bits: functions of one element from one source. Products
// and sums round in another order there.
bool has_equal_device_version(const Op& op) {
  return std::holds_alternative<PointwiseOp>(op) || std::holds_alternative<RandomFillOp>(op);
}

class Transformer {
 public:
  Transformer(const Program& program, InputRewrite inputs) : program_(program), inputs_(inputs) {}

  TransformedProgram transform() {
    for (at_ = 0; at_ < program_.records().size(); ++at_) {
      Program::Record record = program_.records()[at_];
      if (move_copy(record)) continue;
      move_to_device(record);
      take_scalar_from_block(record);
      list_inputs(record);
      const bool is_copy = std::holds_alternative<CopyInOp>(record.op);
      append(record, !record.is_on_host && !is_copy);
    }
    return std::move(result_);
  }

 private:
  void rewritten(const Program::Record& record, const char* kind, std::string reason) {
    result_.rewrites.push_back({at_, record.site, kind, std::move(reason)});
  }
  void refused(const Program::Record& record, std::string reason) {
    result_.refusals.push_back({at_, record.site, std::move(reason)});
  }

  // Whether the record is a copy that now happens before the program.
  bool move_copy(const Program::Record& record) {
    const auto* copy = std::get_if<CopyInOp>(&record.op);
    if (copy == nullptr || record.is_on_host) return false;
    const std::string what = "the copy of host buffer " + std::to_string(copy->buffer);
    for (size_t before = 0; before < at_; ++before) {
      if (!touch_the_same(program_.records()[before].op, record.op)) continue;
      refused(record, what + " stays: op " + name_of(program_, before) + " (" +
                          shown(program_.records()[before].site) +
                          ") touches its target before it");
      return false;
    }
    result_.copies_before.push_back(*copy);
    rewritten(record, "copy_moved_before",
              what + " would freeze its address; no op before it touches its target");
    return true;
  }

  void move_to_device(Program::Record& record) {
    if (!record.is_on_host) return;
    if (has_equal_device_version(record.op)) {
      record.is_on_host = false;
      return rewritten(record, "moved_to_device",
                       "it was placed on the host, and its device version gives the same bits");
    }
    if (const auto* function = std::get_if<HostFunctionOp>(&record.op)) {
      return refused(record, std::string("host function '") + function->name +
                                 "' stays on the host: no device has a version of it");
    }
    refused(record,
            "it was placed on the host and stays there: its device version rounds in "
            "another order");
  }

  void take_scalar_from_block(Program::Record& record) {
    auto* pointwise = std::get_if<PointwiseOp>(&record.op);
    if (pointwise == nullptr || pointwise->scalar.from != ScalarSource::From::kHost) return;
    pointwise->scalar.from = ScalarSource::From::kBlock;
    rewritten(record, "scalar_to_block",
              "host scalar " + std::to_string(pointwise->scalar.number) +
                  " would be frozen: it is refreshed in the argument block instead");
  }

  void list_inputs(const Program::Record& record) {
    if (inputs_ == InputRewrite::kNone) return;
    for (const Extent& extent : extents_of(record.op)) {
      if (!extent.operand.is_input()) continue;
      rewritten(record, "input_to_block",
                "input " + std::to_string(extent.operand.input()) +
                    " is read through its address in the argument block instead of being copied");
    }
  }

  void append(const Program::Record& record, bool is_captured) {
    std::vector<TransformedProgram::Segment>& segments = result_.segments;
    if (segments.empty() || segments.back().is_captured != is_captured) {
      const std::string name = program_.name() + "." + std::to_string(segments.size());
      segments.push_back({Program(name, program_.workspace()), is_captured});
    }
    segments.back().program.append(record);
  }

  const Program& program_;
  const InputRewrite inputs_;
  size_t at_ = 0;
  TransformedProgram result_;
};

}  // namespace

size_t TransformedProgram::captured_ops() const {
  size_t ops = 0;
  for (const Segment& segment : segments) {
    if (segment.is_captured) ops += segment.program.records().size();
  }
  return ops;
}

nlohmann::json TransformedProgram::describe() const {
  nlohmann::json done = nlohmann::json::array(), stays = nlohmann::json::array(),
                 parts = nlohmann::json::array();
  for (const Rewrite& each : rewrites) {
    done.push_back({{"op", each.op},
                    {"site", shown(each.site)},
                    {"kind", each.kind},
                    {"reason", each.reason}});
  }
  for (const Refusal& each : refusals) {
    stays.push_back({{"op", each.op}, {"site", shown(each.site)}, {"reason", each.reason}});
  }
  for (const Segment& each : segments) {
    parts.push_back({{"ops", each.program.records().size()}, {"captured", each.is_captured}});
  }
  return {{"rewrites", std::move(done)},
          {"refusals", std::move(stays)},
          {"segments", std::move(parts)},
          {"copies_before", copies_before.size()},
          {"captured_ops", captured_ops()}};
}

TransformedProgram transform(const Program& program, InputRewrite inputs) {
  return Transformer(program, inputs).transform();
}

}  // namespace millrace
