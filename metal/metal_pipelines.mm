#include "metal_pipelines.h"

#include "metal_args.h"
#include "metal_source.h"

namespace millrace {

namespace {

std::string text_of(NSError* error) {
  return error == nil ? "no reason was given" : [[error localizedDescription] UTF8String];
}

}  // namespace

int MetalPipelines::build(id<MTLDevice> device, MetalErrors& errors) {
  const auto options = objc_ref<MTLCompileOptions*>::adopt([[MTLCompileOptions alloc] init]);
  options.get().fastMathEnabled = NO;
  options.get().languageVersion = MTLLanguageVersion3_1;
  NSError* error = nil;
  const auto library = objc_ref<id<MTLLibrary>>::adopt([device
      newLibraryWithSource:[NSString stringWithUTF8String:metal_source(kMetalFiles).c_str()]
                   options:options.get()
                     error:&error]);
  if (!library) {
    return errors.keep("newLibraryWithSource", MR_SITE, kMetalCompile, text_of(error));
  }
  for (NSString* name in [library.get() functionNames]) {
    if (const int code = add(device, library.get(), name, errors)) return code;
  }
  return 0;
}

int MetalPipelines::add(id<MTLDevice> device, id<MTLLibrary> library, NSString* name,
                        MetalErrors& errors) {
  const auto function = objc_ref<id<MTLFunction>>::adopt([library newFunctionWithName:name]);
  const auto descriptor =
      objc_ref<MTLComputePipelineDescriptor*>::adopt([[MTLComputePipelineDescriptor alloc] init]);
  descriptor.get().computeFunction = function.get();
  descriptor.get().supportIndirectCommandBuffers = YES;
  NSError* error = nil;
  PipelineRef pipeline =
      PipelineRef::adopt([device newComputePipelineStateWithDescriptor:descriptor.get()
                                                               options:MTLPipelineOptionNone
                                                            reflection:nil
                                                                 error:&error]);
  const std::string kernel = [name UTF8String];
  if (!pipeline) {
    return errors.keep("newComputePipelineState", MR_SITE, kMetalCompile,
                       kernel + ": " + text_of(error));
  }
  if ([pipeline.get() threadExecutionWidth] != kSimdWidth) {
    return errors.keep("threadExecutionWidth", MR_SITE, kMetalCompile,
                       kernel + ": simdgroups are not of 32 threads, as the kernels are");
  }
  pipelines_.emplace(kernel, std::move(pipeline));
  return 0;
}

id<MTLComputePipelineState> MetalPipelines::of(const MetalDispatch& dispatch, const char* operation,
                                               MetalErrors& errors) const {
  const auto found = pipelines_.find(dispatch.kernel);
  if (found == pipelines_.end()) {
    errors.keep(operation, MR_SITE, kMetalProgram,
                std::string("there is no kernel ") + dispatch.kernel);
    return nil;
  }
  id<MTLComputePipelineState> pipeline = found->second.get();
  const uint64_t most = [pipeline maxTotalThreadsPerThreadgroup];
  if (dispatch.threads <= most) return pipeline;
  errors.keep(operation, MR_SITE, kMetalProgram,
              found->first + ": threadgroups of " + std::to_string(dispatch.threads) +
                  " threads, this device takes " + std::to_string(most));
  return nil;
}

}  // namespace millrace
