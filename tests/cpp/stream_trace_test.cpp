// Tests for cpp/stream_trace.cpp.
#include "stream_trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "each_backend.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

class StreamTraceTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(StreamTraceTest);

TEST_P(StreamTraceTest, SpansLieBetweenSubmissionAndObservationInOrder) {
  constexpr uint64_t kBytes = 64 << 20;
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  FirstError first_error;
  Backend backend(test_backend_api(GetParam()));
  Stream stream(backend);
  Memory from(backend, Memory::Kind::kPinnedHost, kBytes),
      to(backend, Memory::Kind::kDevice, kBytes);
  uint64_t start_ns, end_ns;
  {
    Trace trace(path, 1 << 20, first_error);
    start_ns = Trace::now_ns();
    StreamTrace stream_trace(backend, stream, trace);
    for (int i = 0; i < 5; ++i) {
      StreamSpan span(&stream_trace, span::kGpuStorageCopy);
      stream.copy(CopyDirection::kHostToDevice, to.floats(), from.floats(), kBytes);
    }
    stream_trace.collect(true);
    end_ns = Trace::now_ns();
  }
  std::ifstream file(path);
  const nlohmann::json events = nlohmann::json::parse(file)["traceEvents"];
  double previous_end = 0, first_begin = -1;
  int spans = 0;
  for (const nlohmann::json& event : events) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      EXPECT_EQ(event["tid"], 9001);
      EXPECT_EQ(event["args"]["name"], "gpu_stream_0");
    }
    if (event["ph"] != "X") continue;
    ++spans;
    const double begin = event["ts"], length = event["dur"];
    if (first_begin < 0) first_begin = begin;
    EXPECT_EQ(event["tid"], 9001);
    EXPECT_GT(length, 100);  // us: no machine moves 64 MiB faster
    EXPECT_GE(begin, previous_end - 5);
    previous_end = begin + length;
  }
  EXPECT_EQ(spans, 5);
  EXPECT_LE(previous_end - first_begin, static_cast<double>(end_ns - start_ns) * 1e-3 + 20);
}

TEST(StreamTrace, OffRecordsNothing) {
  StreamSpan span(nullptr, span::kGpuStorageCopy);
  SUCCEED();
}

}  // namespace
}  // namespace millrace
