// What the handles of the table (metal_backend.mm) are: an open device, its streams and its events.
// Objective-C++ only.
#pragma once

#import <Metal/Metal.h>

#include <atomic>
#include <memory>

#include "metal_errors.h"
#include "metal_graph.h"
#include "metal_memory.h"
#include "metal_pipelines.h"
#include "metal_queue.h"

namespace millrace {

struct MetalDevice {
  explicit MetalDevice(objc_ref<id<MTLDevice>> with)
      : device(std::move(with)),
        memory(device.get()),
        queue(device.get(), errors, memory, pipelines) {}

  const objc_ref<id<MTLDevice>> device;
  MetalErrors errors;
  MetalMemory memory;
  MetalPipelines pipelines;
  MetalQueue queue;  // last: it waits for work that uses the others
};

// A stream is what captures are made of; work of all streams goes into the one queue.
struct MetalStream {
  struct Capture {
    bool is_valid = true;
    MetalDispatches dispatches;
  };
  MetalDevice& device;
  std::unique_ptr<Capture> capture;
};

struct MetalEvent {
  MetalDevice& device;
  std::shared_ptr<GpuTimes> times;  // null: not timed
  std::atomic<bool> is_recorded{false};
  std::atomic<uint64_t> number{0};  // of the last command buffer before the mark
};

// The system's device; nil and a reason where there is none that these modules can use.
objc_ref<id<MTLDevice>> system_device(std::string* reason);
// "Apple M2, macOS 14.5, 16.0 GiB for the GPU".
std::string describe(id<MTLDevice> device);
int fill_facts(DeviceFacts* facts);

}  // namespace millrace
