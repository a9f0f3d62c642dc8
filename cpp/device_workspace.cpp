#include "device_workspace.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "bf16.h"

namespace millrace {

namespace {

constexpr uint64_t kAlignment = 256;      // what devices load best from
constexpr uint64_t kInputAlignment = 16;  // host_inputs.h: kernels load four floats at once

uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

uint64_t bytes_of(const Workspace::Carrier& carrier) {
  return carrier.count * bytes_of(carrier.dtype);
}

bool is_stored_as_bf16(const Workspace::Carrier& carrier, Precision precision) {
  return precision == Precision::kBf16 && carrier.role == Workspace::Carrier::kActivation;
}

uint64_t stored_bytes(const Workspace::Carrier& carrier, Precision precision) {
  return is_stored_as_bf16(carrier, precision) ? carrier.count * sizeof(uint16_t)
                                               : bytes_of(carrier);
}

uint64_t product_copy_bytes(const Workspace::Carrier& carrier, Precision precision) {
  const bool has_copy =
      precision == Precision::kBf16 && carrier.role == Workspace::Carrier::kParameters;
  return has_copy ? carrier.count * sizeof(uint16_t) : 0;
}

uint64_t carrier_bytes(const Workspace& host, Precision precision) {
  uint64_t total = 0;
  for (const Workspace::Carrier& carrier : host.carriers()) {
    total +=
        padded(stored_bytes(carrier, precision)) + padded(product_copy_bytes(carrier, precision));
  }
  return total;
}

uint64_t scratch_bytes(const BackendApi& api, const std::vector<const Program*>& programs) {
  uint64_t most = 0;
  for (const Program* program : programs) most = std::max(most, api.program_scratch_bytes(program));
  return most;
}

uint64_t memory_bytes(const BackendApi& api, const Workspace& host,
                      const std::vector<const Program*>& programs, Precision precision) {
  return carrier_bytes(host, precision) + padded(scratch_bytes(api, programs));
}

InputCounts counts_of(const std::vector<const Program*>& programs) {
  InputCounts all;
  for (const Program* program : programs) all.cover(program->takes());
  return all;
}

// Arguments, addresses of the inputs, scalars.
uint64_t block_bytes(const InputCounts& takes) {
  return sizeof(Arguments) + takes.inputs() * sizeof(float*) + takes.scalars * sizeof(float);
}

Precision supported(const Backend& backend, Precision precision) {
  if ((backend.api().precisions & precision_bit(precision)) == 0) {
    throw Failure(Code::kUnavailable, std::string("the ") + backend.name() +
                                          " backend has no products of precision " +
                                          to_string(precision));
  }
  return precision;
}

}  // namespace

DeviceWorkspace::DeviceWorkspace(Backend& backend, Stream& stream, const Workspace& host,
                                 const std::vector<const Program*>& programs, Precision precision,
                                 Products products, Order order)
    : stream_(stream),
      host_(host),
      takes_(counts_of(programs)),
      precision_(supported(backend, precision)),
      products_(products),
      order_(order),
      memory_(backend, Memory::Kind::kDevice,
              memory_bytes(backend.api(), host, programs, precision)),
      block_(backend, Memory::Kind::kDevice, millrace::block_bytes(takes_)),
      staging_(backend, Memory::Kind::kPinnedHost, 2 * padded(block_.bytes())),
      settled_(backend) {
  Stream setup(backend);  // the caller need not be the submit thread
  for (std::unique_ptr<Event>& event : staged_) {
    event = std::make_unique<Event>(backend);
    setup.record(*event);
    event->wait();
  }
  char* next = reinterpret_cast<char*>(memory_.floats());
  for (const Workspace::Carrier& carrier : host.carriers()) {
    addresses_.push_back(next);
    next += padded(stored_bytes(carrier, precision));
  }
  for (const Workspace::Carrier& carrier : host.carriers()) {
    const uint64_t bytes = padded(product_copy_bytes(carrier, precision));
    product_copies_.push_back(bytes == 0 ? nullptr : next);
    next += bytes;
  }
  scratch_ = next;
}

uint64_t DeviceWorkspace::bytes_needed(const BackendApi& api, const Workspace& host,
                                       const std::vector<const Program*>& programs,
                                       Precision precision) {
  return memory_bytes(api, host, programs, precision) + millrace::block_bytes(counts_of(programs));
}

bool DeviceWorkspace::is_bf16(size_t carrier) const {
  return is_stored_as_bf16(host_.carriers()[carrier], precision_);
}

// Rounds on the host, so it also waits: the rounded numbers live as long as this call.
void DeviceWorkspace::upload_as_bf16(size_t carrier, void* to) {
  const float* values = static_cast<const float*>(host_.addresses().at(carrier));
  std::vector<uint16_t> rounded(host_.carriers()[carrier].count);
  for (size_t i = 0; i < rounded.size(); ++i) rounded[i] = to_bf16(values[i]);
  stream_.copy(CopyDirection::kHostToDevice, to, rounded.data(), rounded.size() * sizeof(uint16_t));
  settle();
}

void DeviceWorkspace::download_bf16(size_t carrier) {
  float* values = static_cast<float*>(host_.addresses().at(carrier));
  std::vector<uint16_t> stored(host_.carriers()[carrier].count);
  stream_.copy(CopyDirection::kDeviceToHost, stored.data(), addresses_[carrier],
               stored.size() * sizeof(uint16_t));
  settle();
  for (size_t i = 0; i < stored.size(); ++i) values[i] = from_bf16(stored[i]);
}

void DeviceWorkspace::copy(CopyDirection direction, size_t carrier) {
  void* device = addresses_[carrier];
  void* host = host_.addresses().at(carrier);
  if (host == nullptr) return;
  const bool is_upload = direction == CopyDirection::kHostToDevice;
  if (is_bf16(carrier)) {
    if (is_upload) {
      upload_as_bf16(carrier, device);
    } else {
      download_bf16(carrier);
    }
    return;
  }
  stream_.copy(direction, is_upload ? device : host, is_upload ? host : device,
               bytes_of(host_.carriers()[carrier]));
  if (is_upload && product_copies_[carrier] != nullptr) {
    upload_as_bf16(carrier, product_copies_[carrier]);
  }
  copied_bytes_ += bytes_of(host_.carriers()[carrier]);
}

void DeviceWorkspace::copy_all(CopyDirection direction) {
  for (size_t carrier = 0; carrier < addresses_.size(); ++carrier) copy(direction, carrier);
  settle();
}

void DeviceWorkspace::settle() {
  stream_.record(settled_);
  settled_.wait();
}

std::vector<DeviceWorkspace::Span> DeviceWorkspace::state() const {
  std::vector<Span> spans;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    const Workspace::Carrier& carrier = host_.carriers()[i];
    if (carrier.is_transient) continue;
    spans.push_back({addresses_[i], bytes_of(carrier)});
    const uint64_t copy_bytes = product_copy_bytes(carrier, precision_);
    if (copy_bytes > 0) spans.push_back({product_copies_[i], copy_bytes});
  }
  return spans;
}

