#include "replay.h"

#include <algorithm>
#include <string>

namespace millrace {

Replay::Replay(Backend& backend, const ReplaySpec& spec, FirstError& first_error, Trace* trace)
    : spec_(spec),
      columns_(batch_columns(spec.layout, spec.batch_layout)),
      backend_(backend),
      first_error_(first_error),
      trace_(trace),
      host_(spec.pipeline == Pipeline::kCpuPinnedDoubleBuffer
                ? std::make_unique<Backend>(backend_cpu())
                : nullptr),
      stream_(backend),
      host_stream_(host_ != nullptr ? std::make_unique<Stream>(*host_) : nullptr),
      ingress_(ring_backend(), spec.layout, spec.depth, spec.num_envs, doorbell_, spec.has_reader,
               spec.slots == Place::kDevice ? Memory::Kind::kDevice : Memory::Kind::kPinnedHost),
      ring_(ring_backend(), ring_stream(), spec.layout, spec.capacity_rows, ingress_),
      sampler_(backend, ring_stream(), stream_, sampler_spec()) {
  const uint64_t in_flight = (static_cast<uint64_t>(spec.depth) + 1) * spec.num_envs;
  MR_CHECK(spec.capacity_rows >= in_flight, "capacity " + std::to_string(spec.capacity_rows) +
                                                " is below the " + std::to_string(in_flight) +
                                                " rows that may be in flight");
  MR_CHECK(spec.slots == Place::kHost || is_ring_on_device(),
           "slots in device memory feed a ring in device memory");
  if (trace == nullptr || !is_ring_on_device() || backend.is_host_memory()) return;
  stream_trace_ = std::make_unique<StreamTrace>(backend, stream_, *trace);
  ring_.trace_with(stream_trace_.get());
  sampler_.trace_with(stream_trace_.get());
}

SamplerSpec Replay::sampler_spec() const {
  SamplerSpec sampler{spec_.sample_rows, spec_.seed, columns_, Memory::Kind::kDevice, {}};
  const bool is_learner_elsewhere =
      is_ring_on_device() ? spec_.batch_place == Place::kHost && !backend_.is_host_memory()
                          : spec_.batch_place == Place::kDevice && !backend_.is_host_memory();
  if (!is_ring_on_device()) sampler.gathered = Memory::Kind::kPinnedHost;
  if (is_learner_elsewhere) {
    sampler.delivered = is_ring_on_device() ? Memory::Kind::kPinnedHost : Memory::Kind::kDevice;
  }
  return sampler;
}

uint64_t Replay::host_bytes() const {
  return (ingress_.is_on_device() ? 0 : ingress_.bytes()) +
         (is_ring_on_device() ? 0 : ring_.bytes());
}

uint64_t Replay::host_batch_bytes() const { return sampler_.bytes(Memory::Kind::kPinnedHost); }

uint64_t Replay::device_bytes() const {
  return sampler_.bytes(Memory::Kind::kDevice) + (ingress_.is_on_device() ? ingress_.bytes() : 0) +
         (is_ring_on_device() ? ring_.bytes() : 0);
}

float* Replay::claim() {
  if (trace_ == nullptr) return ingress_.claim();
  const uint64_t waits = ingress_.backpressure_waits();
  const uint64_t begin_ns = Trace::now_ns();
  float* slot = ingress_.claim();
  if (ingress_.backpressure_waits() != waits) {
    trace_->complete(span::kIngressBackpressure, begin_ns, Trace::now_ns());
  }
  return slot;
}

bool Replay::publish() { return ingress_.publish(); }

bool Replay::request(uint64_t tick) {
  TraceSpan span(trace_, span::kPrepareRequest);
  first_error_.check();
  const std::optional<SampleRequest> outstanding = sampler_.outstanding();
  if (outstanding && outstanding->range.tick == tick) return true;
  const uint64_t high = ingress_.published_rows() + spec_.num_envs;
  if (high < spec_.threshold_rows) return false;
  const uint64_t low = high > spec_.capacity_rows ? high - spec_.capacity_rows : 0;
  sampler_.request({tick, low, high});
  remember();
  doorbell_.ring();
  return true;
}

bool Replay::request_newest(uint64_t tick) {
  TraceSpan span(trace_, span::kPrepareRequest);
  first_error_.check();
  const uint64_t committed = ring_.committed_rows();
  if (committed == 0 || committed < spec_.threshold_rows) return false;
  sampler_.request_newest(tick);
  remember();
  doorbell_.ring();
  return true;
}

bool Replay::ready(uint64_t tick) const { return sampler_.is_ready(tick); }

bool Replay::wait_ready(uint64_t tick) const {
  TraceSpan span(trace_, span::kWaitForBatch);
  for (;;) {
    const uint64_t seen = doorbell_.count();
    first_error_.check();
    if (sampler_.is_gathered(tick)) return true;
    if (ingress_.is_closed()) return false;
    doorbell_.wait(seen);
  }
}

const float* Replay::take(uint64_t tick) {
  TraceSpan span(trace_, span::kHotColdSwap);
  first_error_.check();
  const float* batch = sampler_.take(tick);
  remember();
  return batch;
}

bool Replay::advance() {
  uint64_t begin_ns = trace_ != nullptr ? Trace::now_ns() : 0;
  bool has_moved = ring_.drain() > 0;
  if (trace_ != nullptr && has_moved) {
    trace_->complete(span::kIngressCommit, begin_ns, Trace::now_ns());
    begin_ns = Trace::now_ns();
  }
  if (sampler_.gather(ring_)) {
    if (trace_ != nullptr) trace_->complete(span::kGatherSubmit, begin_ns, Trace::now_ns());
    has_moved = true;
    doorbell_.ring();
  }
  if (ring_.submit(sampler_.limit()) > 0) has_moved = true;
  if (stream_trace_ != nullptr) stream_trace_->collect(false);
  return has_moved;
}

void Replay::wait_for_copy() {
  TraceSpan span(trace_, span::kIngressCommit);
  ring_.wait_oldest();
}

void Replay::progress(bool wait) {
  const uint64_t published = ingress_.published_rows();
  for (;;) {
    const uint64_t seen = doorbell_.count();
    first_error_.check();
    const bool has_moved = advance();
    const std::optional<SampleRequest> request = sampler_.outstanding();
    const bool is_gathered = !request || request->is_gathered;
    const bool is_done = is_gathered && ring_.committed_rows() >= published;
    if (is_done || (!has_moved && !wait)) break;
    if (has_moved) continue;
    if (ring_.has_copies_in_flight()) {
      wait_for_copy();
    } else if (ingress_.is_closed()) {
      break;
    } else {
      doorbell_.wait(seen);
    }
  }
  if (wait) {
    sampler_.observe(true);
    finish_trace();
  }
  remember();
}

void Replay::wait_settled() const {
  TraceSpan span(trace_, span::kWaitForBatch);
  const uint64_t published = ingress_.published_rows();
  for (;;) {
    const uint64_t seen = doorbell_.count();
    first_error_.check();
    const std::optional<SampleRequest> request = sampler_.outstanding();
    const bool has_batch = !request || request->is_observed;
    if (has_batch && ring_.committed_rows() >= published) return;
    if (ingress_.is_closed()) return;
    doorbell_.wait(seen);
  }
}

void Replay::finish_trace() {
  if (stream_trace_ != nullptr) stream_trace_->collect(true);
}

bool Replay::work() {
  first_error_.check();
  if (advance()) {
    remember();
    return true;
  }
  if (ring_.has_copies_in_flight()) {
    wait_for_copy();
    return true;
  }
  const bool has_observed = sampler_.observe(true);
  if (has_observed) doorbell_.ring();
  return has_observed;
}

ReplayCounters Replay::counters() const {
  // Read against the flow, so that published >= submitted >= committed in what is reported.
  ReplayCounters counters{};
  counters.committed = ring_.committed_rows();
  counters.submitted = ring_.submitted_rows();
  counters.published = ingress_.published_rows();
  counters.size = std::min(counters.committed, spec_.capacity_rows);
  counters.wraps = counters.committed / spec_.capacity_rows;
  counters.backpressure_waits = ingress_.backpressure_waits();
  counters.backpressure_wait_ns = ingress_.backpressure_wait_ns();
  counters.in_flight_at_close = ingress_.in_flight_at_close();
  return counters;
}

void Replay::remember() {
  std::lock_guard<std::mutex> lock(saved_mutex_);
  const std::optional<SampleRequest> request = sampler_.outstanding();
  saved_[kCommitted] = ring_.committed_rows();
  saved_[kHasRequest] = request.has_value();
  saved_[kIsNewest] = request && request->is_newest && !request->is_gathered;
  saved_[kTick] = request ? request->range.tick : 0;
  saved_[kLow] = request ? request->range.low : 0;
  saved_[kHigh] = request ? request->range.high : 0;
}

void Replay::register_state(StateRegistry& registry) {
  checkpoint_access_ = std::make_unique<DeviceMemory>(ring_backend(), ring_.memory());
  registry.add(
      "replay/rows", DType::kF32,
      {static_cast<int64_t>(spec_.capacity_rows), static_cast<int64_t>(spec_.layout.row_stride())},
      ring_.storage(), true, ring_backend().is_host_memory() ? nullptr : checkpoint_access_.get());
  registry.add("replay/counters", DType::kU64, {kSavedWords}, saved_, true);
}

void Replay::restored(bool with_replay) {
  if (!with_replay) std::fill(saved_, saved_ + kSavedWords, 0);
  const uint64_t committed = saved_[kCommitted];
  sampler_.restart();
  ingress_.restart_at(committed);
  ring_.restart_at(committed);
  if (saved_[kHasRequest] == 0) return;
  if (saved_[kIsNewest] != 0) {
    sampler_.request_newest(saved_[kTick]);
    return;
  }
  // Rows of a newest request may have been overwritten since it was gathered.
  sampler_.request({saved_[kTick], std::max(saved_[kLow], ring_.oldest_row()), saved_[kHigh]});
}

void Replay::close() {
  ingress_.close();
  doorbell_.ring();
}

}  // namespace millrace
