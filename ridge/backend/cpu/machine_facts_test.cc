#include "ridge/backend/cpu/machine_facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ridge::cpu {
namespace {

// A folder of the kernel's form, removed at the end.
class Caches : public ::testing::Test {
 protected:
  ~Caches() override { std::filesystem::remove_all(root_); }

  void Write(int cpu, int index, const std::string& level, const std::string& type,
             const std::string& size, const std::string& sharers) {
    const std::string folder =
        root_ + "/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/level") << level << "\n";
    std::ofstream(folder + "/type") << type << "\n";
    std::ofstream(folder + "/size") << size << "\n";
    std::ofstream(folder + "/shared_cpu_list") << sharers << "\n";
  }

  // Eight logical cores: 0 and 4, 1 and 5 and so on are one core each; two cores share an L3.
  void WriteEight() {
    for (int cpu = 0; cpu < 8; ++cpu) {
      const int core = cpu % 4;
      const std::string pair = std::to_string(core) + "," + std::to_string(core + 4);
      const std::string complex = core < 2 ? "0-1,4-5" : "2-3,6-7";
      Write(cpu, 0, "1", "Data", "48K", pair);
      Write(cpu, 1, "1", "Instruction", "32K", pair);
      Write(cpu, 2, "2", "Unified", "1M", pair);
      Write(cpu, 3, "3", "Unified", "32768K", complex);
    }
  }

  CacheBytes Read(const std::vector<int>& cpus) const { return ReadCaches(cpus, root_); }

  const std::string root_ = ::testing::TempDir() + "/ridge_caches";
};

TEST_F(Caches, ThoseThatCoresShareCountOnce) {
  WriteEight();
  EXPECT_EQ(Read({0}).l1, 48 << 10);
  EXPECT_EQ(Read({0, 4}).l1, 48 << 10);  // one core
  EXPECT_EQ(Read({0, 4}).l2, 1 << 20);
  EXPECT_EQ(Read({0, 1}).l1, 2 * (48 << 10));
  EXPECT_EQ(Read({0, 1}).l3, 32 << 20);
  EXPECT_EQ(Read({0, 2}).l3, 2 * (32 << 20));  // of both halves of the chip
  EXPECT_EQ(Read({0, 1, 2, 3, 4, 5, 6, 7}).l2, 4 << 20);
}

TEST_F(Caches, WhatTheSystemDoesNotTellIsTypical) {
  EXPECT_EQ(Read({0, 1}).l1, 2 * (32 << 10));
  EXPECT_EQ(Read({0, 1}).l2, 2 << 20);
  EXPECT_EQ(Read({0, 1}).l3, 16 << 20);
}

}  // namespace
}  // namespace ridge::cpu
