// The lanes of a CUDA stream: the stream itself and side streams whose work begins and ends with
// it. Records of a program that do not wait for each other run at the same time, and a capture of
// the stream records them side by side. Used by the stream's thread; side streams and events are
// made when a program first wants them, and kept.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "program.h"

namespace millrace {

class CudaLanes {
 public:
  explicit CudaLanes(cudaStream_t main) : streams_{main} {}
  ~CudaLanes();
  CudaLanes(const CudaLanes&) = delete;
  CudaLanes& operator=(const CudaLanes&) = delete;

  // Calls launch(record, lane, stream) for every record in order, between what orders the lanes.
  // The first result that is not success ends it, and *record is where. The work of all lanes is
  // part of the main stream's either way.
  using Launch = std::function<cudaError_t(size_t record, int lane, cudaStream_t stream)>;
  cudaError_t run(const std::vector<Program::Record>& records, const Launch& launch,
                  size_t* record);

 private:
  struct Marks;
  cudaError_t launch_all(const std::vector<Program::Record>& records, const Launch& launch,
                         Marks& marks, size_t* record);
  cudaError_t mark(cudaStream_t stream, cudaEvent_t* event);
  cudaError_t stream_of(int lane, Marks& marks, cudaStream_t* stream);
  cudaError_t join(const Marks& marks);

  std::vector<cudaStream_t> streams_;  // by lane
  std::vector<cudaEvent_t> events_;
  size_t used_events_ = 0;  // of the program that is being launched
};

}  // namespace millrace
