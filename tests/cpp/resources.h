// Where the robot models are: beside the test binary in a packaged folder, else in the source tree.
#pragma once

#include <filesystem>
#include <string>

namespace millrace {

inline const std::string& resources() {
  static const std::string folder = [] {
    namespace fs = std::filesystem;
    const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "resources";
    return fs::is_directory(beside) ? beside.string() : std::string(MILLRACE_RESOURCES);
  }();
  return folder;
}

}  // namespace millrace
