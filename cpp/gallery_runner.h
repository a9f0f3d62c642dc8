// GalleryRunner: a gallery program on a backend, runnable in every way, with random data and inputs
// that lie elsewhere in every run.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gallery.h"
#include "profile.h"
#include "program_runner.h"
#include "workspace_snapshot.h"

namespace millrace {

// What the host brings to each run: inputs and buffers in turns from pools of one more than the
// program takes, filled once with random numbers, and host scalars that count up.
class InputPool {
 public:
  InputPool(Backend& backend, Stream& stream, const InputCounts& takes, uint64_t buffer_floats);
  HostInputs of_run(uint64_t run) const;

 private:
  const InputCounts takes_;
  std::vector<std::unique_ptr<Memory>> inputs_;
  std::vector<std::vector<float>> buffers_;
};

class GalleryRunner {
 public:
  GalleryRunner(Backend& backend, Stream& stream, GalleryProgram& program,
                const std::vector<Way>& ways);

  // Warm runs and captures. Not before all runners of the backend are constructed: a graph ends
  // when memory changes.
  void prepare();
  // One run, numbered by itself: its inputs, host scalars and random numbers differ from the last.
  void run(Way way);
  void wait();
  // Digest of every carrier after so many runs from the same start.
  uint64_t digest_after(Way way, uint64_t runs);

  // By measuring; the carriers are as at the start afterwards.
  Selection select_way(const ProfileLimits& limits);

  const std::string& name() const { return program_.program.name(); }
  ProgramRunner& runner(Way way) { return *runners_.at(way).runner; }
  double setup_ms(Way way) const { return runners_.at(way).setup_ms; }
  uint64_t graph_bytes(Way way) const { return runners_.at(way).graph_bytes; }

 private:
  struct Prepared {
    std::unique_ptr<ProgramRunner> runner;
    double setup_ms = 0;       // construction, warm runs and captures
    uint64_t graph_bytes = 0;  // that the device has less since the warm runs
  };
  Backend& backend_;
  Stream& stream_;
  GalleryProgram& program_;
  InputPool inputs_;
  std::unique_ptr<DeviceWorkspace> device_;
  std::unique_ptr<WorkspaceSnapshot> start_;
  std::map<Way, Prepared> runners_;
  Event settled_;
  uint64_t run_ = 0;
};

}  // namespace millrace
