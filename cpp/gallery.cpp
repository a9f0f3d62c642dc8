#include "gallery.h"

#include <algorithm>
#include <iterator>

#include "status.h"

namespace millrace {

namespace {

constexpr int kRing = 8;  // carriers of a chain

// Ops over a ring of carriers, each from two of them to the next. The cycle of functions neither
// grows nor dies out nor settles: a bit that is changed anywhere still shows hundreds of ops later.
class Chain {
 public:
  Chain(GalleryProgram& to, const std::string& name, uint64_t floats)
      : program_(to.program), floats_(floats) {
    for (int i = 0; i < kRing; ++i) {
      ring_.push_back(to.workspace.add_floats(name + std::to_string(i), floats));
    }
  }

  void add(int ops) {
    static constexpr struct {
      Pointwise function;
      float scalar;
    } kCycle[] = {{Pointwise::kAddScaled, -1.8f},
                  {Pointwise::kTanh, 1.4f},
                  {Pointwise::kMultiply, 0.0f},
                  {Pointwise::kAddScaled, 1.5f},
                  {Pointwise::kTanh, 2.0f}};
    for (int i = 0; i < ops; ++i) {
      const auto& step = kCycle[static_cast<size_t>(at_) % std::size(kCycle)];
      record(next(step.function, constant(step.scalar)));
    }
  }
  void add_with_host_scalar(int number) {
    record(next(Pointwise::kScale, {ScalarSource::From::kHost, 0, number, {}}));
  }
  void add_random(u32 environment) {
    record(RandomFillOp{floats_, kStreamLearnerNoise, environment, target()});
  }
  // target = the last plus half of `from`, which has as many floats or more.
  void add_from(Operand from) {
    PointwiseOp op = next(Pointwise::kAddScaled, constant(0.5f));
    op.b = from;
    record(op);
  }
  void add_copy_in(int buffer) { record(CopyInOp{buffer, floats_, target()}); }
  void add_on_host() {
    program_.record_on_host(next(Pointwise::kTanh, constant(1.4f)));
    ++at_;
  }
  void add_host_function(const char* name, HostFunctionOp::Function function) {
    record(HostFunctionOp{name, function, source(1), target(), floats_, floats_});
  }
  Operand last() const { return source(1); }

 private:
  static ScalarSource constant(float value) {
    return {ScalarSource::From::kConstant, value, 0, {}};
  }
  Operand source(int back) const {
    return ring_[static_cast<size_t>((at_ + kRing - back) % kRing)];
  }
  Operand target() const { return source(0); }

  PointwiseOp next(Pointwise function, const ScalarSource& scalar) const {
    PointwiseOp op{};
    op.function = function;
    op.count = floats_;
    op.a = source(1);
    op.b = source(3);
    op.y = target();
    op.scalar = scalar;
    return op;
  }
  void record(const Op& op) {
    program_.record(op);
    ++at_;
  }

