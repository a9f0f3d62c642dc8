// Tests for cpp/bench_bandwidth.cpp.
#include "bench_bandwidth.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(BenchBandwidth, ReportsEveryFigureOfEveryRunAsAPositiveNumber) {
  Backend backend(backend_cpu());
  const nlohmann::json report =
      bench_bandwidth(backend, {{98, 29, 101}, BatchLayout::kSac, 64, 4096, 512, 2, 1});
  EXPECT_EQ(report["gathers_in_a_graph"], false);
  ASSERT_EQ(report["rounds"].size(), 2u);
  for (const char* name :
       {"device_copy_gb_per_s", "device_copy_of_batch_gb_per_s", "gather_us", "gather_gb_per_s",
        "gather_share", "pinned_copy_gb_per_s", "pinned_copy_of_slot_gb_per_s", "slot_copy_us",
        "slot_copy_gb_per_s", "slot_copy_share", "submit_us"}) {
    EXPECT_GT(report["medians"][name].get<double>(), 0) << name;
    EXPECT_GE(report["iqr"][name].get<double>(), 0) << name;
  }
}

}  // namespace
}  // namespace millrace
