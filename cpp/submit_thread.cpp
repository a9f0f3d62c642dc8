#include "submit_thread.h"

namespace millrace {

SubmitThread::SubmitThread(Replay& replay, FirstError& first_error, Trace* trace)
    : replay_(replay), first_error_(first_error), trace_(trace), thread_([this] { main(); }) {}

SubmitThread::~SubmitThread() { thread_.join(); }

void SubmitThread::main() {
  if (trace_ != nullptr) trace_->name_thread("submit");
  const auto fail = [this](Code code, const char* message) {
    first_error_.set({"replay.submit", replay_.counters().submitted, "submit", code, message});
    replay_.close();
  };
  try {
    while (replay_.wait_for_work()) {
    }
    replay_.finish_trace();
  } catch (const Failure& failure) {
    fail(failure.code(), failure.what());
  } catch (const std::exception& error) {
    fail(Code::kBug, error.what());
  }
}

}  // namespace millrace
