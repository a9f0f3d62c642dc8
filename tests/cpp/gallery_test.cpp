// Tests for cpp/gallery.cpp: the programs have the structure that their names say.
#include "gallery.h"

#include <gtest/gtest.h>

#include "program_transform.h"
#include "status.h"

namespace millrace {
namespace {

constexpr GalleryScale kSmall = {64, 128, 64 << 10};

const Program& only_program(const GalleryCase& gallery) {
  EXPECT_EQ(gallery.programs.size(), 1u);
  return gallery.programs[0]->program;
}

TEST(Gallery, OneHostScalarBlocks413Ops) {
  const GalleryCase gallery = gallery_case("one_host_scalar", kSmall);
  const Program& program = only_program(gallery);
  EXPECT_EQ(program.records().size(), 413u);
  EXPECT_EQ(program.takes().scalars, 1u);
  const TransformedProgram transformed = transform(program, InputRewrite::kNone);
  EXPECT_EQ(transformed.rewrites.size(), 1u);
  EXPECT_EQ(transformed.captured_ops(), 413u);
}

TEST(Gallery, LargeInputsHaveTheBytesAskedFor) {
  const GalleryCase gallery = gallery_case("varying_inputs", kSmall);
  const Program& program = only_program(gallery);
  EXPECT_EQ(program.records().size(), 740u);
  uint64_t bytes = 0;
  for (const uint64_t floats : program.takes().input_floats) bytes += floats * sizeof(float);
  EXPECT_EQ(bytes, kSmall.input_bytes);
  EXPECT_LT(program.takes().inputs() * sizeof(float*), 1000u);  // of the argument block
}

TEST(Gallery, TheHostsOpsAreACopyAPlacedOneAndOneThatStays) {
  const GalleryCase gallery = gallery_case("host_ops", kSmall);
  const TransformedProgram transformed = transform(only_program(gallery), InputRewrite::kNone);
  EXPECT_EQ(only_program(gallery).records().size(), 120u);
  EXPECT_EQ(transformed.rewrites.size() + transformed.refusals.size(), 3u);
  EXPECT_NE(transformed.refusals.back().reason.find("sort_descending"), std::string::npos);
}

TEST(Gallery, ShortKernelsAndSmallPrograms) {
  EXPECT_EQ(only_program(gallery_case("short_kernels", kSmall)).records().size(), 7u);
  const GalleryCase gallery = gallery_case("small_programs", kSmall);
  EXPECT_EQ(gallery.programs.size(), 21u);
  int many_ops = 0;
  for (const GalleryProgramPtr& program : gallery.programs) {
    many_ops += program->program.records().size() >= 40 ? 1 : 0;
  }
  EXPECT_EQ(many_ops, 4);
}

TEST(Gallery, ShapesDiffer) {
  const std::vector<GalleryProgramPtr> shapes = gallery_shapes(5);
  for (size_t i = 1; i < shapes.size(); ++i) {
    EXPECT_NE(shapes[i]->program.digest(), shapes[i - 1]->program.digest());
  }
  EXPECT_EQ(gallery_of_one_input(256, kSmall)->program.takes().input_floats,
            std::vector<uint64_t>{256});
}

TEST(Gallery, AnUnknownCaseIsRefused) { EXPECT_THROW(gallery_case("none", kSmall), Failure); }

}  // namespace
}  // namespace millrace
