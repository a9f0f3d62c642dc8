#include "backend_plugin.h"

#include <dlfcn.h>

#include <filesystem>

namespace millrace {

namespace {

#if defined(__APPLE__)
constexpr const char* kLibraryEnd = ".dylib";
#else
constexpr const char* kLibraryEnd = ".so";
#endif

std::string loader_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "the loader gives no reason";
}

}  // namespace

std::string own_folder() {
  Dl_info info{};
  MR_CHECK(dladdr(reinterpret_cast<void*>(&own_folder), &info) != 0 && info.dli_fname != nullptr,
           "the loader does not know the file of this code");
  return std::filesystem::absolute(info.dli_fname).parent_path().string();
}

BackendPlugin ask_backend_entry(BackendEntry* entry) {
  char text[256] = "";
  const BackendApi* api = entry(text, sizeof(text));
  if (api != nullptr && api->api_version != kBackendApiVersion) {
    return {nullptr, "the plug-in speaks interface " + std::to_string(api->api_version) +
                         ", this library speaks " + std::to_string(kBackendApiVersion)};
  }
  return {api, text};
}

BackendPlugin open_backend_plugin(const std::string& name, const std::string& folder) {
  const std::filesystem::path file =
      std::filesystem::path(folder) / ("libmillrace_" + name + kLibraryEnd);
  if (!std::filesystem::exists(file)) return {nullptr, "not built: there is no " + file.string()};
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, loader_error()};
  void* entry = dlsym(library, kBackendEntryName);
  if (entry == nullptr) return {nullptr, loader_error()};
  return ask_backend_entry(reinterpret_cast<BackendEntry*>(entry));
}

}  // namespace millrace
