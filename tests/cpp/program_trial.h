// What the tests of program launches share: one op with random carriers, run by a backend and by
// the CPU, and how far apart their results are.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "device_workspace.h"
#include "each_backend.h"
#include "program_cpu.h"
#include "program_launch.h"

namespace millrace {

// One op, or a few, over carriers of their own: filled, run by the backend and by the CPU,
// compared.
class Trial {
 public:
  Operand add(const std::string& name, uint64_t count, float scale = 1.0f, float offset = 0.0f) {
    fills_.push_back({scale, offset});
    return workspace_.add_floats(name, count);
  }
  // What products read, or its gradient: a device that computes them in bf16 stores it so.
  Operand add_activation(const std::string& name, uint64_t count, float scale = 1.0f) {
    fills_.push_back({scale, 0});
    return workspace_.add_activation(name, count);
  }
  Operand add_parameters(const std::string& name, uint64_t count) {
    fills_.push_back({1, 0});
    return workspace_.add_parameters(name, count);
  }
  Operand add_counter(const std::string& name, uint64_t count = 1) {
    fills_.push_back({0, 0});
    return workspace_.add(name, DType::kU64, count);
  }
  Operand add_integers(const std::string& name, uint64_t count) {
    fills_.push_back({0, 0});
    return workspace_.add(name, DType::kI32, count);
  }

  // Largest relative L2 distance of any carrier. `prepare` sees the host's carriers before the run.
  void run(
      const std::string& backend_name, const Op& op, double tolerance,
      Precision precision = Precision::kFp32,
      const std::function<void(Workspace&)>& prepare = [](Workspace&) {},
      Products products = Products::kLibrary) {
    run_all(backend_name, {op}, tolerance, precision, prepare, products);
  }
  void run_all(
      const std::string& backend_name, const std::vector<Op>& ops, double tolerance,
      Precision precision = Precision::kFp32,
      const std::function<void(Workspace&)>& prepare = [](Workspace&) {},
      Products products = Products::kLibrary) {
    Program program("trial", workspace_);
    for (const Op& op : ops) program.record(op);
    workspace_.allocate();
    fill();
    prepare(workspace_);

    Backend backend(test_backend_api(backend_name));
    Stream stream(backend);
    Transfer transfer(backend);
    Memory rows(backend, Memory::Kind::kDevice, (batch.size() + 1) * sizeof(float));
    transfer.write(rows.floats(), batch);
    DeviceWorkspace device(backend, stream, workspace_, {&program}, precision, products);
    device.upload();
    Arguments arguments = with;
    arguments.rows = rows.floats();
    device.set_arguments(arguments);
    device.submit(program);

    arguments.rows = batch.data();
    run_on_cpu(program, {workspace_, arguments});
    const std::vector<std::vector<double>> expected = values();
    device.download();
    const std::vector<std::vector<double>> found = values();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(distance(found[i], expected[i]), tolerance)
          << kind_of(ops.front()) << ", " << workspace_.carriers()[i].name;
    }
  }

  std::vector<float> batch = std::vector<float>(1);
  Arguments with = {nullptr, 0, 7, (uint64_t{3} << 33) + 5, 1e-3f, 2e-3f, 3e-3f, 0.125f};

 private:
  struct Fill {
    float scale, offset;
  };

  void fill() {
    for (size_t i = 0; i < fills_.size(); ++i) {
      const Workspace::Carrier& carrier = workspace_.carriers()[i];
      if (carrier.dtype != DType::kF32) continue;
      float* values = static_cast<float*>(workspace_.addresses()[i]);
      const RandomSource source = random_source(11, kStreamEvent, static_cast<u32>(i), 0);
      for (uint64_t k = 0; k < carrier.count; ++k) {
        values[k] = fills_[i].offset + fills_[i].scale * random_normal(source, static_cast<u32>(k));
      }
    }
  }

  std::vector<std::vector<double>> values() const {
    std::vector<std::vector<double>> all;
    for (size_t i = 0; i < fills_.size(); ++i) {
      const Workspace::Carrier& carrier = workspace_.carriers()[i];
      const Operand first{static_cast<int>(i), 0};
      std::vector<double> values(carrier.count);
      for (uint64_t k = 0; k < carrier.count; ++k) {
        values[k] = carrier.dtype == DType::kF32   ? *workspace_.floats(first + k)
                    : carrier.dtype == DType::kI32 ? *workspace_.integers(first + k)
                                                   : *workspace_.counters(first + k);
      }
      all.push_back(std::move(values));
    }
    return all;
  }

  // NaN stands for NaN alone.
  static double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double squares = 0, length = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      if (a[i] == b[i] && std::isinf(a[i])) continue;
      squares += (a[i] - b[i]) * (a[i] - b[i]);
      length += b[i] * b[i];
    }
    if (std::isnan(squares)) return INFINITY;
    return squares == 0 ? 0 : std::sqrt(squares / length);
  }

  Workspace workspace_;
  std::vector<Fill> fills_;
};

constexpr double kRounding = 2e-6;        // of sums in another order
constexpr double kBf16Rounding = 1.6e-2;  // of inputs and outputs to eight bits, and of their sums

// Calls check(precision, tolerance) for fp32 and, where the backend has it, for activations that
// are stored in bf16.
template <class Check>
void in_each_storage(const std::string& backend_name, double fp32_tolerance, const Check& check) {
  check(Precision::kFp32, fp32_tolerance);
  if ((test_backend_api(backend_name).precisions & precision_bit(Precision::kBf16)) != 0) {
    SCOPED_TRACE("bf16");
    check(Precision::kBf16, kBf16Rounding);
  }
}

}  // namespace millrace
