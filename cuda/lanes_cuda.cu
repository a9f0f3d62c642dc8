#include "lanes_cuda.cuh"
#include "relaxed_capture.cuh"

namespace millrace {

// Of one launch of a program.
struct CudaLanes::Marks {
  cudaEvent_t begin = nullptr;
  std::vector<bool> has_begun;      // by lane
  std::vector<cudaEvent_t> behind;  // by record: null where no other lane waits for it
};

CudaLanes::~CudaLanes() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  for (size_t lane = 1; lane < streams_.size(); ++lane) cudaStreamDestroy(streams_[lane]);
}

// Behind what the stream has been given so far.
cudaError_t CudaLanes::mark(cudaStream_t stream, cudaEvent_t* event) {
  if (used_events_ == events_.size()) {
    const RelaxedCapture relaxed;
    cudaEvent_t created = nullptr;
    const cudaError_t code = cudaEventCreateWithFlags(&created, cudaEventDisableTiming);
    if (code != cudaSuccess) return code;
    events_.push_back(created);
  }
  *event = events_[used_events_++];
  return cudaEventRecord(*event, stream);
}

cudaError_t CudaLanes::stream_of(int lane, Marks& marks, cudaStream_t* stream) {
  const size_t at = static_cast<size_t>(lane);
  while (streams_.size() <= at) {
    const RelaxedCapture relaxed;
    cudaStream_t created = nullptr;
    const cudaError_t code = cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking);
    if (code != cudaSuccess) return code;
    streams_.push_back(created);
  }
  *stream = streams_[at];
  if (lane == 0 || marks.has_begun[at]) return cudaSuccess;
  marks.has_begun[at] = true;
  return cudaStreamWaitEvent(*stream, marks.begin);
}

cudaError_t CudaLanes::launch_all(const std::vector<Program::Record>& records, const Launch& launch,
                                  Marks& marks, size_t* record) {
  std::vector<bool> is_awaited(records.size(), false);
  for (const Program::Record& one : records) {
    for (const int before : one.after) {
      const size_t at = static_cast<size_t>(before);
      if (records[at].lane != one.lane) is_awaited[at] = true;
    }
  }
  marks.behind.assign(records.size(), nullptr);
  for (*record = 0; *record < records.size(); ++*record) {
    const Program::Record& one = records[*record];
    cudaStream_t stream = nullptr;
    cudaError_t code = stream_of(one.lane, marks, &stream);
    for (const int before : one.after) {
      const size_t at = static_cast<size_t>(before);
      if (code != cudaSuccess || records[at].lane == one.lane) continue;
      code = cudaStreamWaitEvent(stream, marks.behind[at]);
    }
    if (code == cudaSuccess) code = launch(*record, one.lane, stream);
    if (code == cudaSuccess && is_awaited[*record]) code = mark(stream, &marks.behind[*record]);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

cudaError_t CudaLanes::join(const Marks& marks) {
  cudaError_t first = cudaSuccess;
  for (size_t lane = 1; lane < streams_.size(); ++lane) {
    if (!marks.has_begun[lane]) continue;
    cudaEvent_t end = nullptr;
    cudaError_t code = mark(streams_[lane], &end);
    if (code == cudaSuccess) code = cudaStreamWaitEvent(streams_[0], end);
    if (first == cudaSuccess) first = code;
  }
  return first;
}

cudaError_t CudaLanes::run(const std::vector<Program::Record>& records, const Launch& launch,
                           size_t* record) {
  used_events_ = 0;
  Marks marks;
  marks.has_begun.assign(Program::kLanes, false);
  *record = 0;
  const cudaError_t begun = mark(streams_[0], &marks.begin);
  if (begun != cudaSuccess) return begun;
  const cudaError_t code = launch_all(records, launch, marks, record);
  const cudaError_t joined = join(marks);
  return code != cudaSuccess ? code : joined;
}

}  // namespace millrace
