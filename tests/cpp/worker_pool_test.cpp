#include "worker_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "status.h"

namespace millrace {
namespace {

TEST(WorkerPool, RunsEveryItemOnce) {
  for (int workers : {1, 2, 3, 5}) {
    WorkerPool pool(workers);
    for (int count : {0, 1, 2, 7, 64, 1000}) {
      for (int grain : {1, 3, 16}) {
        std::vector<int> visits(static_cast<size_t>(count), 0);
        pool.run(count, grain, [&](int worker, int begin, int end) {
          ASSERT_GE(worker, 0);
          ASSERT_LT(worker, workers);
          ASSERT_EQ(begin % grain, 0);
          ASSERT_LE(end, count);
          for (int i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(static_cast<size_t>(count), 1)) << count << " " << grain;
      }
    }
  }
}

// Plain (not atomic) data is handed from loop to loop: TSan checks the happens-before edges.
TEST(WorkerPool, ThousandsOfShortLoopsStayOrdered) {
  WorkerPool pool(3);
  std::vector<int> values(24, 0);
  for (int loop = 0; loop < 5000; ++loop) {
    pool.run(24, 1, [&](int, int begin, int end) {
      for (int i = begin; i < end; ++i) values[static_cast<size_t>(i)] += loop;
    });
    ASSERT_EQ(values[static_cast<size_t>(loop % 24)], loop * (loop + 1) / 2);
  }
}

TEST(WorkerPool, IdleWorkersStealFromABusyOne) {
  WorkerPool pool(2);
  // Worker 0 holds its first slice until the other one has taken all the rest.
  std::atomic<int> done{0};
  std::atomic<int> first_worker{-1};
  std::atomic<bool> held{false};
  pool.run(16, 1, [&](int worker, int, int) {
    if (!held.exchange(true)) {
      first_worker = worker;
      while (done.load() < 15) std::this_thread::yield();
    } else {
      EXPECT_NE(worker, first_worker.load());
    }
    ++done;
  });
  EXPECT_EQ(done, 16);
}

TEST(WorkerPool, RethrowsTheFirstExceptionAndStaysUsable) {
  WorkerPool pool(2);
  for (int repeat = 0; repeat < 50; ++repeat) {
    EXPECT_THROW(pool.run(32, 1,
                          [](int, int begin, int) {
                            if (begin == 5) throw Failure(Code::kDevice, "item 5");
                          }),
                 Failure);
    std::atomic<int> done{0};
    pool.run(32, 1, [&](int, int, int) { ++done; });
    ASSERT_EQ(done, 32);
  }
}

TEST(WorkerPool, RefusesALoopInsideALoop) {
  WorkerPool pool(2);
  EXPECT_THROW(pool.run(4, 1, [&](int, int, int) { pool.run(1, 1, [](int, int, int) {}); }),
               Failure);
  EXPECT_THROW(WorkerPool{0}, Failure);
  EXPECT_THROW(WorkerPool{WorkerPool::kMostWorkers + 1}, Failure);
}

// A sanitizer has more address space than any limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(WorkerPool, SaysSoWhereTheSystemHasNoMoreThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own for the limit
  const auto start_too_many = [] {
    const rlimit limit = {uint64_t{1} << 30, uint64_t{1} << 30};  // for stacks of 8 MiB
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(1);
    try {
      WorkerPool pool(WorkerPool::kMostWorkers);
    } catch (const Failure& failure) {
      std::fprintf(stderr, "%s\n", failure.what());
      std::_Exit(failure.code() == Code::kResource ? 7 : 1);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(7),
              "the system has [0-9]+ of 1024 threads");
}
#endif

}  // namespace
}  // namespace millrace
