#include "stream_trace.h"

#include <utility>

namespace millrace {

namespace {

constexpr uint32_t kFirstTrack = 9001;  // where analysis scripts look for them
constexpr const char* kTrackNames[] = {"gpu_stream_0", "gpu_stream_1", "gpu_stream_2",
                                       "gpu_stream_3"};
constexpr double kAnchorAge = 1e9;  // ns

}  // namespace

StreamTrace::StreamTrace(Backend& backend, Stream& stream, Trace& trace, uint32_t index)
    : backend_(backend), stream_(stream), trace_(trace), track_(kFirstTrack + index) {
  trace.name_track(track_, kTrackNames[index]);
}

std::unique_ptr<Event> StreamTrace::timed_event() {
  if (free_.empty()) return std::make_unique<Event>(backend_, true);
  std::unique_ptr<Event> event = std::move(free_.back());
  free_.pop_back();
  return event;
}

void StreamTrace::set_anchor() {
  anchor_ = timed_event();
  stream_.record(*anchor_);
  anchor_->wait();
  anchor_ns_ = Trace::now_ns();
}

void StreamTrace::begin(const char* name) {
  if (anchor_ == nullptr) set_anchor();
  pending_.push_back({name, Trace::now_ns(), timed_event(), timed_event()});
  stream_.record(*pending_.back().begin);
}

void StreamTrace::end() { stream_.record(*pending_.back().end); }

void StreamTrace::write(Span& span) {
  const double begin = span.begin->elapsed_ns_since(*anchor_);
  const double length = span.end->elapsed_ns_since(*span.begin);
  uint64_t begin_ns = anchor_ns_ + static_cast<uint64_t>(begin > 0 ? begin : 0);
  if (begin_ns < span.submitted_ns) {
    anchor_ns_ += span.submitted_ns - begin_ns;
    begin_ns = span.submitted_ns;
  }
  const uint64_t end_ns = begin_ns + static_cast<uint64_t>(length > 0 ? length : 0);
  trace_.complete_on(track_, span.name, begin_ns, end_ns);
  if (begin > kAnchorAge) {
    std::swap(anchor_, span.end);
    anchor_ns_ = end_ns;
  }
}

void StreamTrace::collect(bool wait) {
  while (!pending_.empty()) {
    Span& span = pending_.front();
    if (wait) span.end->wait();
    if (!span.end->is_complete()) return;
    write(span);
    free_.push_back(std::move(span.begin));
    free_.push_back(std::move(span.end));
    pending_.pop_front();
  }
}

}  // namespace millrace
