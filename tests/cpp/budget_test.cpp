// Tests for cpp/budget.cpp.
#include "budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace millrace {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// G1 walk flat: 430 floats, 1,720 B, device rows of 1,728 B.
ReplayPlan plan_of(uint64_t capacity_rows) {
  return {{98, 29, 101}, 512, capacity_rows, 2, 2048, 4, 8, true, 1000, 500, false};
}

std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& finding : findings) all.push_back(finding.id);
  return all;
}

using Ids = std::vector<std::string>;

TEST(Budget, HostBytesAreTheSlotsWhateverTheCapacity) {
  // 2 * 512 * 1720 = 1,761,280
  for (uint64_t capacity : {4096, 65536}) {
    const Budget budget = replay_host_budget(plan_of(capacity), kGiB);
    EXPECT_EQ(budget.total_bytes(), 1761280u);
    ASSERT_EQ(budget.lines.size(), 1u);
    EXPECT_EQ(budget.lines[0].formula, "2 x 512 rows x 1,720 B");
  }
}

TEST(Budget, DeviceBytesAreRingBatchesLearnerAndPolicy) {
  const Budget budget = replay_device_budget(plan_of(4096), kGiB);
  ASSERT_EQ(budget.lines.size(), 4u);
  EXPECT_EQ(budget.lines[0].bytes, 4096u * 1728u);
  EXPECT_EQ(budget.lines[1].bytes, 2u * (2048u / 2 * 4) * 1728u);  // half is mirrored
  EXPECT_EQ(budget.lines[2].bytes, 1000u);
  EXPECT_EQ(budget.lines[3].bytes, 500u);
  EXPECT_EQ(budget.total_bytes(), 4096u * 1728u + 2u * 4096u * 1728u + 1500u);
  const nlohmann::json json = to_json(budget);
  EXPECT_EQ(json["items"][0]["name"], "ring");
  EXPECT_EQ(json["free_bytes"], kGiB);
  EXPECT_EQ(json["limit_bytes"], kGiB / 5 * 4);
}

TEST(CheckReplay, AGoodPlanHasNoFindings) {
  EXPECT_EQ(ids(check_replay(plan_of(8 * 512), kGiB, kGiB)), Ids{});
  ReplayPlan on_cpu = plan_of(8 * 512);
  on_cpu.is_device_host_memory = true;
  EXPECT_EQ(ids(check_replay(on_cpu)), Ids{});
}

TEST(CheckReplay, AWarmUpAboveTheCapacityIsRefusedWithTheArithmetic) {
  ReplayPlan plan = plan_of(8 * 512);
  plan.learning_starts = 10;
  const std::vector<Finding> findings = check_replay(plan, kGiB, kGiB);
  ASSERT_EQ(ids(findings), Ids{"REPLAY_CAN_NEVER_START"});
  EXPECT_EQ(findings[0].verdict, Readiness::kRefused);
  EXPECT_NE(findings[0].reason.find("10 x 512 = 5,120 > 8 x 512 = 4,096"), std::string::npos)
      << findings[0].reason;
  EXPECT_NE(findings[0].hint.find("or lower learner.learning_starts"), std::string::npos)
      << findings[0].hint;
}

TEST(CheckReplay, ABatchAboveTheCapacityIsRefused) {
  ReplayPlan plan = plan_of(4095);
  plan.learning_starts = 0;
  plan.batch = 8192;
  const std::vector<Finding> findings = check_replay(plan, kGiB, kGiB);
  ASSERT_EQ(ids(findings), Ids{"REPLAY_CAN_NEVER_START"});
  EXPECT_NE(findings[0].reason.find("batch 8,192 > 4,095"), std::string::npos)
      << findings[0].reason;
  EXPECT_NE(findings[0].hint.find("or lower learner.batch"), std::string::npos) << findings[0].hint;
}

TEST(CheckReplay, CapacityBelowWhatIsInFlightIsRefused) {
  ReplayPlan plan = plan_of(1024);
  plan.learning_starts = 0;
  plan.batch = 512;
  const std::vector<Finding> findings = check_replay(plan, kGiB, kGiB);
  ASSERT_EQ(ids(findings), Ids{"REPLAY_CAPACITY_BELOW_IN_FLIGHT"});
  EXPECT_NE(findings[0].reason.find("(2 + 1) x 512 = 1,536"), std::string::npos)
      << findings[0].reason;
}

