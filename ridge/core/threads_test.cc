#include "ridge/core/threads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A machine's /proc and /sys as files.
class MemoryTest : public testing::Test {
 protected:
  MemoryTest() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    system_ = TestFolder() + "/" + test->name();
    Put("/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
  }
  void Put(const std::string& name, const std::string& text) {
    const std::filesystem::path path = system_ + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  static std::string MiB(int64_t count) { return std::to_string(count * kMiB) + "\n"; }
  int64_t AvailableMiB() const { return AvailableMemoryBytes(system_) / kMiB; }

  std::string system_;
};

TEST_F(MemoryTest, WithoutAContainerItIsWhatTheMachineHas) { EXPECT_EQ(AvailableMiB(), 8192); }

TEST_F(MemoryTest, FilesThatWereReadCountAsFree) {
  Put("/proc/self/cgroup", "0::/box\n");
  Put("/sys/fs/cgroup/box/memory.max", MiB(1000));
  Put("/sys/fs/cgroup/box/memory.current", MiB(900));
  EXPECT_EQ(AvailableMiB(), 100);
  Put("/sys/fs/cgroup/box/memory.stat", "anon " + MiB(150) + "file " + MiB(750) + "inactive_anon " +
                                            MiB(1) + "inactive_file " + MiB(700) + "active_file " +
                                            MiB(50));
  EXPECT_EQ(AvailableMiB(), 850);
}

TEST_F(MemoryTest, FilesThatWereReadCountAsFreeInTheFirstVersionToo) {
  Put("/proc/self/cgroup", "4:memory:/box\n");
  Put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", MiB(1000));
  Put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", MiB(900));
  Put("/sys/fs/cgroup/memory/box/memory.stat",
      "inactive_file " + MiB(5) + "total_inactive_file " + MiB(700));
  EXPECT_EQ(AvailableMiB(), 800);
}

TEST_F(MemoryTest, WhatTheProcessHoldsAndMostOfItsProgramCountAsFree) {
  Put("/proc/self/cgroup", "0::/box\n");
  Put("/sys/fs/cgroup/box/memory.max", MiB(300));
  Put("/sys/fs/cgroup/box/memory.current", MiB(60));
  EXPECT_EQ(AvailableMiB(), 240);
  Put("/proc/self/status", "VmRSS:\t  81920 kB\nRssAnon:\t  51200 kB\nRssFile:\t  30720 kB\n");
  EXPECT_EQ(AvailableMiB(), 240 + 50 + 22);
}

TEST_F(MemoryTest, TheTightestFolderOnTheWayUpCounts) {
  Put("/proc/self/cgroup", "0::/outer/inner\n");
  Put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  Put("/sys/fs/cgroup/outer/memory.max", MiB(500));
  Put("/sys/fs/cgroup/outer/memory.current", MiB(600));
  Put("/sys/fs/cgroup/outer/memory.stat", "inactive_file " + MiB(200));
  EXPECT_EQ(AvailableMiB(), 100);
  Put("/sys/fs/cgroup/outer/memory.stat", "inactive_file " + MiB(700));  // counted at other times
  EXPECT_EQ(AvailableMiB(), 500);
}

}  // namespace
}  // namespace ridge
