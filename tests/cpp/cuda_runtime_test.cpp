// Tests for tests/shim/cuda/cuda_runtime.h: that it shows what a GPU would do wrong, or might.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "trial_kernels.h"

namespace device_shim {
namespace {

cudaError_t finished(cudaError_t code) {
  return code == cudaSuccess ? cudaDeviceSynchronize() : code;
}

template <class... Parameters, class... Arguments>
cudaError_t launch_and_wait(dim3 grid, unsigned threads, void (*kernel)(Parameters...),
                            const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  return finished(cudaLaunchKernelEx(&config, kernel, arguments...));
}

std::vector<float> reversed(unsigned blocks, bool has_barrier) {
  std::vector<float> values(blocks * kTrialThreads);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  EXPECT_EQ(finished(launch_reverse(values.data(), blocks, has_barrier)), cudaSuccess);
  return values;
}

TEST(CudaRuntime, AForgottenBarrierShowsInEveryOrderOfThreads) {
  constexpr unsigned kBlocks = 3;  // no three in a row have the same order
  const std::vector<float> right = reversed(kBlocks, true), wrong = reversed(kBlocks, false);
  for (unsigned i = 0; i < kBlocks * kTrialThreads; ++i) {
    const unsigned block = i / kTrialThreads, thread = i % kTrialThreads;
    ASSERT_EQ(right[i], static_cast<float>((block + 1) * kTrialThreads - 1 - thread)) << i;
  }
  std::set<bool> first_thread_was_wrong;
  for (unsigned block = 0; block < kBlocks; ++block) {
    first_thread_was_wrong.insert(std::isnan(wrong[block * kTrialThreads]));
    unsigned strangers = 0;
    for (unsigned i = 0; i < kTrialThreads; ++i) {
      strangers += std::isnan(wrong[block * kTrialThreads + i]);
    }
    EXPECT_EQ(strangers, kTrialThreads / 2);
  }
  EXPECT_EQ(first_thread_was_wrong.size(), 2u);
}

TEST(CudaRuntime, ABarrierThatSomeNeverReachEndsTheLaunch) {
  EXPECT_EQ(finished(launch_barrier_of_some(kTrialThreads)), cudaSuccess);
  EXPECT_THROW(finished(launch_barrier_of_some(kTrialThreads - 1)), std::logic_error);
  EXPECT_THROW(finished(launch_barrier_of_some(64)), std::logic_error);  // whole warps, too
}

TEST(CudaRuntime, SharedMemoryBeginsEveryBlockAsWhatIsNoNumber) {
  std::vector<float> found(8, 0.0f);
  ASSERT_EQ(finished(launch_find_in_shared(found.data(), 4)), cudaSuccess);
  for (const float value : found) EXPECT_TRUE(std::isnan(value));
}

TEST(CudaRuntime, SharedMemoryIsWhatAKernelAskedForAndACardHas) {
  EXPECT_EQ(launch_with_shared(48 << 10, 48 << 10), cudaSuccess);
  EXPECT_EQ(launch_with_shared((48 << 10) + 16, 48 << 10), cudaErrorInvalidValue);
  EXPECT_EQ(launch_with_shared(227 << 10, 227 << 10), cudaSuccess);
  EXPECT_EQ(launch_with_shared(228 << 10, 228 << 10), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

void count_threads(unsigned* visits) {
  visits[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] += 1000 + blockDim.x;
}

TEST(CudaRuntime, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<unsigned> visits(2 * 3 * 4, 0);
  ASSERT_EQ(launch_and_wait(dim3(2, 3, 4), 33, count_threads, visits.data()), cudaSuccess);
  for (const unsigned visit : visits) EXPECT_EQ(visit, 33u * 1033u);
  EXPECT_EQ(launch_and_wait(dim3(0), 32, count_threads, visits.data()),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_and_wait(dim3(1), 1025, count_threads, visits.data()),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_and_wait(dim3(1, 65536), 32, count_threads, visits.data()),
            cudaErrorInvalidConfiguration);
}

void exchange_in_warp(float* sums, int* smallest) {
  float sum = static_cast<float>(threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  }
  sums[threadIdx.x] = sum;
  smallest[threadIdx.x] = __reduce_min_sync(0xFFFFFFFFu, 40 - static_cast<int>(threadIdx.x));
}

TEST(CudaRuntime, LanesExchangeWithinTheirWarp) {
  std::vector<float> sums(64);
  std::vector<int> smallest(64);
  ASSERT_EQ(launch_and_wait(dim3(1), 64, exchange_in_warp, sums.data(), smallest.data()),
            cudaSuccess);
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(sums[i], i < 32 ? 496.0f : 496.0f + 1024.0f);
    EXPECT_EQ(smallest[i], i < 32 ? 9 : -23);
  }
}

void exchange_of_some(unsigned lanes, unsigned threads) {
  if (threadIdx.x < threads) __shfl_xor_sync(lanes, 1.0f, 1);
}

TEST(CudaRuntime, AnOperationOfSomeLanesEndsTheLaunch) {
  EXPECT_EQ(launch_and_wait(dim3(1), 32, exchange_of_some, 0xFFFFFFFFu, 32u), cudaSuccess);
  EXPECT_THROW(launch_and_wait(dim3(1), 32, exchange_of_some, 0xFFFFFFFFu, 16u), std::logic_error);
  EXPECT_THROW(launch_and_wait(dim3(1), 32, exchange_of_some, 0xFFFFu, 32u), std::logic_error);
  EXPECT_THROW(launch_and_wait(dim3(1), 16, exchange_of_some, 0xFFFFFFFFu, 32u), std::logic_error);
}

void append(unsigned* digits, unsigned digit) { *digits = 10 * *digits + digit; }

class Stream {
 public:
  Stream() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~Stream() { cudaStreamDestroy(stream_); }

  void append_digit(unsigned* digits, unsigned digit) {
    cudaLaunchConfig_t config{};
    config.blockDim = dim3(1);
    config.stream = stream_;
    EXPECT_EQ(cudaLaunchKernelEx(&config, append, digits, digit), cudaSuccess);
  }
  void record(cudaEvent_t event) { cudaEventRecord(event, stream_); }
  void wait(cudaEvent_t event) { cudaStreamWaitEvent(stream_, event); }

 private:
  cudaStream_t stream_ = nullptr;
};

// Digits 1 to 8 go to two streams in turns.
unsigned digits_of_two_streams(bool have_waits) {
  Stream streams[2];
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  unsigned digits = 0;
  for (unsigned digit = 1; digit <= 8; ++digit) {
    if (have_waits && digit > 1) streams[digit % 2].wait(event);
    streams[digit % 2].append_digit(&digits, digit);
    streams[digit % 2].record(event);
  }
  EXPECT_EQ(digits, 0u);  // nothing runs before it is asked for
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  cudaEventDestroy(event);
  return digits;
}

TEST(CudaRuntime, StreamsKeepTheOrderThatEventsGiveThemAndNoOther) {
  EXPECT_EQ(digits_of_two_streams(true), 12345678u);
  EXPECT_NE(digits_of_two_streams(false), 12345678u);
}

TEST(CudaRuntime, AStreamRunsInOrder) {
  Stream stream;
  unsigned digits = 0;
  for (unsigned digit = 1; digit <= 8; ++digit) stream.append_digit(&digits, digit);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(digits, 12345678u);
}

void add_to(unsigned* total) { atomicAdd(total, threadIdx.x); }

TEST(CudaRuntime, AtomicAdditionsAllCount) {
  unsigned total = 0;
  ASSERT_EQ(launch_and_wait(dim3(4), 64, add_to, &total), cudaSuccess);
  EXPECT_EQ(total, 4u * 2016u);
}

}  // namespace
}  // namespace device_shim
