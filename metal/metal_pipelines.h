// Every kernel of the library as a compute pipeline: compiled from the embedded text when the
// device is opened, so before a run, and only read from then on. Fast mathematics is off: the
// update step has the bits of the CPU's. Objective-C++ only.
#pragma once

#import <Metal/Metal.h>

#include <functional>
#include <map>
#include <string>

#include "metal_dispatch.h"
#include "metal_errors.h"
#include "objc_ref.h"

namespace millrace {

class MetalPipelines {
 public:
  // 0, or the code of what was kept in `errors`.
  int build(id<MTLDevice> device, MetalErrors& errors);
  // Nil, and why in `errors`, for a name that no kernel has or more threads than it can have here.
  id<MTLComputePipelineState> of(const MetalDispatch& dispatch, const char* operation,
                                 MetalErrors& errors) const;

 private:
  using PipelineRef = objc_ref<id<MTLComputePipelineState>>;
  int add(id<MTLDevice> device, id<MTLLibrary> library, NSString* name, MetalErrors& errors);

  std::map<std::string, PipelineRef, std::less<>> pipelines_;
};

}  // namespace millrace
