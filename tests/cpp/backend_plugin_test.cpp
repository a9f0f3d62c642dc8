// Tests for cpp/backend_plugin.cpp.
#include "backend_plugin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace millrace {
namespace {

class BackendPluginFolder : public testing::Test {
 protected:
  std::string reason() const {
    const BackendPlugin plugin = open_backend_plugin("test", folder_.path());
    EXPECT_EQ(plugin.api, nullptr);
    return plugin.text;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "libmillrace_test.so";
};

TEST_F(BackendPluginFolder, AMissingFileIsNotBuiltNamingTheFile) {
  EXPECT_EQ(reason(), "not built: there is no " + file_);
}

TEST_F(BackendPluginFolder, AFileThatIsNoLibraryGivesTheLoadersReason) {
  std::ofstream(file_)
      << "this is no library, but it is longer than the header of one is, which is "
         "sixty-four bytes";
  EXPECT_NE(reason().find("invalid ELF header"), std::string::npos) << reason();
}

TEST_F(BackendPluginFolder, ALibraryWithoutTheEntryIsRefused) {
  Dl_info info{};  // the C library, wherever this system keeps it
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "qsort"), &info), 0);
  std::filesystem::create_symlink(info.dli_fname, file_);
  EXPECT_NE(reason().find(kBackendEntryName), std::string::npos) << reason();
}

const BackendApi* answer_with_reason(char* text, uint64_t text_bytes) {
  std::snprintf(text, text_bytes, "the driver is asleep");
  return nullptr;
}

const BackendApi* answer_of_another_version(char*, uint64_t) {
  static BackendApi other = backend_cpu();
  other.api_version = kBackendApiVersion + 1;
  return &other;
}

const BackendApi* answer_with_device(char* text, uint64_t text_bytes) {
  std::snprintf(text, text_bytes, "a fine device");
  return &backend_cpu();
}

TEST(BackendPlugin, TheEntrysAnswerIsPassedOn) {
  const BackendPlugin none = ask_backend_entry(answer_with_reason);
  EXPECT_EQ(none.api, nullptr);
  EXPECT_EQ(none.text, "the driver is asleep");
  const BackendPlugin device = ask_backend_entry(answer_with_device);
  EXPECT_EQ(device.api, &backend_cpu());
  EXPECT_EQ(device.text, "a fine device");
}

TEST(BackendPlugin, ATableOfAnotherVersionIsRefused) {
  const BackendPlugin other = ask_backend_entry(answer_of_another_version);
  EXPECT_EQ(other.api, nullptr);
  EXPECT_EQ(other.text, "the plug-in speaks interface " + std::to_string(kBackendApiVersion + 1) +
                            ", this library speaks " + std::to_string(kBackendApiVersion));
}

TEST(BackendPlugin, OwnFolderHoldsThisProgram) {
  EXPECT_TRUE(std::filesystem::equivalent(
      own_folder(), std::filesystem::read_symlink("/proc/self/exe").parent_path()));
}

}  // namespace
}  // namespace millrace
