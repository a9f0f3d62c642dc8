// SubmitThread: the one thread that makes every launch and copy of a run on a device of its own, so
// that neither the collector nor the learner ever waits for a submission. It serves the replay and,
// if the update step runs there too, that; sleeps while both have nothing to do, and ends when the
// replay is closed. Graphs are destroyed here, behind the work that uses them. What it throws
// becomes the run's first error; at its end replay and update step are closed, so that every other
// thread wakes and sees it.
// Close the replay before destroying this. All outlive it.
#pragma once

#include <thread>

#include "replay.h"
#include "status.h"
#include "submitted_update.h"
#include "trace.h"

namespace millrace {

class SubmitThread {
 public:
  // `update` is null where the host runs the update step.
  SubmitThread(Replay& replay, SubmittedUpdate* update, FirstError& first_error, Trace* trace);
  ~SubmitThread();
  SubmitThread(const SubmitThread&) = delete;
  SubmitThread& operator=(const SubmitThread&) = delete;

 private:
  void main();
  void serve();

  Replay& replay_;
  SubmittedUpdate* const update_;
  FirstError& first_error_;
  Trace* const trace_;
  const char* operation_ = "replay.submit";  // what is being done, for the first error
  std::thread thread_;
};

}  // namespace millrace
