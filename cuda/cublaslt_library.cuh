// CublasLt: matrix products of the vendor's library, opened when it is first wanted, so that the
// plug-in also loads on machines without it. One object per stream, used by the stream's thread;
// the library itself stays open until the process ends.
//
// Each shape has a plan, made at its first use and kept: layouts, and the first algorithm of
// the library's heuristic that can be used. None is timed, so that a machine always chooses the
// same one, and algorithms that add partial sums in an order of their own are not asked for: a
// product has the same bits in every run. One with a ReLU is tried once, aside, with what is not a
// number, and passed by if that does not stay one. Making a plan may allocate and load kernels,
// also in a capture.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <vector>

#include "program_launch.h"

namespace millrace {

struct CublasLtApi;
struct ProductPlan;

// Where the operands of a product lie, and as what: floats, or bf16. A bias is as the result is.
struct ProductOperands {
  const void *a, *b;
  void* c;
  bool are_bf16, is_result_bf16;
  const void* bias;  // or null
};

class CublasLt {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what its guide wants on Hopper

  // Null where the library is not found or cannot be used.
  static std::unique_ptr<CublasLt> open();
  // "cuBLASLt 13.1.0", or that our own kernel computes, and why. Opens the library.
  static const char* describe();
  CublasLt(const CublasLtApi& api, void* handle);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // Enqueues c = op(a) op(b) for every product of the op; `workspace` has kWorkspaceBytes.
  // cudaErrorNotSupported, with nothing enqueued: the library has no algorithm for this shape.
  cudaError_t multiply(cudaStream_t stream, const GemmOp& op, Precision precision,
                       const ProductOperands& operands, void* workspace);

 private:
  using Key = std::vector<u64>;

  const CublasLtApi& api_;
  void* const handle_;
  std::map<Key, std::unique_ptr<ProductPlan>> plans_;  // null: no algorithm
};

}  // namespace millrace
