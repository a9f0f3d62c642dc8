// For tests of what programs may be rewritten to: programs of random general ops over a few
// carriers, and what the host brings to each of their runs.
#pragma once

#include <algorithm>
#include <vector>

#include "philox.h"
#include "program.h"
#include "program_cpu.h"

namespace millrace {

inline void reverse_copy(const float* source, uint64_t count, float* target, uint64_t) {
  std::reverse_copy(source, source + count, target);
}

struct RandomProgram {
  static constexpr int kCarriers = 5, kInputs = 3, kScalars = 4, kBuffers = 3;
  static constexpr uint64_t kFloats = 96;

  RandomProgram(u32 number, int ops) : program("random", workspace), number_(number) {
    for (int i = 0; i < kCarriers; ++i) {
      carriers.push_back(workspace.add_floats("c" + std::to_string(i), kFloats));
    }
    for (int i = 0; i < ops; ++i) record(draw(12));
    workspace.allocate();
    for (const Operand carrier : carriers) {
      for (uint64_t i = 0; i < kFloats; ++i) workspace.floats(carrier)[i] = uniform();
    }
    for (int i = 0; i < kBuffers + 1; ++i) {
      buffers_.emplace_back();
      for (uint64_t k = 0; k < kFloats; ++k) buffers_.back().push_back(uniform());
    }
  }

  // What run `run` brings; inputs point into `memory`, kInputs + 1 blocks of kFloats.
  HostInputs inputs_of(uint64_t run, const float* memory) {
    HostInputs inputs;
    for (u32 i = 0; i < kScalars; ++i) {
      inputs.scalars.push_back(0.3f + 0.01f * static_cast<float>((3 * run + i) % 31));
    }
    for (u32 i = 0; i < kInputs; ++i) {
      inputs.inputs.push_back(memory + (i + run) % (kInputs + 1) * kFloats);
    }
    for (u32 i = 0; i < kBuffers; ++i) {
      inputs.buffers.push_back(buffers_[(i + run) % buffers_.size()].data());
    }
    return inputs;
  }
  std::vector<float> input_memory() {
    std::vector<float> memory;
    for (uint64_t i = 0; i < (kInputs + 1) * kFloats; ++i) memory.push_back(uniform());
    return memory;
  }
  static Arguments arguments_of(uint64_t run) {
    Arguments arguments{};
    arguments.seed = 5;
    arguments.tick = run;
    return arguments;
  }
  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Operand carrier : carriers) {
      const float* first = workspace.floats(carrier);
      all.emplace_back(first, first + kFloats);
    }
    return all;
  }
  void set(const std::vector<std::vector<float>>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      std::copy(values[i].begin(), values[i].end(), workspace.floats(carriers[i]));
    }
  }

  Workspace workspace;
  Program program;
  std::vector<Operand> carriers;

 private:
  u32 draw(u32 n) { return random_index(random_source(number_, kStreamEvent, 0, 0), draws_++, n); }
  float uniform() {
    return random_uniform(random_source(number_, kStreamEvent, 1, 0), draws_++, -1.0f, 1.0f);
  }
  Operand carrier() { return carriers[draw(kCarriers)]; }

  ScalarSource scalar() {
    ScalarSource source;
    source.constant = 0.5f;
    const u32 kind = draw(4);
    if (kind == 0) source.from = ScalarSource::From::kConstant;
    if (kind == 1 || kind == 2) source.from = ScalarSource::From::kHost;
    if (kind == 3) source.from = ScalarSource::From::kCarrier;
    source.number = static_cast<int>(draw(kScalars));
    if (kind == 3) source.place = carrier() + draw(kFloats);
    return source;
  }

  PointwiseOp pointwise(bool may_take_input) {
    PointwiseOp op{};
    const uint64_t offset = draw(4) * 16;
    op.function = static_cast<Pointwise>(draw(5));
    op.count = kFloats - offset;
    op.a = carrier() + offset;
    op.b = carrier() + offset;
    op.y = carrier() + offset;
    op.scalar = scalar();
    // A scalar that the op itself overwrites has no defined value.
    if (op.scalar.from == ScalarSource::From::kCarrier && op.scalar.place.carrier == op.y.carrier) {
      op.scalar.from = ScalarSource::From::kConstant;
    }
    const int input = static_cast<int>(draw(kInputs));
    if (may_take_input) (draw(2) == 0 ? op.a : op.b) = Operand::of_input(input) + offset;
    return op;
  }

  void record(u32 kind) {
    if (kind < 5) {
      program.record(pointwise(false));
    } else if (kind < 7) {
      program.record(pointwise(true));
    } else if (kind == 7) {
      program.record(RandomFillOp{kFloats, kStreamLearnerNoise, draw(1000), carrier()});
    } else if (kind == 8) {
      const uint64_t offset = draw(2) * 48;
      program.record(CopyInOp{static_cast<int>(draw(kBuffers)), 48, carrier() + offset});
    } else if (kind == 9) {
      program.record_on_host(pointwise(false));
    } else if (kind == 10) {
      program.record_on_host(RandomFillOp{kFloats, kStreamLearnerNoise, draw(1000), carrier()});
    } else {
      const Operand source = carrier();
      Operand target = carrier();
      while (target.carrier == source.carrier) target = carrier();
      program.record(HostFunctionOp{"reverse", reverse_copy, source, target, kFloats, kFloats});
    }
  }

  const u32 number_;
  u32 draws_ = 0;
  std::vector<std::vector<float>> buffers_;
};

}  // namespace millrace
