#include "sampler.h"

#include <string>

#include "status.h"

namespace millrace {

Sampler::Sampler(Backend& backend, Stream& ring_stream, Stream& stream, const SamplerSpec& spec)
    : ring_stream_(ring_stream), stream_(stream), spec_(spec), event_(backend) {
  MR_CHECK(spec.sample_rows >= 1 && spec.sample_rows < (uint64_t{1} << 32),
           "a batch needs 1..2^32-1 rows");
  const uint64_t batch_bytes = spec.sample_rows * spec.columns.stride * sizeof(float);
  for (Batch& batch : batches_) {
    batch.gathered.reset(new Memory(backend, spec.gathered, batch_bytes));
    if (!spec.delivered) continue;
    batch.delivered.reset(new Memory(backend, *spec.delivered, batch_bytes));
  }
}

uint64_t Sampler::bytes(Memory::Kind kind) const {
  uint64_t total = 0;
  for (const Batch& batch : batches_) {
    if (spec_.gathered == kind) total += batch.gathered->bytes();
    if (spec_.delivered == kind) total += batch.delivered->bytes();
  }
  return total;
}

bool Sampler::add(const SampleRange& range, bool is_newest) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (request_) {
    if (request_->range.tick == range.tick) return false;
    throw Failure(Code::kState, "a batch for tick " + std::to_string(range.tick) +
                                    " was requested while that of tick " +
                                    std::to_string(request_->range.tick) + " is outstanding");
  }
  request_ = SampleRequest{range, is_newest, false, 0, false};
  return true;
}

bool Sampler::request(const SampleRange& range) {
  MR_CHECK(range.low < range.high, "a batch cannot be drawn from an empty range");
  return add(range, false);
}

bool Sampler::request_newest(uint64_t tick) { return add({tick, 0, 0}, true); }

bool Sampler::gather(const Ring& ring) {
  SampleRange range;
  int cold;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!request_ || request_->is_gathered) return false;
    if (request_->is_newest) {
      request_->range.low = ring.oldest_row();
      request_->range.high = ring.committed_rows();
    }
    range = request_->range;
    cold = 1 - hot_;
  }
  if (ring.committed_rows() < range.high || range.low >= range.high) return false;
  MR_CHECK(range.low >= ring.oldest_row(), "rows from " + std::to_string(range.low) +
                                               " were requested but a later copy claimed up to " +
                                               std::to_string(ring.oldest_row()));
  enqueue(ring, range, batches_[cold]);
  stream_.record(event_);
  std::lock_guard<std::mutex> lock(mutex_);
  request_->is_gathered = true;
  request_->gather = ++gathers_;
  return true;
}

bool Sampler::observe(bool wait) {
  uint64_t gather = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!request_ || !request_->is_gathered || request_->is_observed) return false;
    gather = request_->gather;
  }
  if (wait) {
    event_.wait();
  } else if (!event_.is_complete()) {
    return false;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  // Meanwhile the learner may have taken this batch and asked for the next one.
  if (request_ && request_->gather == gather) request_->is_observed = true;
  return true;
}

void Sampler::enqueue(const Ring& ring, const SampleRange& range, const Batch& batch) {
  {
    StreamSpan span(trace_, span::kGpuBatchGather);
    ring_stream_.gather({batch.gathered->floats(), ring.storage(), ring.capacity_rows(),
                         ring.row_stride(), spec_.sample_rows, spec_.seed, range.tick, range.low,
                         range.high, spec_.columns});
  }
  if (!batch.delivered) return;
  StreamSpan span(trace_, span::kGpuBatchCopy);
  const CopyDirection direction = spec_.gathered == Memory::Kind::kDevice
                                      ? CopyDirection::kDeviceToHost
                                      : CopyDirection::kHostToDevice;
  stream_.copy(direction, batch.delivered->floats(), batch.gathered->floats(),
               batch.gathered->bytes());
}

uint64_t Sampler::limit() const {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool is_held = request_ && !request_->is_newest && !request_->is_gathered;
  return is_held ? request_->range.high : UINT64_MAX;
}

bool Sampler::is_gathered(uint64_t tick) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return request_ && request_->range.tick == tick && request_->is_gathered;
}

bool Sampler::is_ready(uint64_t tick) const {
  const std::optional<SampleRequest> request = outstanding();
  if (!request || request->range.tick != tick || !request->is_gathered) return false;
  return request->is_observed || event_.is_complete();
}

const float* Sampler::take(uint64_t tick) {
  if (!is_gathered(tick)) {
    const std::optional<SampleRequest> request = outstanding();
    throw Failure(Code::kState, "no batch was gathered for tick " + std::to_string(tick) +
                                    (request ? "; the outstanding request is for tick " +
                                                   std::to_string(request->range.tick)
                                             : "; none was requested"));
  }
  if (!outstanding()->is_observed) event_.wait();
  std::lock_guard<std::mutex> lock(mutex_);
  hot_ = 1 - hot_;
  taken_ = request_->range;
  request_.reset();
  return batches_[hot_].floats();
}

std::optional<SampleRequest> Sampler::outstanding() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return request_;
}

void Sampler::restart() {
  std::lock_guard<std::mutex> lock(mutex_);
  request_.reset();
}

}  // namespace millrace
