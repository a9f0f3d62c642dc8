// DeviceWorkspace: the carriers of a workspace in a backend's memory, and the programs recorded
// over them running there. Owns carriers, argument block and scratch at addresses that never
// change, so that a graph may hold them; nothing is allocated after construction, which any thread
// may do.
//
// Per run, on the submit thread: set_arguments() -> submit() of one or more programs. Only submit()
// goes into a graph: whatever varies is read from the argument block, so a replay is the run that
// the block says. Behind Arguments the block holds what the programs take of the host's scalars and
// the addresses of the inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend.h"
#include "program_launch.h"

namespace millrace {

class DeviceWorkspace {
 public:
  // `host` names the carriers; `programs` are all that will be submitted. Carriers start zeroed.
  // Throws kUnavailable for a precision that the backend does not have.
  DeviceWorkspace(Backend& backend, Stream& stream, const Workspace& host,
                  const std::vector<const Program*>& programs, Precision precision,
                  Products products = Products::kLibrary, Order order = Order::kSideBySide);

  // What an instance will allocate on the device, without allocating it.
  static uint64_t bytes_needed(const BackendApi& api, const Workspace& host,
                               const std::vector<const Program*>& programs, Precision precision);

  // Carriers that the host has allocated, all or the operand's alone, or so many elements of it,
  // which no product reads; each waits until the copies are complete, and with them everything
  // before.
  void upload();
  void upload(Operand operand);
  void upload(Operand operand, uint64_t floats);
  void download();
  void download(Operand operand);
  // State, to other memory of the backend.
  void copy_to(float* memory, Operand from, uint64_t floats);

  // Enqueues the block's copy; waits while the last but one is in flight. `rows` of the arguments
  // lie in memory of the backend.
  // Throws kBug for fewer inputs than the programs take.
  void set_arguments(const Arguments& arguments, const HostInputs& inputs = {});
  void submit(const Program& program);
  // The same with what the host brings to this run. Kernels take inputs from the block if asked to,
  // else at the addresses that `inputs` has now. Throws kBug for a program with ops on the host.
  enum class InputAccess { kByValue, kThroughBlock };
  void submit(const Program& program, const HostInputs& inputs, InputAccess access);

  // In memory of the backend.
  float* floats(Operand operand) const {
    return static_cast<float*>(addresses_[static_cast<size_t>(operand.carrier)]) + operand.offset;
  }
  Precision precision() const { return precision_; }
  uint64_t bytes() const { return memory_.bytes() + block_.bytes(); }
  uint64_t block_bytes() const { return block_.bytes(); }
  // Between host and device since construction, argument blocks included.
  uint64_t copied_bytes() const { return copied_bytes_; }
  const Workspace& host() const { return host_; }

  // What is kept from one run to the next, the copies that products read included; and its bytes,
  // all of it, of an instance for that precision.
  struct Span {
    void* address;
    uint64_t bytes;
  };
  std::vector<Span> state() const;
  static uint64_t state_bytes(const Workspace& host, Precision precision);

 private:
  bool is_bf16(size_t carrier) const;
  void copy(CopyDirection direction, size_t carrier);
  void upload_as_bf16(size_t carrier, void* to);
  void download_bf16(size_t carrier);
  void copy_all(CopyDirection direction);
  void settle();

  uint64_t scalars_offset() const;

  Stream& stream_;
  const Workspace& host_;
  const InputCounts takes_;
  const Precision precision_;
  const Products products_;
  const Order order_;
  Memory memory_;  // carriers, then scratch
  std::vector<void*> addresses_;
  std::vector<void*> product_copies_;
  void* scratch_;
  Memory block_;
  Memory staging_;  // pinned, two blocks
  std::unique_ptr<Event> staged_[2];
  int next_block_ = 0;
  uint64_t copied_bytes_ = 0;
  Event settled_;
};

}  // namespace millrace
