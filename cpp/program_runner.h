// ProgramRunner: one way of running a program over the carriers of a DeviceWorkspace.
//
//   eager     op by op, as recorded: host scalars and the addresses of inputs by value, ops of the
//             host between the others
//   graph     as recorded, captured as a whole, inputs copied to fixed addresses before each
//   replay;
//             a program that preflight refuses runs eagerly, all of it
//   cgct      transformed (program_transform), inputs copied
//   cgct_pi   transformed, inputs read through the argument block
//
// All ways compute the same bits. Per run, on the submit thread: run(), and completed() once it was
// observed complete. An op of the host makes run() wait. Memory is allocated by the constructor
// alone; construct all runners of a device before the first run of any, since a graph ends when
// memory of its device changes.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "captured_program.h"
#include "device_workspace.h"
#include "program_transform.h"

namespace millrace {

enum class Way { kEager, kGraph, kTransformed, kTransformedIndirect };
constexpr Way kAllWays[] = {Way::kEager, Way::kGraph, Way::kTransformed, Way::kTransformedIndirect};
const char* to_string(Way way);  // "eager", "graph", "cgct", "cgct_pi"

class ProgramRunner {
 public:
  // `device` was built for `program` and the carriers of its workspace, which the host has
  // allocated if ops of the program run there.
  ProgramRunner(Backend& backend, Stream& stream, DeviceWorkspace& device, const Program& program,
                Way way);
  ~ProgramRunner();
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  // Enqueues one run, its argument block included.
  void run(const Arguments& arguments, const HostInputs& inputs);
  void completed();
  // Waits for the stream and destroys the graphs; the runner ends here.
  void release();

  Way way() const { return way_; }
  // Whether what there is to capture is captured; false before the warm runs and for eager ways.
  bool has_graphs() const;
  // Why the program, or all of it, is not captured; empty: it is.
  const std::string& obstacle() const { return obstacle_; }
  // Of one run: between host and device, and inputs to their fixed addresses.
  uint64_t copied_bytes_per_run() const { return copied_bytes_; }
  // Device memory that inputs are copied to.
  uint64_t input_bytes() const;
  // Ops of a run that replays execute, of all.
  double coverage() const;
  // {way, obstacle, coverage, copied_bytes_per_run, input_bytes, graphs: {name: …}, transform?}
  nlohmann::json describe() const;

 private:
  // Neighbouring ops that are submitted together, or one op of the host.
  struct Piece {
    Program program;
    bool is_on_host;
    std::unique_ptr<CapturedProgram> graph;  // null: eager
  };

  void cut(const Program& program);
  void capture_all(Backend& backend, Stream& stream);
  void make_room_for_inputs(Backend& backend, const InputCounts& takes);
  void copy_inputs(const HostInputs& inputs);
  void copy_before(const HostInputs& inputs);
  void run_on_host(const Program& op, const Arguments& arguments, const HostInputs& inputs);

  Stream& stream_;
  DeviceWorkspace& device_;
  const Way way_;
  const size_t ops_;
  const InputCounts takes_;
  DeviceWorkspace::InputAccess access_ = DeviceWorkspace::InputAccess::kByValue;
  std::string obstacle_;
  std::vector<CopyInOp> copies_before_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<std::unique_ptr<Memory>> input_copies_;  // by number
  HostInputs fixed_inputs_;                            // what graphs are captured with
  nlohmann::json transform_;
  uint64_t copied_bytes_ = 0;
};

}  // namespace millrace
