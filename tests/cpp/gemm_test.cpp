// Tests for cpp/gemm.cpp and cpp/blas_threads.cpp.
#include "gemm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "blas_threads.h"
#include "philox.h"

namespace millrace {
namespace {

// Two products with strides and distances wider than the matrices, against a plain loop.
TEST(Gemm, EqualsAPlainLoopForEveryTransposition) {
  constexpr int kM = 7, kN = 5, kK = 9, kStride = 12;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      Workspace workspace;
      GemmOp op{};
      op.transpose_a = transpose_a;
      op.transpose_b = transpose_b;
      op.m = kM;
      op.n = kN;
      op.k = kK;
      op.a = workspace.add_floats("a", 400);
      op.b = workspace.add_floats("b", 400);
      op.c = workspace.add_floats("c", 400);
      op.a_stride = op.b_stride = op.c_stride = kStride;
      op.a_distance = op.b_distance = op.c_distance = 200;
      op.count = 2;
      workspace.allocate();
      for (u32 i = 0; i < 400; ++i) {
        workspace.floats(op.a)[i] = random_normal(random_source(1, kStreamEvent, 0, 0), i);
        workspace.floats(op.b)[i] = random_normal(random_source(1, kStreamEvent, 1, 0), i);
      }
      execute(op, CpuFrame{workspace, Arguments{}});
      for (int p = 0; p < 2; ++p) {
        const float *a = workspace.floats(op.a) + p * 200, *b = workspace.floats(op.b) + p * 200;
        for (int i = 0; i < kM; ++i) {
          for (int j = 0; j < kN; ++j) {
            double sum = 0;
            for (int k = 0; k < kK; ++k) {
              sum += double{transpose_a ? a[k * kStride + i] : a[i * kStride + k]} *
                     (transpose_b ? b[j * kStride + k] : b[k * kStride + j]);
            }
            ASSERT_NEAR(workspace.floats(op.c)[p * 200 + i * kStride + j], sum, 1e-5);
          }
        }
      }
    }
  }
}

TEST(Blas, ThreadsAreWhatWasConfigured) {
  set_blas_threads(1);
  EXPECT_EQ(blas_threads(), 1);
  RecordProperty("kernels", blas_kernels());
  EXPECT_FALSE(blas_kernels().empty());
  EXPECT_THROW(set_blas_threads(0), Failure);
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

TEST(Blas, NoEnvironmentVariableDecidesAndAllArePutBack) {
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "1");
  EXPECT_EQ(std::getenv("OPENBLAS_CORETYPE"), nullptr);
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
}

}  // namespace
}  // namespace millrace
