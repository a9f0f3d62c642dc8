// Tests for metal/metal_source.cpp.
#include "metal_source.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "metal_kernels.h"

namespace millrace {
namespace {

TEST(MetalSource, EachFileStandsOnceWhereItIsFirstIncluded) {
  const MetalFile files[] = {
      {"a.metal", "#include <metal_stdlib>\n#include \"x.h\"\nA\n"},
      {"b.metal", "#include \"y.h\"\n#include \"x.h\"\nB\n"},
      {"x.h", "#pragma once\n#include \"y.h\"\nX\n"},
      {"y.h", "#pragma once\nY\n"},
      {nullptr, nullptr},
  };
  const std::string off = "#pragma METAL fp contract(off)\n";
  EXPECT_EQ(metal_source(files), off + "#include <metal_stdlib>\nY\nX\nA\n" + off + "B\n");
}

TEST(MetalSource, AnIncludeThatWasNotEmbeddedIsRefused) {
  const MetalFile files[] = {{"a.metal", "#include \"none.h\"\n"}, {nullptr, nullptr}};
  EXPECT_THROW(metal_source(files), std::logic_error);
}

// What the device's compiler gets: it finds no files, and names of kernels are those of one text.
TEST(MetalSource, TheLibraryNeedsNoOtherFileAndHasEveryKernelOnce) {
  const std::string text = metal_source(kMetalFiles);
  EXPECT_EQ(text.find("#include \""), std::string::npos);
  EXPECT_EQ(text.find("#pragma once"), std::string::npos);
  size_t kernels_in_text = 0;
  for (size_t at = 0; (at = text.find("kernel void ", at)) != std::string::npos; ++at) {
    ++kernels_in_text;
  }
  EXPECT_EQ(kernels_in_text, metal_shim::kernels().size());
  for (const metal_shim::Kernel& kernel : metal_shim::kernels()) {
    const std::string head = "kernel void " + kernel.name + "(";
    EXPECT_NE(text.find(head), std::string::npos) << head;
    EXPECT_EQ(text.find(head), text.rfind(head)) << head;
  }
}

}  // namespace
}  // namespace millrace
