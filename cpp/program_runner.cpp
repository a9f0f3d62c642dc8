#include "program_runner.h"

#include <set>

#include "graph_preflight.h"
#include "op_facts.h"
#include "program_cpu.h"

namespace millrace {

namespace {

std::string first_finding(const Program& program, Backend& backend, InputUse inputs) {
  return first_reason(check_graph(facts_of(program, backend.name(), inputs),
                                  graph_backend_of(backend), GraphPolicy::kAuto));
}

LaunchInputs on_host(const HostInputs& inputs) {
  return {inputs.scalars.data(), inputs.inputs.data(), inputs.buffers.data(), inputs.scalars.data(),
          inputs.inputs.data()};
}

}  // namespace

const char* to_string(Way way) {
  static constexpr const char* kNames[] = {"eager", "graph", "cgct", "cgct_pi"};
  return kNames[static_cast<int>(way)];
}

ProgramRunner::ProgramRunner(Backend& backend, Stream& stream, DeviceWorkspace& device,
                             const Program& program, Way way)
    : stream_(stream),
      device_(device),
      way_(way),
      ops_(program.records().size()),
      takes_(program.takes()) {
  if (way == Way::kEager) {
    cut(program);
    return;
  }
  const bool is_indirect = way == Way::kTransformedIndirect;
  const InputUse use = is_indirect ? InputUse::kThroughBlock : InputUse::kCopied;
  if (way == Way::kGraph) {
    obstacle_ = first_finding(program, backend, use);
    cut(program);
  } else {
    const TransformedProgram transformed =
        transform(program, is_indirect ? InputRewrite::kThroughBlock : InputRewrite::kNone);
    transform_ = transformed.describe();
    copies_before_ = transformed.copies_before;
    for (const TransformedProgram::Segment& segment : transformed.segments) {
      if (segment.is_captured && obstacle_.empty()) {
        obstacle_ = first_finding(segment.program, backend, use);
      }
      cut(segment.program);
    }
  }
  if (!obstacle_.empty()) return;
  if (is_indirect) {
    access_ = DeviceWorkspace::InputAccess::kThroughBlock;
  } else {
    make_room_for_inputs(backend, program.takes());
  }
  capture_all(backend, stream);
}

// Device work that still uses a graph ends first.
ProgramRunner::~ProgramRunner() {
  try {
    release();
  } catch (const Failure&) {
    // The device has failed: there is no work left to wait for.
  }
}

void ProgramRunner::cut(const Program& program) {
  bool may_join = false;
  for (const Program::Record& record : program.records()) {
    if (record.is_on_host || !may_join) {
      pieces_.push_back(std::make_unique<Piece>(
          Piece{Program(program.name(), program.workspace()), record.is_on_host, nullptr}));
    }
    pieces_.back()->program.append(record);
    may_join = !record.is_on_host;
  }
}

// What stays eager is of the host, or copies from there.
void ProgramRunner::capture_all(Backend& backend, Stream& stream) {
  for (const std::unique_ptr<Piece>& piece : pieces_) {
    if (piece->is_on_host || piece->program.takes().buffers > 0) continue;
    const Program& program = piece->program;
    piece->graph = std::make_unique<CapturedProgram>(
        backend, stream, GraphSpec{program.name(), GraphPolicy::kAuto, ""},
        [this, &program] { device_.submit(program, fixed_inputs_, access_); });
  }
}

void ProgramRunner::make_room_for_inputs(Backend& backend, const InputCounts& takes) {
  for (const uint64_t floats : takes.input_floats) {
    input_copies_.push_back(
        std::make_unique<Memory>(backend, Memory::Kind::kDevice, floats * sizeof(float)));
    fixed_inputs_.inputs.push_back(input_copies_.back()->floats());
  }
}

void ProgramRunner::run(const Arguments& arguments, const HostInputs& inputs) {
  MR_CHECK(inputs.covers(takes_), "a run brings everything that its program takes");
  const uint64_t before = device_.copied_bytes();
  copied_bytes_ = 0;
  device_.set_arguments(arguments, inputs);
  copy_inputs(inputs);
  copy_before(inputs);
  for (const std::unique_ptr<Piece>& piece : pieces_) {
    if (piece->graph != nullptr) {
      piece->graph->run();
    } else if (piece->is_on_host) {
      run_on_host(piece->program, arguments, inputs);
    } else {
      device_.submit(piece->program, inputs, DeviceWorkspace::InputAccess::kByValue);
      for (const Program::Record& record : piece->program.records()) {
        const auto* copy = std::get_if<CopyInOp>(&record.op);
        if (copy != nullptr) copied_bytes_ += copy->count * sizeof(float);
      }
    }
  }
  copied_bytes_ += device_.copied_bytes() - before;
}

void ProgramRunner::copy_inputs(const HostInputs& inputs) {
  for (size_t i = 0; i < input_copies_.size(); ++i) {
    const Memory& to = *input_copies_[i];
    stream_.copy(CopyDirection::kDeviceToDevice, to.floats(), inputs.inputs[i], to.bytes());
    copied_bytes_ += to.bytes();
  }
}

void ProgramRunner::copy_before(const HostInputs& inputs) {
  for (const CopyInOp& copy : copies_before_) {
    const uint64_t bytes = copy.count * sizeof(float);
    stream_.copy(CopyDirection::kHostToDevice, device_.floats(copy.target),
                 inputs.buffers[static_cast<size_t>(copy.buffer)], bytes);
    copied_bytes_ += bytes;
  }
}

// Over the host's copies of the carriers that it touches.
void ProgramRunner::run_on_host(const Program& op, const Arguments& arguments,
                                const HostInputs& inputs) {
  std::set<int> touched, written;
  for (const Extent& extent : extents_of(op.records().front().op)) {
    touched.insert(extent.operand.carrier);
    if (extent.access != Access::kRead) written.insert(extent.operand.carrier);
  }
  for (const int carrier : touched) device_.download(Operand{carrier, 0});
  run_on_cpu(op, CpuFrame(device_.host(), arguments, on_host(inputs)));
  for (const int carrier : written) device_.upload(Operand{carrier, 0});
}

void ProgramRunner::completed() {
  for (const std::unique_ptr<Piece>& piece : pieces_) {
    if (piece->graph != nullptr) piece->graph->completed();
  }
}

void ProgramRunner::release() {
  for (const std::unique_ptr<Piece>& piece : pieces_) {
    if (piece->graph != nullptr) piece->graph->release();
  }
}

bool ProgramRunner::has_graphs() const {
  bool has_any = false;
  for (const std::unique_ptr<Piece>& piece : pieces_) {
    if (piece->graph == nullptr) continue;
    const GraphState state = piece->graph->state();
    if (state != GraphState::kCaptured && state != GraphState::kReplaying) return false;
    has_any = true;
  }
  return has_any;
}

uint64_t ProgramRunner::input_bytes() const {
  uint64_t total = 0;
  for (const std::unique_ptr<Memory>& memory : input_copies_) total += memory->bytes();
  return total;
}

double ProgramRunner::coverage() const {
  size_t replayed = 0;
  for (const std::unique_ptr<Piece>& piece : pieces_) {
    if (piece->graph == nullptr || piece->graph->replays() == 0) continue;
    if (piece->graph->state() == GraphState::kReplaying) {
      replayed += piece->program.records().size();
    }
  }
  const size_t all = ops_ - copies_before_.size();
  return all == 0 ? 0.0 : static_cast<double>(replayed) / static_cast<double>(all);
}

nlohmann::json ProgramRunner::describe() const {
  nlohmann::json graphs = nlohmann::json::object();
  for (const std::unique_ptr<Piece>& piece : pieces_) {
    if (piece->graph != nullptr) graphs[piece->program.name()] = piece->graph->describe();
  }
  nlohmann::json facts = {{"way", to_string(way_)},       {"obstacle", obstacle_},
                          {"coverage", coverage()},       {"copied_bytes_per_run", copied_bytes_},
                          {"input_bytes", input_bytes()}, {"graphs", std::move(graphs)}};
  if (!transform_.is_null()) facts["transform"] = transform_;
  return facts;
}

}  // namespace millrace
