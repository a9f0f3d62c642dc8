#include "sampler.h"

#include <string>

#include "status.h"

namespace millrace {

Sampler::Sampler(Backend& backend, Stream& stream, RowLayout layout, uint64_t sample_rows,
                 uint64_t seed)
    : stream_(stream),
      sample_rows_(sample_rows),
      seed_(seed),
      batches_{{backend, Memory::Kind::kDevice, sample_rows * layout.row_stride_bytes()},
               {backend, Memory::Kind::kDevice, sample_rows * layout.row_stride_bytes()}},
      event_(backend) {
  MR_CHECK(sample_rows >= 1 && sample_rows < (uint64_t{1} << 32), "a batch needs 1..2^32-1 rows");
}

bool Sampler::add(const SampleRange& range, bool is_newest) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (request_) {
    if (request_->range.tick == range.tick) return false;
    throw Failure(Code::kState, "a batch for tick " + std::to_string(range.tick) +
                                    " was requested while that of tick " +
                                    std::to_string(request_->range.tick) + " is outstanding");
  }
  request_ = SampleRequest{range, is_newest, false};
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
  stream_.gather({batches_[cold].floats(), ring.storage(), ring.capacity_rows(), ring.row_stride(),
                  sample_rows_, seed_, range.tick, range.low, range.high});
  stream_.record(event_);
  std::lock_guard<std::mutex> lock(mutex_);
  request_->is_gathered = true;
  return true;
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

bool Sampler::is_ready(uint64_t tick) const { return is_gathered(tick) && event_.is_complete(); }

const float* Sampler::take(uint64_t tick) {
  if (!is_gathered(tick)) {
    const std::optional<SampleRequest> request = outstanding();
    throw Failure(Code::kState, "no batch was gathered for tick " + std::to_string(tick) +
                                    (request ? "; the outstanding request is for tick " +
                                                   std::to_string(request->range.tick)
                                             : "; none was requested"));
  }
  event_.wait();
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
