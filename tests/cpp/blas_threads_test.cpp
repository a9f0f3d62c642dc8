// Tests for cpp/blas_threads.cpp.
#include "blas_threads.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(BlasThreads, SaysWhichKernelsRun) { EXPECT_FALSE(blas_kernels().empty()); }

// Child processes see the user's variables again; a second call keeps what was set since.
TEST(BlasThreads, TheEnvironmentIsPutBackOnce) {
  restore_blas_environment();
  ASSERT_EQ(setenv("OPENBLAS_NUM_THREADS", "7", 1), 0);
  restore_blas_environment();
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "7");
  EXPECT_EQ(unsetenv("OPENBLAS_NUM_THREADS"), 0);
}

}  // namespace
}  // namespace millrace