TEST(CheckReplay, OddBatchAndDepthZeroAreReportedTogether) {
  ReplayPlan plan = plan_of(8 * 512);
  plan.batch = 2047;
  plan.ingress_depth = 0;
  EXPECT_EQ(ids(check_replay(plan, kGiB, kGiB)), (Ids{"INGRESS_DEPTH", "BATCH_ODD_WITH_SYMMETRY"}));
  plan.symmetry = false;
  EXPECT_EQ(ids(check_replay(plan, kGiB, kGiB)), Ids{"INGRESS_DEPTH"});
  plan.ingress_depth = 17;
  plan.capacity_rows = 64 * 512;
  EXPECT_EQ(ids(check_replay(plan, kGiB, kGiB)), Ids{"INGRESS_DEPTH"});
}

TEST(CheckReplay, HostAndDeviceAreCheckedAgainstFourFifthsOfTheirOwnMemory) {
  const ReplayPlan plan = plan_of(4096);
  const uint64_t host_total = replay_host_budget(plan, 0).total_bytes();
  const uint64_t device_total = replay_device_budget(plan, 0).total_bytes();
  const auto enough = [](uint64_t total) { return (total + 3) / 4 * 5; };
  EXPECT_EQ(ids(check_replay(plan, enough(host_total), enough(device_total))), Ids{});
  EXPECT_EQ(ids(check_replay(plan, enough(host_total) - 10, kGiB)), Ids{"BUDGET_HOST"});
  const std::vector<Finding> findings = check_replay(plan, kGiB, enough(device_total) - 10);
  ASSERT_EQ(ids(findings), Ids{"BUDGET_DEVICE"});
  EXPECT_NE(findings[0].reason.find("ring 7,077,888 B (4,096 rows x 1,728 B)"), std::string::npos)
      << findings[0].reason;
}

TEST(CheckReplay, OnTheCpuSlotsCountTowardsTheSameMemory) {
  ReplayPlan plan = plan_of(4096);
  plan.is_device_host_memory = true;
  const uint64_t device_total = replay_device_budget(plan, 0).total_bytes();
  EXPECT_EQ(ids(check_replay(plan, kGiB, (device_total + 3) / 4 * 5)), Ids{"BUDGET_DEVICE"});
}

TEST(CheckReplay, AbsurdSizesAreRefusedNotWrapped) {
  const ReplayPlan plan = plan_of(UINT64_MAX / 1000);
  EXPECT_EQ(ids(check_replay(plan, kGiB, kGiB)), Ids{"BUDGET_DEVICE"});
}

class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    write("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 8000 kB\n");
  }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  HostMemory read() { return available_host_memory(root_.string()); }

  const TemporaryFolder folder_;
  const std::filesystem::path root_ = folder_.path();
};

TEST_F(HostMemoryTest, WithoutAGroupItIsMemAvailable) {
  EXPECT_EQ(read().bytes, 8000u * 1024);
  EXPECT_EQ(read().source, "MemAvailable");
}

TEST_F(HostMemoryTest, TheTightestVersionTwoGroupOnThePathCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/memory.max", "1000000\n");
  write("sys/fs/cgroup/outer/memory.current", "400000\n");
  write("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 100000\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "1\n");
  EXPECT_EQ(read().bytes, 700000u);
  EXPECT_EQ(read().source, "cgroup limit");
}

TEST_F(HostMemoryTest, AVersionOneGroupCounts) {
  write("proc/self/cgroup", "9:name=systemd:/x\n4:memory:/job\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "7000\n");
  EXPECT_EQ(read().bytes, 0u);
}

TEST_F(HostMemoryTest, AGroupWithoutALimitDoesNotCount) {
  write("proc/self/cgroup", "4:memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "7000\n");
  EXPECT_EQ(read().source, "MemAvailable");
}

}  // namespace
}  // namespace millrace
