// A fixed pool of native threads that runs one parallel loop at a time over items 0..count-1.
//
// Each loop cuts the items into fixed slices of `grain`; slice k belongs first to worker
// k * workers / slices (sticky: the same worker sees the same items tick after tick), and a worker
// that runs dry steals slices from the fullest neighbour. Claims are atomic adds; there is no
// global queue lock. Which worker ran an item never changes a result; slices are cut by index
// alone. Idle workers spin briefly, then sleep on a condition variable. One thread at a time may
// call run(); it is worker 0 of that loop and returns when all is done. The first exception of a
// body is rethrown there; slices that had not begun by then are skipped.
#pragma once

#include <functional>
#include <memory>

namespace millrace {

class WorkerPool {
 public:
  static constexpr int kMostWorkers = 1024;

  // Throws kInvalid for no or more workers than that, kResource where the system has not so many
  // threads left.
  explicit WorkerPool(int workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int workers() const;
  // body(worker, begin, end). Returns when all items are done.
  void run(int count, int grain, const std::function<void(int, int, int)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
