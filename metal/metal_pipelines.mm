#include "metal_pipelines.h"

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
  pipelines_.emplace(kernel, std::move(pipeline));
  return 0;
}

id<MTLComputePipelineState> MetalPipelines::find(const char* kernel) const {
  const auto found = pipelines_.find(kernel);
  return found == pipelines_.end() ? nil : found->second.get();
}

}  // namespace millrace
