// The CPU as a device whose gather, update step and programs are CUDA's kernels, launched by the
// sources of cuda/ and run by the shim of its runtime: what they compute, without a GPU. Products
// are our own kernel's, as there is no library.
#pragma once

#include "backend.h"

namespace millrace {

const BackendApi& cuda_kernels();

}  // namespace millrace
