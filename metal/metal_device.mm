#include "metal_device.h"

#include <cstdio>

namespace millrace {

namespace {

constexpr int kLanguageVersion = 3010;  // 3.1, in the form of DeviceFacts

std::string system_version() {
  const NSOperatingSystemVersion version = [[NSProcessInfo processInfo] operatingSystemVersion];
  return std::to_string(version.majorVersion) + "." + std::to_string(version.minorVersion);
}

}  // namespace

objc_ref<id<MTLDevice>> system_device(std::string* reason) {
  auto device = objc_ref<id<MTLDevice>>::adopt(MTLCreateSystemDefaultDevice());
  if (!device) {
    *reason = "MTLCreateSystemDefaultDevice: this machine has no Metal device";
    return {};
  }
  if (![device.get() supportsFamily:MTLGPUFamilyMetal3]) {
    *reason = std::string([[device.get() name] UTF8String]) +
              " is not of the Metal 3 family, which addresses of buffers need";
    return {};
  }
  return device;
}

std::string describe(id<MTLDevice> device) {
  char text[160];
  std::snprintf(text, sizeof(text), "%s, macOS %s, %.1f GiB for the GPU",
                [[device name] UTF8String], system_version().c_str(),
                static_cast<double>([device recommendedMaxWorkingSetSize]) / (1 << 30));
  return text;
}

int fill_facts(DeviceFacts* facts) {
  const NSOperatingSystemVersion version = [[NSProcessInfo processInfo] operatingSystemVersion];
  facts->driver_version = static_cast<int>(1000 * version.majorVersion + 10 * version.minorVersion);
  facts->runtime_version = kLanguageVersion;
  facts->is_profiled = 0;
  facts->is_shared = 0;
  facts->products = "millrace's own kernels";
  return 0;
}

}  // namespace millrace
