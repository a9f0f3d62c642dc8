#include "gallery.h"

#include <algorithm>

#include "status.h"

namespace millrace {

namespace {

constexpr int kRing = 8;  // carriers of a chain

// Ops over a ring of carriers, each from two of them to the next; every fourth is a tanh, so that
// values stay bounded however long the chain is.
class Chain {
 public:
  Chain(GalleryProgram& to, uint64_t floats) : program_(to.program), floats_(floats) {
    for (int i = 0; i < kRing; ++i) {
      ring_.push_back(to.workspace.add_floats("ring" + std::to_string(i), floats));
    }
  }

  void add(int ops) {
    for (int i = 0; i < ops; ++i) add_one({ScalarSource::From::kConstant, 0.5f, 0, {}});
  }
  void add_with_host_scalar(int number) { add_one({ScalarSource::From::kHost, 0, number, {}}); }
  void add_random(u32 environment) {
    program_.record(RandomFillOp{floats_, kStreamLearnerNoise, environment, target()});
    ++at_;
  }
  // target = the last plus half of the input's floats.
  void add_with_input(int number) {
    PointwiseOp op = next(Pointwise::kAddScaled, {ScalarSource::From::kConstant, 0.5f, 0, {}});
    op.b = Operand::of_input(number);
    program_.record(op);
    ++at_;
  }
  void add_copy_in(int buffer) {
    program_.record(CopyInOp{buffer, floats_, target()});
    ++at_;
  }
  void add_on_host() {
    program_.record_on_host(next(Pointwise::kTanh, {ScalarSource::From::kConstant, 0.7f, 0, {}}));
    ++at_;
  }
  void add_host_function(const char* name, HostFunctionOp::Function function) {
    program_.record(HostFunctionOp{name, function, source(1), target(), floats_, floats_});
    ++at_;
  }

 private:
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
  void add_one(const ScalarSource& scalar) {
    static constexpr Pointwise kCycle[] = {Pointwise::kAddScaled, Pointwise::kMultiply,
                                           Pointwise::kScale, Pointwise::kTanh};
    const bool takes_scalar = scalar.from != ScalarSource::From::kConstant;
    program_.record(next(takes_scalar ? Pointwise::kScale : kCycle[at_ % 4], scalar));
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
  Chain chain(*made, scale.small_floats);
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
  Chain wide(*made, floats);
  for (int i = 0; i < inputs; ++i) wide.add_with_input(i);
  const Operand last = made->workspace.find("ring" + std::to_string((inputs - 1) % kRing));
  std::vector<Operand> narrow;
  const uint64_t few = std::min(floats, narrow_floats);
  for (int i = 0; i < 2; ++i) {
    narrow.push_back(made->workspace.add_floats("narrow" + std::to_string(i), few));
  }
  for (int i = inputs; i < ops; ++i) {
    PointwiseOp op{};
    op.function = i % 2 == 0 ? Pointwise::kTanh : Pointwise::kAddScaled;
    op.count = few;
    op.a = i == inputs ? last : narrow[static_cast<size_t>(i % 2)];
    op.b = narrow[static_cast<size_t>((i + 1) % 2)];
    op.y = narrow[static_cast<size_t>((i + 1) % 2)];
    op.scalar.constant = 0.5f;
    made->program.record(op);
  }
  return made;
}

GalleryProgramPtr short_kernels(const std::string& name, int ops, int inputs, uint64_t floats,
                                bool has_random) {
  auto made = std::make_unique<GalleryProgram>(name);
  Chain chain(*made, floats);
  if (has_random) chain.add_random(1);
  for (int i = 0; i < inputs; ++i) chain.add_with_input(i);
  chain.add(ops - inputs - (has_random ? 1 : 0));
  return made;
}

GalleryProgramPtr host_ops(const GalleryScale& scale) {
  auto made = std::make_unique<GalleryProgram>("host_ops_in_120_ops");
  Chain chain(*made, scale.small_floats);
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
                       : short_kernels(name, 2 + i % 3, 1 + i % 2, scale.large_floats, false));
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
    made.about = "random numbers and 6 kernels over many elements, 4 inputs that lie elsewhere";
    made.programs.push_back(short_kernels("short_kernels_7_ops", 7, 4, scale.large_floats, true));
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
