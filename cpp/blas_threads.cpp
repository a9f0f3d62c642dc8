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

SavedVariable saved[] = {{"OPENBLAS_NUM_THREADS", nullptr}, {"OPENBLAS_CORETYPE", nullptr}};
bool is_set_aside = false;

// Runs before OpenBLAS's own constructor (it has none of our priority) and before C++ objects of
// this library exist, hence only C functions.
__attribute__((constructor(101))) void set_blas_environment_aside() {
  for (SavedVariable& variable : saved) {
    const char* value = std::getenv(variable.name);
    variable.value = value == nullptr ? nullptr : strdup(value);
    unsetenv(variable.name);
  }
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
#if defined(__x86_64__)
  // OpenBLAS 0.3.21 knows no AMD processor with AVX-512 and takes AVX2 kernels there, at half
  // speed.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd")) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  }
#endif
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
