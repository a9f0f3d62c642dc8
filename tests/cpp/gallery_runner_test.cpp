// Tests for cpp/gallery_runner.cpp.
#include "gallery_runner.h"

#include <gtest/gtest.h>

#include "graph_backends.h"

namespace millrace {
namespace {

class GalleryRunnerTest : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>()); }
};

MR_ON_EACH_GRAPH_BACKEND(GalleryRunnerTest);

const std::vector<Way> kWays(std::begin(kAllWays), std::end(kAllWays));

TEST_P(GalleryRunnerTest, EveryWayOfEveryCaseGivesTheSameBits) {
  for (const std::string& name : gallery_names()) {
    if (name == "small_programs") continue;  // short_kernels, many times
    SCOPED_TRACE(name);
    Backend backend(graph_backend_api(GetParam()));
    Stream stream(backend);
    const GalleryCase gallery = gallery_case(name, {64, 128, 64 << 10});
    GalleryRunner runner(backend, stream, *gallery.programs[0], kWays);
    runner.prepare();
    const uint64_t expected = runner.digest_after(Way::kEager, 5);
    for (const Way way : kWays) EXPECT_EQ(runner.digest_after(way, 5), expected) << to_string(way);
    EXPECT_NE(runner.digest_after(Way::kEager, 6), expected);
    EXPECT_NE(runner.digest_after(Way::kEager, 4), expected);
  }
}

// Each run brings another scalar, other inputs and buffers: one that a graph held on to would show.
TEST_P(GalleryRunnerTest, NoTwoRunsBringTheSame) {
  Backend backend(graph_backend_api(GetParam()));
  Stream stream(backend);
  InputCounts takes;
  takes.scalars = 1;
  takes.buffers = 1;
  takes.input_floats = {8, 8};
  const InputPool pool(backend, stream, takes, 8);
  const HostInputs first = pool.of_run(0), second = pool.of_run(1);
  EXPECT_NE(first.scalars, second.scalars);
  EXPECT_NE(first.buffers, second.buffers);
  EXPECT_NE(first.inputs[0], second.inputs[0]);
  EXPECT_NE(first.inputs[1], second.inputs[1]);
}

TEST_P(GalleryRunnerTest, SelectsAmongTheWaysThatHaveGraphs) {
  Backend backend(graph_backend_api(GetParam()));
  Stream stream(backend);
  const GalleryCase gallery = gallery_case("one_host_scalar", {64, 128, 64 << 10});
  GalleryRunner runner(backend, stream, *gallery.programs[0], kWays);
  runner.prepare();
  const Selection selection = runner.select_way({});
  std::string ways;
  for (const RunTimes& times : selection.measured) ways += times.way + " ";
  EXPECT_EQ(ways, "eager cgct cgct_pi ");  // the blind graph is refused: it runs eagerly
  EXPECT_LE(selection.profile_ms, 2100);
}

}  // namespace
}  // namespace millrace
