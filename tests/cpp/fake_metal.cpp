#include "fake_metal.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "backend_plugin.h"

namespace millrace {

namespace {

struct Plugin {
  BackendApi api = {};
  metal_shim::FakeMetal* device = nullptr;  // null: there is none
  std::string reason;
};

Plugin open_plugin() {
  Plugin opened;
  const std::string folder = own_folder();
  const BackendPlugin plugin = open_backend_plugin("metal_fake", folder);
  if (plugin.api == nullptr) {
    opened.reason = plugin.text;
    return opened;
  }
  void* const library = dlopen((folder + "/libmillrace_metal_fake.so").c_str(), RTLD_NOW);
  void* const entry = dlsym(library, metal_shim::kFakeMetalEntryName);
  opened.api = *plugin.api;
  opened.api.name = kFakeMetal;
  opened.device = reinterpret_cast<metal_shim::FakeMetalEntry*>(entry)();
  return opened;
}

const Plugin& plugin() {
  static const Plugin opened = open_plugin();
  return opened;
}

const Plugin& plugin_or_throw() {
  if (!has_fake_metal()) throw Failure(Code::kUnavailable, plugin().reason);
  return plugin();
}

// Whatever a test is about: what it left wrong on the device is its failure.
class ViolationListener : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    if (!has_fake_metal()) return;
    for (const std::string& text : fake_metal_device().take_violations()) {
      ADD_FAILURE() << "fake_metal: " << text;
    }
  }
};

const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new ViolationListener);
  return true;
}();

}  // namespace

bool has_fake_metal() { return plugin().device != nullptr; }
const BackendApi& fake_metal() { return plugin_or_throw().api; }
metal_shim::FakeMetal& fake_metal_device() { return *plugin_or_throw().device; }

}  // namespace millrace
