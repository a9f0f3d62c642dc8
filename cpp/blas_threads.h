// OpenBLAS in this process: which kernels and how many threads. OpenBLAS reads both, and its block
// sizes, from environment variables when it is loaded, and starts threads at once; here the
// processor and the configuration decide instead, and the user's variables are put back for child
// processes.
#pragma once

#include <string>

namespace millrace {

// Puts back the environment variables that were set aside at load time. Called once by JNI_OnLoad.
void restore_blas_environment();

// Process-wide; before the first product. OpenBLAS starts threads when they are wanted and never
// ends them.
void set_blas_threads(int threads);
int blas_threads();

// OpenBLAS's name for the kernel set in use, e.g. "SkylakeX".
std::string blas_kernels();

}  // namespace millrace
