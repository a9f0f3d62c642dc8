// The Metal backend on its fake device (tests/shim/fake_metal_control.h), as a backend named
// "fake_metal": the modules of metal/ as a plug-in beside the tests. Where that was not built there
// is none, and nothing runs on it. A test that leaves a violation of the device's rules fails
// (fake_metal.cpp).
#pragma once

#include "backend.h"
#include "fake_metal_control.h"

namespace millrace {

constexpr const char* kFakeMetal = "fake_metal";

bool has_fake_metal();
// Both throw kUnavailable where it was not built.
const BackendApi& fake_metal();
metal_shim::FakeMetal& fake_metal_device();

}  // namespace millrace
