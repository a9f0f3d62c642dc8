// The part of Apple's Metal that metal/ uses, spelled from Apple's documentation, so that clang
// checks those modules on Linux and the fake device (tests/shim/fake_metal_*.mm) can be what they
// talk to. It proves spelling and arity; whether a Mac has what is declared here, and whether it
// does what is said, only a Mac can tell.
#pragma once

#import <Foundation/Foundation.h>

// Of Foundation; GNUstep's has it not.
typedef struct {
  NSInteger majorVersion, minorVersion, patchVersion;
} NSOperatingSystemVersion;

@interface NSProcessInfo (OperatingSystemVersion)
- (NSOperatingSystemVersion)operatingSystemVersion;
@end

@protocol MTLBuffer;
@protocol MTLCommandBuffer;
@protocol MTLCommandEncoder;
@protocol MTLCommandQueue;
@protocol MTLComputeCommandEncoder;
@protocol MTLComputePipelineState;
@protocol MTLDevice;
@protocol MTLFunction;
@protocol MTLIndirectCommandBuffer;
@protocol MTLIndirectComputeCommand;
@protocol MTLLibrary;
@protocol MTLResource;

typedef struct {
  NSUInteger width, height, depth;
} MTLSize;

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  MTLSize size = {width, height, depth};
  return size;
}

typedef NSUInteger MTLResourceOptions;
enum : NSUInteger {
  MTLResourceStorageModeShared = 0 << 4,
  MTLResourceHazardTrackingModeTracked = 2 << 8,
};

typedef NSUInteger MTLResourceUsage;
enum : NSUInteger { MTLResourceUsageRead = 1 << 0, MTLResourceUsageWrite = 1 << 1 };

typedef NSInteger MTLGPUFamily;
enum : NSInteger { MTLGPUFamilyApple7 = 1007, MTLGPUFamilyMetal3 = 5001 };

typedef NSUInteger MTLLanguageVersion;
enum : NSUInteger { MTLLanguageVersion3_1 = (3 << 16) + 1 };

typedef NSUInteger MTLPipelineOption;
enum : NSUInteger { MTLPipelineOptionNone = 0 };

typedef NSUInteger MTLIndirectCommandType;
enum : NSUInteger { MTLIndirectCommandTypeConcurrentDispatch = 1 << 5 };

typedef NSUInteger MTLCommandBufferStatus;
enum : NSUInteger {
  MTLCommandBufferStatusNotEnqueued = 0,
  MTLCommandBufferStatusEnqueued = 1,
  MTLCommandBufferStatusCommitted = 2,
  MTLCommandBufferStatusScheduled = 3,
  MTLCommandBufferStatusCompleted = 4,
  MTLCommandBufferStatusError = 5,
};

extern NSString* const MTLCommandBufferErrorDomain;
enum : NSInteger {
  MTLCommandBufferErrorInternal = 1,
  MTLCommandBufferErrorTimeout = 2,
  MTLCommandBufferErrorPageFault = 3,
  MTLCommandBufferErrorOutOfMemory = 8,
};

typedef double CFTimeInterval;
typedef void (^MTLCommandBufferHandler)(id<MTLCommandBuffer> commandBuffer);

@protocol MTLResource <NSObject>
- (id<MTLDevice>)device;
- (NSUInteger)allocatedSize;
@end

@protocol MTLBuffer <MTLResource>
- (NSUInteger)length;
- (void*)contents;
- (uint64_t)gpuAddress;
@end

@protocol MTLFunction <NSObject>
- (NSString*)name;
@end

@protocol MTLLibrary <NSObject>
- (NSArray*)functionNames;
- (id<MTLFunction>)newFunctionWithName:(NSString*)functionName;
@end

@protocol MTLComputePipelineState <NSObject>
- (NSUInteger)maxTotalThreadsPerThreadgroup;
- (NSUInteger)threadExecutionWidth;
- (BOOL)supportIndirectCommandBuffers;
@end

@interface MTLCompileOptions : NSObject {
  BOOL _fastMathEnabled;
  MTLLanguageVersion _languageVersion;
}
@property(nonatomic) BOOL fastMathEnabled;
@property(nonatomic) MTLLanguageVersion languageVersion;
@end

@interface MTLComputePipelineDescriptor : NSObject {
  id<MTLFunction> _computeFunction;
  BOOL _supportIndirectCommandBuffers;
}
@property(nonatomic, retain) id<MTLFunction> computeFunction;
@property(nonatomic) BOOL supportIndirectCommandBuffers;
@end

@interface MTLIndirectCommandBufferDescriptor : NSObject {
  MTLIndirectCommandType _commandTypes;
  BOOL _inheritPipelineState, _inheritBuffers;
  NSUInteger _maxKernelBufferBindCount, _maxKernelThreadgroupMemoryBindCount;
}
@property(nonatomic) MTLIndirectCommandType commandTypes;
@property(nonatomic) BOOL inheritPipelineState;
@property(nonatomic) BOOL inheritBuffers;
@property(nonatomic) NSUInteger maxKernelBufferBindCount;
@property(nonatomic) NSUInteger maxKernelThreadgroupMemoryBindCount;
@end

@protocol MTLIndirectComputeCommand <NSObject>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)pipelineState;
- (void)setKernelBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)concurrentDispatchThreadgroups:(MTLSize)threadgroupsPerGrid
                 threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)setBarrier;
@end

@protocol MTLIndirectCommandBuffer <MTLResource>
- (NSUInteger)size;
- (id<MTLIndirectComputeCommand>)indirectComputeCommandAtIndex:(NSUInteger)commandIndex;
@end

@protocol MTLCommandEncoder <NSObject>
- (void)endEncoding;
@end

@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)useResources:(const id<MTLResource>[])resources
               count:(NSUInteger)count
               usage:(MTLResourceUsage)usage;
- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer>)indirectCommandBuffer
                      withRange:(NSRange)executionRange;
@end

@protocol MTLCommandBuffer <NSObject>
- (id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (void)addCompletedHandler:(MTLCommandBufferHandler)block;
- (void)commit;
- (MTLCommandBufferStatus)status;
- (NSError*)error;
- (CFTimeInterval)GPUStartTime;
- (CFTimeInterval)GPUEndTime;
@end

@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
@end

@protocol MTLDevice <NSObject>
- (NSString*)name;
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily;
- (uint64_t)recommendedMaxWorkingSetSize;
- (NSUInteger)currentAllocatedSize;
- (NSUInteger)maxBufferLength;
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError**)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:
                                   (MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(void*)reflection
                                                               error:(NSError**)error;
- (id<MTLIndirectCommandBuffer>)newIndirectCommandBufferWithDescriptor:
                                    (MTLIndirectCommandBufferDescriptor*)descriptor
                                                       maxCommandCount:(NSUInteger)maxCount
                                                               options:(MTLResourceOptions)options;
@end

extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void);
