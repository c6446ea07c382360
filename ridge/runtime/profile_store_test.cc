#include "ridge/runtime/profile_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ridge/core/files.h"

namespace ridge {
namespace {

class ProfileStore : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "ridge-profiles-" + std::to_string(::getpid());
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("XDG_CACHE_HOME");
  }

  static DeviceProfile Sample() {
    DeviceProfile profile;
    profile.id = "cpu-test-2";
    profile.name = "Test CPU (2 threads)";
    profile.threads = 2;
    profile.peak_flops_per_s = {{"f32", 2.3e11}, {"bf16", 4.6e11}};
    profile.memory = {{"L2", 1 << 21, 2e11}, {"DRAM", int64_t{1} << 34, 3.6e10}};
    profile.launch_s = 1e-6;
    profile.efficiency["conv"] = {{1e6, 0.3}, {1e9, 0.95}};
    profile.kernel_s = {{"relu", 1e-6}};
    profile.runtime_bytes = 30 << 20;
    profile.bytes_per_kernel = 70'000;
    profile.made_at = "2026-01-01T00:00:00Z";
    return profile;
  }

  std::string folder_;
};

TEST_F(ProfileStore, WhatIsSavedIsLoaded) {
  ASSERT_TRUE(SaveProfile(Sample()).ok());
  const auto loaded = LoadProfile("cpu-test-2");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(ProfileToJson(*loaded), ProfileToJson(Sample()));
}

TEST_F(ProfileStore, MeasuresOnceThenLoads) {
  int measured = 0;
  const auto measure = [&]() -> Result<DeviceProfile> {
    ++measured;
    return Sample();
  };
  ASSERT_TRUE(LoadOrMeasureProfile("cpu-test-2", measure).ok());
  ASSERT_TRUE(LoadOrMeasureProfile("cpu-test-2", measure).ok());
  EXPECT_EQ(measured, 1);
}

TEST_F(ProfileStore, DamagedOrForeignFilesAreMeasuredAgain) {
  ASSERT_TRUE(SaveProfile(Sample()).ok());
  for (const char* text : {"", "{", "[]", "{\"id\": 3}"}) {
    ASSERT_TRUE(WriteFileAtomically(ProfilePath("cpu-test-2"), text).ok());
    EXPECT_EQ(LoadProfile("cpu-test-2").status().code(), ErrorCode::kInvalidData);
    int measured = 0;
    ASSERT_TRUE(LoadOrMeasureProfile("cpu-test-2", [&]() -> Result<DeviceProfile> {
                  ++measured;
                  return Sample();
                }).ok());
    EXPECT_EQ(measured, 1);
  }
}

}  // namespace
}  // namespace ridge
