#include "gallery_runner.h"

#include <algorithm>

#include "digest.h"

namespace millrace {

namespace {

constexpr uint64_t kSeed = 20;
constexpr int kWarmRuns = 3;  // two eager ones, a capture and its replay

// Uniform in [-1, 1), four from each block of the generator.
void fill(float* values, uint64_t count, u32 environment) {
  const RandomSource source = random_source(kSeed, kStreamEvent, environment, 0);
  for (uint64_t i = 0; i < count; i += 4) {
    const Philox4 block = random_block(source, static_cast<u32>(i / 4));
    for (uint64_t k = 0; k < 4 && i + k < count; ++k) {
      values[i + k] = 2.0f * unit_float(block.word[k]) - 1.0f;
    }
  }
}

}  // namespace

InputPool::InputPool(Backend& backend, Stream& stream, const InputCounts& takes,
                     uint64_t buffer_floats)
    : takes_(takes) {
  uint64_t largest = 0;
  for (const uint64_t floats : takes.input_floats) largest = std::max(largest, floats);
  Event passed(backend);
  std::vector<float> values(largest);
  for (size_t i = 0; takes.inputs() > 0 && i < takes.inputs() + 1; ++i) {
    inputs_.push_back(
        std::make_unique<Memory>(backend, Memory::Kind::kDevice, largest * sizeof(float)));
    fill(values.data(), largest, static_cast<u32>(i));
    stream.copy(CopyDirection::kHostToDevice, inputs_.back()->floats(), values.data(),
                inputs_.back()->bytes());
    stream.record(passed);
    passed.wait();
  }
  for (size_t i = 0; takes.buffers > 0 && i < takes.buffers + 1; ++i) {
    buffers_.emplace_back(buffer_floats);
    fill(buffers_.back().data(), buffer_floats, static_cast<u32>(1000 + i));
  }
}

HostInputs InputPool::of_run(uint64_t run) const {
  HostInputs inputs;
  for (size_t i = 0; i < takes_.scalars; ++i) {
    inputs.scalars.push_back(0.5f + 0.001f * static_cast<float>((run + i) % 97));
  }
  for (size_t i = 0; i < takes_.inputs(); ++i) {
    inputs.inputs.push_back(inputs_[(i + run) % inputs_.size()]->floats());
  }
  for (size_t i = 0; i < takes_.buffers; ++i) {
    inputs.buffers.push_back(buffers_[(i + run) % buffers_.size()].data());
  }
  return inputs;
}

namespace {

uint64_t largest_buffer(const Program& program) {
  uint64_t floats = 0;
  for (const Program::Record& record : program.records()) {
    const auto* copy = std::get_if<CopyInOp>(&record.op);
    if (copy != nullptr) floats = std::max(floats, copy->count);
  }
  return floats;
}

}  // namespace

GalleryRunner::GalleryRunner(Backend& backend, Stream& stream, GalleryProgram& program,
                             const std::vector<Way>& ways)
    : backend_(backend),
      stream_(stream),
      program_(program),
      inputs_(backend, stream, program.program.takes(), largest_buffer(program.program)),
      settled_(backend) {
  Workspace& workspace = program.workspace;
  workspace.allocate();
  const std::vector<Workspace::Carrier>& carriers = workspace.carriers();
  for (size_t i = 0; i < carriers.size(); ++i) {
    fill(workspace.floats({static_cast<int>(i), 0}), carriers[i].count, static_cast<u32>(2000 + i));
  }
  device_ = std::make_unique<DeviceWorkspace>(backend, stream, workspace,
                                              std::vector<const Program*>{&program.program},
                                              Precision::kFp32, Products::kOwnKernel);
  start_ = std::make_unique<WorkspaceSnapshot>(backend, stream, *device_);
  device_->upload();
  start_->save();
  wait();
  for (const Way way : ways) {
    Prepared& prepared = runners_[way];
    const uint64_t begin_ns = steady_clock_ns();
    prepared.runner =
        std::make_unique<ProgramRunner>(backend, stream, *device_, program.program, way);
    prepared.setup_ms = static_cast<double>(steady_clock_ns() - begin_ns) * 1e-6;
  }
}

void GalleryRunner::prepare() {
  for (auto& [way, prepared] : runners_) {
    const uint64_t before = backend_.memory_census().device_used_bytes;
    const uint64_t begin_ns = steady_clock_ns();
    for (int i = 0; i < kWarmRuns; ++i) run(way);
    wait();
    prepared.setup_ms += static_cast<double>(steady_clock_ns() - begin_ns) * 1e-6;
    const uint64_t after = backend_.memory_census().device_used_bytes;
    prepared.graph_bytes = after > before ? after - before : 0;
  }
}

void GalleryRunner::run(Way way) {
  Arguments arguments{};
  arguments.seed = kSeed;
  arguments.tick = run_;
  runner(way).run(arguments, inputs_.of_run(run_));
  ++run_;
}

void GalleryRunner::wait() {
  stream_.record(settled_);
  settled_.wait();
  for (auto& each : runners_) each.second.runner->completed();
}

uint64_t GalleryRunner::digest_after(Way way, uint64_t runs) {
  run_ = 0;
  start_->restore();
  for (uint64_t i = 0; i < runs; ++i) run(way);
  device_->download();
  wait();
  uint64_t digest = digest_of("");
  const std::vector<Workspace::Carrier>& carriers = program_.workspace.carriers();
  for (size_t i = 0; i < carriers.size(); ++i) {
    const auto* bytes = static_cast<const char*>(program_.workspace.addresses()[i]);
    digest = digest_of(std::string(bytes, carriers[i].count * bytes_of(carriers[i].dtype)), digest);
  }
  return digest;
}

Selection GalleryRunner::select_way(const ProfileLimits& limits) {
  std::vector<ProfiledWay> ways;
  for (const auto& [way, prepared] : runners_) {  // eager first
    // A way that runs eagerly for a reason is no other way.
    if (way != Way::kEager && !prepared.runner->has_graphs()) continue;
    ways.push_back({to_string(way), [this, way = way] { run(way); }, [this] { wait(); }});
  }
  const Profile found = profile(ways, limits, steady_clock_ns);
  start_->restore();
  wait();
  Selection selection = select(found.times, 0);
  selection.profile_ms = found.took_ms;
  return selection;
}

}  // namespace millrace