  Program& program_;
  const uint64_t floats_;
  std::vector<Operand> ring_;
  int at_ = 0;
};

void sort_descending(const float* source, uint64_t count, float* target, uint64_t) {
  std::copy(source, source + count, target);
  std::sort(target, target + count, [](float a, float b) { return a > b; });
}

GalleryProgramPtr one_host_scalar(const GalleryScale& scale) {
  auto made = std::make_unique<GalleryProgram>("one_host_scalar_413_ops");
  Chain chain(*made, "ring", scale.small_floats);
  chain.add_random(0);
  chain.add(205);
  chain.add_with_host_scalar(0);
  chain.add(206);
  return made;
}

// Every input is read once, as weights are; the other ops work on what is computed.
GalleryProgramPtr varying_inputs(const std::string& name, int ops, int inputs, uint64_t floats,
                                 uint64_t narrow_floats) {
  auto made = std::make_unique<GalleryProgram>(name);
  // A chain as wide as an input reads them; the rest is narrow.
  Chain wide(*made, "wide", floats);
  for (int i = 0; i < inputs; ++i) wide.add_from(Operand::of_input(i));
  Chain narrow(*made, "narrow", std::min(floats, narrow_floats));
  narrow.add_from(wide.last());
  narrow.add(ops - inputs - 1);
  return made;
}

GalleryProgramPtr short_kernels(const std::string& name, int ops, int inputs, uint64_t floats,
                                bool has_random) {
  auto made = std::make_unique<GalleryProgram>(name);
  Chain chain(*made, "ring", floats);
  if (has_random) chain.add_random(1);
  for (int i = 0; i < inputs; ++i) chain.add_from(Operand::of_input(i));
  chain.add(ops - inputs - (has_random ? 1 : 0));
  return made;
}

GalleryProgramPtr host_ops(const GalleryScale& scale) {
  auto made = std::make_unique<GalleryProgram>("host_ops_in_120_ops");
  Chain chain(*made, "ring", scale.small_floats);
  chain.add_random(2);
  chain.add(30);
  chain.add_copy_in(0);
  chain.add(30);
  chain.add_on_host();
  chain.add(28);
  chain.add_host_function("sort_descending", sort_descending);
  chain.add(28);
  return made;
}

// Most do too little in too few kernels, or would copy more than they compute.
std::vector<GalleryProgramPtr> small_programs(const GalleryScale& scale) {
  constexpr int kPrograms = 21;
  std::vector<GalleryProgramPtr> all;
  for (int i = 0; i < kPrograms; ++i) {
    const std::string name = "small_program_" + std::to_string(i);
    const bool pays = i % 5 == 4;  // 4 of 21
    all.push_back(pays ? short_kernels(name, 40 + 10 * i, 0, scale.small_floats, true)
                       : short_kernels(name, 2 + i % 3, 1 + i % 2, scale.large_floats / 2, false));
  }
  return all;
}

}  // namespace

std::vector<std::string> gallery_names() {
  return {"one_host_scalar", "varying_inputs", "short_kernels", "host_ops", "small_programs"};
}

GalleryCase gallery_case(const std::string& name, const GalleryScale& scale) {
  GalleryCase made{name, "", {}};
  if (name == "one_host_scalar") {
    made.about = "413 small kernels, one of which takes a number of the host";
    made.programs.push_back(one_host_scalar(scale));
  } else if (name == "varying_inputs") {
    made.about = "740 kernels, 64 inputs that lie elsewhere in every run";
    constexpr int kInputs = 64;
    const uint64_t floats =
        std::max<uint64_t>(scale.input_bytes / kInputs / sizeof(float) / 4 * 4, 64);
    made.programs.push_back(
        varying_inputs("varying_inputs_740_ops", 740, kInputs, floats, scale.small_floats));
  } else if (name == "short_kernels") {
    made.about = "random numbers and 6 kernels, 4 inputs that lie elsewhere: few launches to save";
    // Four times as long as others' kernels: what the launches cost is then below what has to be
    // gained.
    made.programs.push_back(
        short_kernels("short_kernels_7_ops", 7, 4, 4 * scale.large_floats, true));
  } else if (name == "host_ops") {
    made.about =
        "120 small kernels, among them a copy from the host, an op placed there, and one "
        "that must stay there";
    made.programs.push_back(host_ops(scale));
  } else if (name == "small_programs") {
    made.about = "21 programs, 4 of them with kernels enough for a graph to pay";
    made.programs = small_programs(scale);
  } else {
    throw Failure(Code::kInvalid, "gallery: there is no case '" + name + "'");
  }
  return made;
}

std::vector<GalleryProgramPtr> gallery_shapes(size_t count) {
  std::vector<GalleryProgramPtr> all;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t floats = 1024 * (1 + i);
    all.push_back(short_kernels("shape_" + std::to_string(floats), 60, 0, floats, true));
  }
  return all;
}

GalleryProgramPtr gallery_of_one_input(uint64_t floats, const GalleryScale& scale) {
  return varying_inputs("one_input_of_" + std::to_string(floats), 16, 1, floats,
                        scale.small_floats);
}

}  // namespace millrace
