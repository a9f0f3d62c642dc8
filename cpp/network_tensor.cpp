#include "network_tensor.h"

namespace millrace {

uint64_t NetworkTensor::count() const {
  uint64_t count = 1;
  for (const int64_t side : shape) count *= static_cast<uint64_t>(side);
  return count;
}

void register_tensors(StateRegistry& registry, const std::vector<NetworkTensor>& tensors,
                      int groups, const std::string& name, const std::string& suffix,
                      float* parameters, bool only_trained) {
  for (int g = 0; g < groups; ++g) {
    const std::string prefix = groups == 1 ? name + "/" : name + "/" + std::to_string(g) + "/";
    for (const NetworkTensor& tensor : tensors) {
      if (only_trained && !tensor.is_trained()) continue;
      float* values = parameters + tensor.offset + g * tensor.distance;
      if (tensor.shape.size() == 2) {
        registry.add_matrix(prefix + tensor.name + suffix, tensor.shape, tensor.row_stride, values);
      } else {
        registry.add(prefix + tensor.name + suffix, DType::kF32, tensor.shape, values);
      }
    }
  }
}

}  // namespace millrace
