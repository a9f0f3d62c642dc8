// Tests for cpp/blas_threads.cpp.
#include "blas_threads.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "status.h"

namespace millrace {
namespace {

TEST(BlasThreads, TheConfigurationDecides) {
  set_blas_threads(2);
  EXPECT_EQ(blas_threads(), 2);
  set_blas_threads(1);
  EXPECT_EQ(blas_threads(), 1);
  EXPECT_THROW(set_blas_threads(0), Failure);
  EXPECT_EQ(blas_threads(), 1);
}

TEST(BlasThreads, TakesTheKernelsForWhatTheProcessorCanDo) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
    EXPECT_EQ(blas_kernels(), "SkylakeX");
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    EXPECT_EQ(blas_kernels(), "Haswell");
  } else {
    EXPECT_FALSE(blas_kernels().empty());
  }
}

// The variables that this process was started with; getenv shows what has become of them.
std::map<std::string, std::string> started_with() {
  std::map<std::string, std::string> variables;
  std::ifstream file("/proc/self/environ");
  for (std::string entry; std::getline(file, entry, '\0');) {
    variables[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  }
  return variables;
}

// One test, since a process loads the library once: set aside, put back, and put back only once.
TEST(BlasThreads, NoEnvironmentVariableDecidesAndAllArePutBackOnce) {
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "1");
  if (const char* kernels = std::getenv("OPENBLAS_CORETYPE")) {
    EXPECT_EQ(kernels, blas_kernels());
  }
  restore_blas_environment();
  const auto before = started_with();
  for (const char* name : {"OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
    const char* now = std::getenv(name);
    const auto then = before.find(name);
    ASSERT_EQ(now == nullptr, then == before.end()) << name;
    if (now != nullptr) {
      EXPECT_EQ(then->second, now) << name;
    }
  }
  ASSERT_EQ(setenv("OPENBLAS_NUM_THREADS", "7", 1), 0);
  restore_blas_environment();
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "7");
}

}  // namespace
}  // namespace millrace
