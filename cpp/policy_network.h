// PolicyNetwork: the actor's network of an algorithm as a policy runs it: forward alone, with
// whatever it learned from batches (running statistics) in the place of a batch.
#pragma once

#include <memory>
#include <vector>

#include "action_density.h"
#include "algorithm.h"
#include "network.h"
#include "network_tensor.h"

namespace millrace {

// Parameters lie as: the actor network, then (when normalised) mean and scale of the observation.
struct PolicyShape {
  int observation_dim, action_dim, hidden;
  bool is_normalised;
  Algorithm algorithm = Algorithm::kFastSac;
  NetworkBody body = NetworkBody::kFastSac;  // of FastSAC

  NetworkShape network() const { return {observation_dim, hidden, 2 * action_dim, 1, body}; }
};

inline ActionDensity density_of(Algorithm algorithm) {
  return algorithm == Algorithm::kFlashSac ? kFlashSacDensity : kFastSacDensity;
}

class PolicyNetwork {
 public:
  static std::unique_ptr<PolicyNetwork> make(const PolicyShape& shape);
  virtual ~PolicyNetwork() = default;

  // Floats of the network, running statistics included.
  virtual uint64_t parameter_count() const = 0;
  virtual const std::vector<NetworkTensor>& tensors() const = 0;
  virtual uint64_t head_bias() const = 0;
  virtual int input_stride() const = 0;  // from row to row of its input
  virtual int head_width() const = 0;    // and of its heads

  // What an evaluation of up to `rows` rows needs beside its input and heads.
  virtual void add_carriers(Workspace& workspace, int rows) = 0;
  // heads without their bias.
  virtual void record(Program& program, Operand parameters, int rows, Operand input,
                      Operand heads) const = 0;
};

}  // namespace millrace