uint64_t DeviceWorkspace::state_bytes(const Workspace& host, Precision precision) {
  uint64_t total = 0;
  for (const Workspace::Carrier& carrier : host.carriers()) {
    if (!carrier.is_transient) total += bytes_of(carrier) + product_copy_bytes(carrier, precision);
  }
  return total;
}

void DeviceWorkspace::upload() { copy_all(CopyDirection::kHostToDevice); }

void DeviceWorkspace::upload(Operand operand) {
  copy(CopyDirection::kHostToDevice, static_cast<size_t>(operand.carrier));
  settle();
}

void DeviceWorkspace::upload(Operand operand, uint64_t floats) {
  stream_.copy(CopyDirection::kHostToDevice, this->floats(operand), host_.floats(operand),
               floats * sizeof(float));
  copied_bytes_ += floats * sizeof(float);
  settle();
}

void DeviceWorkspace::download() { copy_all(CopyDirection::kDeviceToHost); }

void DeviceWorkspace::download(Operand operand) {
  copy(CopyDirection::kDeviceToHost, static_cast<size_t>(operand.carrier));
  settle();
}

void DeviceWorkspace::copy_to(float* memory, Operand from, uint64_t floats) {
  stream_.copy(CopyDirection::kDeviceToDevice, memory, this->floats(from), floats * sizeof(float));
  settle();
}

uint64_t DeviceWorkspace::scalars_offset() const {
  return sizeof(Arguments) + takes_.inputs() * sizeof(float*);
}

void DeviceWorkspace::set_arguments(const Arguments& arguments, const HostInputs& inputs) {
  MR_CHECK(inputs.scalars.size() >= takes_.scalars && inputs.inputs.size() >= takes_.inputs(),
           "a run brings every scalar and input that its programs take");
  for (size_t i = 0; i < takes_.inputs(); ++i) {
    MR_CHECK(reinterpret_cast<uintptr_t>(inputs.inputs[i]) % kInputAlignment == 0,
             "input " + std::to_string(i) + " does not begin at a multiple of " +
                 std::to_string(kInputAlignment) + " bytes");
  }
  Event& free_again = *staged_[next_block_];
  free_again.wait();
  char* block = reinterpret_cast<char*>(staging_.floats()) +
                static_cast<size_t>(next_block_) * padded(block_.bytes());
  std::memcpy(block, &arguments, sizeof(arguments));
  if (takes_.inputs() > 0) {
    std::memcpy(block + sizeof(Arguments), inputs.inputs.data(), takes_.inputs() * sizeof(float*));
  }
  if (takes_.scalars > 0) {
    std::memcpy(block + scalars_offset(), inputs.scalars.data(), takes_.scalars * sizeof(float));
  }
  stream_.copy(CopyDirection::kHostToDevice, block_.floats(), block, block_.bytes());
  copied_bytes_ += block_.bytes();
  stream_.record(free_again);
  next_block_ = 1 - next_block_;
}

void DeviceWorkspace::submit(const Program& program) {
  submit(program, {}, InputAccess::kThroughBlock);
}

void DeviceWorkspace::submit(const Program& program, const HostInputs& inputs, InputAccess access) {
  MR_CHECK(!program.has_host_ops(), "program '" + program.name() + "' has ops on the host");
  const char* block = reinterpret_cast<const char*>(block_.floats());
  ProgramLaunch launch{};
  launch.program = &program;
  launch.carriers = addresses_.data();
  launch.product_copies = product_copies_.data();
  launch.arguments = reinterpret_cast<const Arguments*>(block_.floats());
  launch.scratch = scratch_;
  launch.precision = precision_;
  launch.products = products_;
  launch.order = order_;
  launch.inputs.scalars = inputs.scalars.data();
  launch.inputs.inputs = inputs.inputs.data();
  launch.inputs.buffers = inputs.buffers.data();
  launch.inputs.block_scalars = reinterpret_cast<const float*>(block + scalars_offset());
  if (access == InputAccess::kThroughBlock) {
    launch.inputs.block_inputs = reinterpret_cast<const float* const*>(block + sizeof(Arguments));
  }
  stream_.run(launch);
}

}  // namespace millrace
