// StreamTrace: what a stream did when, as spans on a track of the trace. begin() and end() record a
// pair of timed events round submitted work; once the pair is complete its device time becomes a
// span on the host's clock. Both clocks meet at an anchor: an event whose host time is known. It is
// moved along with the work, so that neither drift nor the float of a long time accumulates, and no
// span begins before its work was submitted.
// All on the submit thread. A null StreamTrace* means off, as with Trace.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "trace.h"

namespace millrace {

class StreamTrace {
 public:
  // `index`: which stream of the run, 0 to 3; each has a track of its own.
  StreamTrace(Backend& backend, Stream& stream, Trace& trace, uint32_t index = 0);

  void begin(const char* name);
  void end();
  // Writes the spans of complete work; with `wait`, of all submitted work.
  void collect(bool wait);

 private:
  struct Span {
    const char* name;
    uint64_t submitted_ns;
    std::unique_ptr<Event> begin, end;
  };
  void set_anchor();
  std::unique_ptr<Event> timed_event();
  void write(Span& span);

  Backend& backend_;
  Stream& stream_;
  Trace& trace_;
  const uint32_t track_;
  std::unique_ptr<Event> anchor_;
  uint64_t anchor_ns_ = 0;
  std::deque<Span> pending_;
  std::vector<std::unique_ptr<Event>> free_;
};

// Work of one scope.
class StreamSpan {
 public:
  StreamSpan(StreamTrace* trace, const char* name) : trace_(trace) {
    if (trace_ != nullptr) trace_->begin(name);
  }
  ~StreamSpan() noexcept(false) {
    if (trace_ != nullptr && std::uncaught_exceptions() == 0) trace_->end();
  }
  StreamSpan(const StreamSpan&) = delete;
  StreamSpan& operator=(const StreamSpan&) = delete;

 private:
  StreamTrace* const trace_;
};

}  // namespace millrace
