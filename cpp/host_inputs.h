// HostInputs: what the host brings to one run of a program beside Arguments, by number. It belongs
// to the run: ops name numbers, never values or addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace millrace {

// What a program takes.
struct InputCounts {
  std::vector<uint64_t> input_floats;  // of each input, as many as ops read
  size_t scalars = 0, buffers = 0;

  size_t inputs() const { return input_floats.size(); }
  // Grown to what both together take.
  void cover(const InputCounts& other) {
    scalars = std::max(scalars, other.scalars);
    buffers = std::max(buffers, other.buffers);
    input_floats.resize(std::max(inputs(), other.inputs()), 0);
    for (size_t i = 0; i < other.inputs(); ++i) {
      input_floats[i] = std::max(input_floats[i], other.input_floats[i]);
    }
  }
};

struct HostInputs {
  std::vector<float> scalars;
  // In the backend's memory, at multiples of 16 bytes.
  std::vector<const float*> inputs;
  // In the host's memory; they stay as they are until the run was observed complete.
  std::vector<const float*> buffers;

  bool covers(const InputCounts& counts) const {
    return scalars.size() >= counts.scalars && inputs.size() >= counts.inputs() &&
           buffers.size() >= counts.buffers;
  }
};

// The same for a launch.
struct LaunchInputs {
  // As of this run: read while the launch is submitted, so a graph would keep them.
  const float* scalars;
  const float* const* inputs;
  const float* const* buffers;
  // As of every run: in the argument block, read by the kernels. Without block_inputs, `inputs`
  // count.
  const float* block_scalars;
  const float* const* block_inputs;
};

}  // namespace millrace
