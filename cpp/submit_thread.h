// SubmitThread: the one thread that makes every launch and copy of a replay on a device of its own,
// so that neither the collector nor the learner ever waits for a submission. It sleeps until there
// is something to do and ends when the replay is closed. What it throws becomes the run's first
// error, and the replay is closed, so that every other thread wakes and sees it.
// Close the replay before destroying this. All outlive it.
#pragma once

#include <thread>

#include "replay.h"
#include "status.h"
#include "trace.h"

namespace millrace {

class SubmitThread {
 public:
  SubmitThread(Replay& replay, FirstError& first_error, Trace* trace);
  ~SubmitThread();
  SubmitThread(const SubmitThread&) = delete;
  SubmitThread& operator=(const SubmitThread&) = delete;

 private:
  void main();

  Replay& replay_;
  FirstError& first_error_;
  Trace* const trace_;
  std::thread thread_;
};

}  // namespace millrace
