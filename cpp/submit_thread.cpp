#include "submit_thread.h"

namespace millrace {

SubmitThread::SubmitThread(Replay& replay, SubmittedUpdate* update, FirstError& first_error,
                           Trace* trace)
    : replay_(replay), update_(update), first_error_(first_error), trace_(trace), thread_([this] {
        main();
      }) {}

SubmitThread::~SubmitThread() { thread_.join(); }

void SubmitThread::serve() {
  // The collector waits for the update step with all robots; it goes first.
  while (!replay_.is_closed()) {
    const uint64_t seen = replay_.doorbell().count();
    operation_ = "update.submit";
    if (update_ != nullptr && update_->advance()) continue;
    operation_ = "replay.submit";
    if (replay_.work()) continue;
    if (!replay_.is_closed()) replay_.doorbell().wait(seen);
  }
  replay_.finish_trace();
  operation_ = "update.submit";
  if (update_ != nullptr) update_->finish();
}

void SubmitThread::main() {
  if (trace_ != nullptr) trace_->name_thread("submit");
  const auto fail = [this](Code code, const char* message) {
    first_error_.set({operation_, replay_.counters().submitted, "submit", code, message});
  };
  try {
    serve();
  } catch (const Failure& failure) {
    fail(failure.code(), failure.what());
  } catch (const std::exception& error) {
    fail(Code::kBug, error.what());
  }
  replay_.close();
  if (update_ != nullptr) update_->close();
}

}  // namespace millrace
