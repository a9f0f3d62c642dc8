#include "submitted_update.h"

#include "status.h"

namespace millrace {

namespace {

constexpr uint32_t kStreamIndex = 1;  // the replay has the first

}  // namespace

SubmittedUpdate::SubmittedUpdate(Backend& backend, const Task& task, const HostState& host,
                                 int num_envs, const GraphSpec& graph, Doorbell& doorbell,
                                 Trace* trace, const SelectionSpec& selection)
    : stream_(backend),
      stream_trace_(trace == nullptr
                        ? nullptr
                        : std::make_unique<StreamTrace>(backend, stream_, *trace, kStreamIndex)),
      update_(backend, stream_, task, host, num_envs),
      // Between two ticks the host holds the carriers: they need not be saved to be restored.
      program_(backend, stream_, graph, selection, [this] { update_.submit(); },
               {[] {}, [this] { update_.upload_carriers(); }}),
      doorbell_(doorbell),
      trace_(trace) {}

Receipt SubmittedUpdate::run(const Receipt& step, const UpdateArguments& arguments, float* rows,
                             uint64_t row_floats) {
  expect_operation(step, Operation::kStep);
  std::unique_lock<std::mutex> lock(mutex_);
  tick_ = {arguments, rows, row_floats, are_carriers_changed_};
  are_carriers_changed_ = false;
  const uint64_t sequence = ++asked_;
  lock.unlock();
  doorbell_.ring();
  lock.lock();
  done_changed_.wait(lock, [&] { return done_ == sequence || is_closed_; });
  if (done_ != sequence) {
    throw Failure(Code::kState, "the update step was closed during a tick");
  }
  return {Operation::kUpdate, sequence, 0};
}

bool SubmittedUpdate::advance() {
  Tick tick;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (done_ == asked_ || is_closed_) return false;
    tick = tick_;
  }
  {
    TraceSpan span(trace_, span::kUpdateSubmit);
    submit(tick);
    update_.finish();
    program_.completed();
  }
  if (stream_trace_ != nullptr) stream_trace_->collect(false);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++done_;
  }
  done_changed_.notify_one();
  return true;
}

void SubmittedUpdate::submit(const Tick& tick) {
  {
    StreamSpan span(stream_trace_.get(), span::kGpuUpdateUpload);
    if (tick.has_changed_carriers) update_.upload_carriers();
    update_.upload_inputs();
  }
  {
    StreamSpan span(stream_trace_.get(), span::kGpuUpdate);
    program_.run([&] { update_.set_block(tick.arguments, tick.rows, tick.row_floats); });
  }
  StreamSpan span(stream_trace_.get(), span::kGpuUpdateDownload);
  update_.download();
}

void SubmittedUpdate::finish() {
  if (stream_trace_ != nullptr) stream_trace_->collect(true);
  program_.release();
}

void SubmittedUpdate::close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_closed_ = true;
  }
  done_changed_.notify_one();
}

nlohmann::json SubmittedUpdate::facts() const {
  nlohmann::json facts = program_.program().describe();
  facts["place"] = "device";
  facts["copied_bytes_per_tick"] = {{"without_reset", update_.copied_bytes(false)},
                                    {"with_reset", update_.copied_bytes(true)}};
  return facts;
}

}  // namespace millrace
