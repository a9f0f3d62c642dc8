#include "worker_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "status.h"

namespace millrace {

namespace {

// About 20 microseconds: longer than the gap between two loops of one tick, shorter than what a
// learner on the same core would notice.
constexpr int kSpinRounds = 512;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// One worker's slices as one word: the next slice in the low half, the end in the high half. A
// claim is one atomic add, and it is valid or not by what that very add returned, so a worker that
// wakes late can neither claim twice nor claim a slice of a loop that is over.
struct alignas(64) SliceQueue {
  std::atomic<uint64_t> word{0};

  static uint32_t next(uint64_t word) { return static_cast<uint32_t>(word); }
  static uint32_t end(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

  void assign(uint32_t begin, uint32_t end) {
    word.store(static_cast<uint64_t>(end) << 32 | begin, std::memory_order_release);
  }
  int64_t left() const {
    const uint64_t now = word.load(std::memory_order_relaxed);
    return static_cast<int64_t>(end(now)) - static_cast<int64_t>(next(now));
  }
  // -1 when there is none.
  int64_t claim() {
    const uint64_t claimed = word.fetch_add(1, std::memory_order_acq_rel);
    return next(claimed) < end(claimed) ? static_cast<int64_t>(next(claimed)) : -1;
  }
};

}  // namespace

struct WorkerPool::Impl {
  explicit Impl(int workers) : queues(static_cast<size_t>(workers)) {}

  std::vector<SliceQueue> queues;
  std::vector<std::thread> threads;
  std::atomic<bool> running{false};

  // The loop in progress: written before the queues are filled, read only by the holder of a claim.
  int count = 0;
  int grain = 1;
  const std::function<void(int, int, int)>* body = nullptr;
  alignas(64) std::atomic<uint32_t> unfinished{0};
  std::atomic<bool> cancelled{false};

  std::mutex mutex;
  std::condition_variable work_arrived;
  std::condition_variable work_done;
  std::exception_ptr first_exception;
  alignas(64) std::atomic<uint64_t> loop_number{0};
  std::atomic<bool> stopping{false};

  void run_slice(int worker, int64_t slice) {
    if (!cancelled.load(std::memory_order_relaxed)) {
      const int begin = static_cast<int>(slice) * grain;
      try {
        (*body)(worker, begin, std::min(count, begin + grain));
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!first_exception) first_exception = std::current_exception();
        cancelled.store(true, std::memory_order_relaxed);
      }
    }
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::lock_guard<std::mutex> lock(mutex);
      work_done.notify_one();
    }
  }

  void drain(int worker) {
    for (;;) {
      SliceQueue* queue = &queues[static_cast<size_t>(worker)];
      if (queue->left() <= 0) {
        queue = &*std::max_element(
            queues.begin(), queues.end(),
            [](const SliceQueue& a, const SliceQueue& b) { return a.left() < b.left(); });
        if (queue->left() <= 0) return;
      }
      const int64_t slice = queue->claim();
      if (slice >= 0) run_slice(worker, slice);
    }
  }

  void serve(int worker) {
    uint64_t seen = 0;
    for (;;) {
      for (int round = 0; round < kSpinRounds; ++round) {
        if (loop_number.load(std::memory_order_acquire) != seen) break;
        relax();
      }
      {
        std::unique_lock<std::mutex> lock(mutex);
        work_arrived.wait(lock, [&] { return stopping || loop_number.load() != seen; });
        if (stopping) return;
        seen = loop_number.load();
      }
      drain(worker);
    }
  }

  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    work_arrived.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void wait_until_done() {
    for (int round = 0; round < kSpinRounds; ++round) {
      if (unfinished.load(std::memory_order_acquire) == 0) return;
      relax();
    }
    std::unique_lock<std::mutex> lock(mutex);
    work_done.wait(lock, [&] { return unfinished.load(std::memory_order_acquire) == 0; });
  }
};

WorkerPool::WorkerPool(int workers) {
  if (workers < 1 || workers > kMostWorkers) {
    throw Failure(Code::kInvalid, "a worker pool has 1 to " + std::to_string(kMostWorkers) +
                                      " workers, not " + std::to_string(workers));
  }
  impl_ = std::make_unique<Impl>(workers);
  try {
    for (int worker = 1; worker < workers; ++worker) {
      impl_->threads.emplace_back([impl = impl_.get(), worker] { impl->serve(worker); });
    }
  } catch (const std::system_error& error) {
    const size_t started = impl_->threads.size();
    impl_->stop();
    throw Failure(Code::kResource, "the system has " + std::to_string(started + 1) + " of " +
                                       std::to_string(workers) + " threads: " + error.what());
  }
}

WorkerPool::~WorkerPool() { impl_->stop(); }

int WorkerPool::workers() const { return static_cast<int>(impl_->queues.size()); }

void WorkerPool::run(int count, int grain, const std::function<void(int, int, int)>& body) {
  MR_CHECK(count >= 0 && grain >= 1, "count must be >= 0 and grain >= 1");
  if (count == 0) return;
  MR_CHECK(!impl_->running.exchange(true), "a loop is already running in this pool");

  const uint64_t slices = (static_cast<uint64_t>(count) + grain - 1) / grain;
  impl_->count = count;
  impl_->grain = grain;
  impl_->body = &body;
  impl_->first_exception = nullptr;
  impl_->cancelled = false;
  impl_->unfinished.store(static_cast<uint32_t>(slices), std::memory_order_release);
  // Slice k belongs to worker k * workers / slices.
  const uint64_t workers = impl_->queues.size();
  for (uint64_t worker = 0; worker < workers; ++worker) {
    impl_->queues[worker].assign(
        static_cast<uint32_t>((worker * slices + workers - 1) / workers),
        static_cast<uint32_t>(((worker + 1) * slices + workers - 1) / workers));
  }
  if (workers > 1 && slices > 1) {
    {
      std::lock_guard<std::mutex> lock(impl_->mutex);
      impl_->loop_number.fetch_add(1);
    }
    impl_->work_arrived.notify_all();
  }
  impl_->drain(0);
  impl_->wait_until_done();
  impl_->body = nullptr;

  std::exception_ptr failed;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    std::swap(failed, impl_->first_exception);
  }
  impl_->running.store(false);
  if (failed) std::rethrow_exception(failed);
}

}  // namespace millrace
