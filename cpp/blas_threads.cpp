#include "blas_threads.h"

#include <cblas.h>

#include <cstdlib>
#include <cstring>

#include "status.h"

namespace millrace {
namespace {

struct SavedVariable {
  const char* name;
  char* value;  // null: was not set
};

// All that changes OpenBLAS's results or threads; its other thread variables give way to the first.
SavedVariable saved[] = {{"OPENBLAS_NUM_THREADS", nullptr},
                         {"OPENBLAS_CORETYPE", nullptr},
                         {"OPENBLAS_L2_SIZE", nullptr},
                         {"OPENBLAS_BLOCK_FACTOR", nullptr}};
bool is_set_aside = false;

// OpenBLAS knows the processors of its own day by their model, and takes its oldest kernels for a
// newer one. What counts is what the processor can do; null: let OpenBLAS choose.
const char* kernels_for_this_processor() {
  __builtin_cpu_init();
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (has_avx512) return "SkylakeX";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : nullptr;
}

// Runs before OpenBLAS's own constructor (it has none of our priority) and before C++ objects of
// this library exist, hence only C functions.
__attribute__((constructor(101))) void set_blas_environment_aside() {
  for (SavedVariable& variable : saved) {
    const char* value = std::getenv(variable.name);
    variable.value = value == nullptr ? nullptr : strdup(value);
    unsetenv(variable.name);
  }
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  if (const char* kernels = kernels_for_this_processor()) {
    setenv("OPENBLAS_CORETYPE", kernels, 1);
  }
  is_set_aside = true;
}

}  // namespace

void restore_blas_environment() {
  if (!is_set_aside) return;
  for (SavedVariable& variable : saved) {
    if (variable.value == nullptr) {
      unsetenv(variable.name);
    } else {
      setenv(variable.name, variable.value, 1);
      std::free(variable.value);
      variable.value = nullptr;
    }
  }
  is_set_aside = false;
}

void set_blas_threads(int threads) {
  MR_CHECK(threads >= 1, "a BLAS needs a thread");
  openblas_set_num_threads(threads);
}

int blas_threads() { return openblas_get_num_threads(); }

std::string blas_kernels() { return openblas_get_corename(); }

}  // namespace millrace
