// Tests for tests/shim/metal_kernels.cpp.
#include "metal_kernels.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace metal_shim {
namespace {

std::set<std::string> kernels_in_sources() {
  std::set<std::string> names;
  const std::string folder = MILLRACE_METAL;
  DIR* const files = opendir(folder.c_str());
  while (const dirent* file = files ? readdir(files) : nullptr) {
    const std::string name = file->d_name;
    if (name.size() < 6 || name.compare(name.size() - 6, 6, ".metal") != 0) continue;
    std::ifstream in(folder + "/" + name);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const std::regex pattern("\nkernel void (\\w+)\\(");
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
      EXPECT_TRUE(names.insert((*at)[1]).second) << (*at)[1] << " twice";
    }
  }
  if (files) closedir(files);
  return names;
}

TEST(MetalKernels, AreAllInTheShim) {
  std::set<std::string> names;
  for (const Kernel& one : kernels()) EXPECT_TRUE(names.insert(one.name).second) << one.name;
  EXPECT_EQ(names, kernels_in_sources());
}

}  // namespace
}  // namespace metal_shim
