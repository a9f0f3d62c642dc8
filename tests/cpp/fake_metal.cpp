#include "fake_metal.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "backend_plugin.h"

namespace millrace {

namespace {

constexpr const char* kName = "metal_fake";

std::string library_path() { return own_folder() + "/libmillrace_" + kName + ".so"; }

struct Plugin {
  BackendApi api;
  metal_shim::FakeMetal* device;
};

Plugin open_plugin() {
  const BackendPlugin plugin = open_backend_plugin(kName, own_folder());
  if (plugin.api == nullptr) throw Failure(Code::kUnavailable, plugin.text);
  void* const library = dlopen(library_path().c_str(), RTLD_NOW);
  void* const entry = dlsym(library, metal_shim::kFakeMetalEntryName);
  Plugin opened = {*plugin.api, reinterpret_cast<metal_shim::FakeMetalEntry*>(entry)()};
  opened.api.name = kFakeMetal;
  return opened;
}

bool is_opened = false;

// With the first test that wants it: tests that do not are not to pay for it.
const Plugin& plugin() {
  static const Plugin opened = open_plugin();
  is_opened = true;
  return opened;
}

// Whatever a test is about: what it left wrong on the device is its failure.
class ViolationListener : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    if (!is_opened) return;
    for (const std::string& text : plugin().device->take_violations()) {
      ADD_FAILURE() << "fake_metal: " << text;
    }
  }
};

const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new ViolationListener);
  return true;
}();

}  // namespace

bool has_fake_metal() { return std::filesystem::exists(library_path()); }
const BackendApi& fake_metal() { return plugin().api; }
metal_shim::FakeMetal& fake_metal_device() { return *plugin().device; }

}  // namespace millrace
