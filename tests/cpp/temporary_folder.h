// A new folder of one test's own, gone with all that it holds when this goes. A fixed name would be
// shared: ctest runs tests side by side, also two of one fixture or one test on two backends.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace millrace {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "millrace_test_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace millrace
