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
    profile.steadiness = {true, 0.99, 0.02, 0.01};
    return profile;
  }

  static constexpr double kMade_s = 1767225600;  // Sample().made_at

  // What is used when this profile is stored and `measured` is what measuring gives.
  static DeviceProfile Used(const DeviceProfile& stored, const DeviceProfile& measured,
                            double age_s) {
    EXPECT_TRUE(SaveProfile(stored).ok());
    const auto used =
        LoadOrMeasureProfile(stored.id, kMade_s + age_s, [&](bool again) -> Result<DeviceProfile> {
          EXPECT_TRUE(again);
          return measured;
        });
    EXPECT_TRUE(used.ok());
    return *used;
  }
  static DeviceProfile Busy() {
    DeviceProfile profile = Sample();
    profile.steadiness = {true, 0.4, 0.8, 0.6};
    profile.launch_s = 5e-6;
    return profile;
  }

  std::string folder_;
};

TEST_F(ProfileStore, OneOfABusyMinuteIsMeasuredAgain) {
  EXPECT_EQ(Used(Busy(), Sample(), /*age_s=*/10).launch_s, 5e-6);  // the minute is not over
  EXPECT_EQ(Used(Busy(), Sample(), /*age_s=*/100).launch_s, 1e-6);
  EXPECT_EQ(LoadProfile("cpu-test-2")->launch_s, 1e-6);
  EXPECT_EQ(Used(Busy(), Busy(), /*age_s=*/100).launch_s, 5e-6);
}

TEST_F(ProfileStore, OneWithoutSteadinessIsMeasuredAgain) {
  DeviceProfile old = Busy();
  old.steadiness = {};
  EXPECT_EQ(Used(old, Sample(), /*age_s=*/0).launch_s, 1e-6);
}

TEST_F(ProfileStore, FilesOfTheFirstFormatAreReadAndMeasuredAgain) {
  std::string text = ProfileToJson(Sample());
  const auto drop = [&](const std::string& name) {
    const size_t at = text.find(" \"" + name + "\"");
    ASSERT_NE(at, std::string::npos);
    text.erase(at, text.find("\n \"", at) + 1 - at);
  };
  for (const char* name : {"format", "contradicted", "confirmed", "steadiness"}) drop(name);
  ASSERT_TRUE(SaveProfile(Sample()).ok());
  ASSERT_TRUE(WriteFileAtomically(ProfilePath("cpu-test-2"), text).ok());
  const auto loaded = LoadProfile("cpu-test-2");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_FALSE(IsTrusted(*loaded));
}

TEST_F(ProfileStore, AContradictedOneIsMeasuredAgainOnceAndConfirmed) {
  ASSERT_TRUE(SaveProfile(Sample()).ok());
  NoteContradiction("cpu-test-2");
  const DeviceProfile contradicted = *LoadProfile("cpu-test-2");
  EXPECT_FALSE(IsTrusted(contradicted));
  DeviceProfile same = Sample();
  same.launch_s = 2e-6;
  const DeviceProfile kept = Used(contradicted, same, /*age_s=*/0);
  EXPECT_EQ(kept.launch_s, 1e-6);
  EXPECT_TRUE(IsTrusted(kept));
  DeviceProfile other = Sample();
  other.peak_flops_per_s["f32"] *= 2;
  EXPECT_EQ(Used(contradicted, other, /*age_s=*/0).peak_flops_per_s.at("f32"), 4.6e11);
}

// A quick measurement has none, and kernels said nothing against them.
TEST_F(ProfileStore, RatesOfKernelsOutliveABusyMinuteButNotAContradiction) {
  DeviceProfile busy = Busy();
  busy.kernel_rates["k"] = {{1024, 1e9}};
  EXPECT_EQ(Used(busy, Sample(), /*age_s=*/100).kernel_rates.at("k")[0].per_s, 1e9);
  busy.contradicted = true;
  EXPECT_TRUE(Used(busy, Sample(), /*age_s=*/100).kernel_rates.empty());
}

TEST_F(ProfileStore, WhatIsSavedIsLoaded) {
  ASSERT_TRUE(SaveProfile(Sample()).ok());
  const auto loaded = LoadProfile("cpu-test-2");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(ProfileToJson(*loaded), ProfileToJson(Sample()));
}

TEST_F(ProfileStore, MeasuresOnceThenLoads) {
  int measured = 0;
  const auto measure = [&](bool) -> Result<DeviceProfile> {
    ++measured;
    return Sample();
  };
  ASSERT_TRUE(LoadOrMeasureProfile("cpu-test-2", kMade_s, measure).ok());
  ASSERT_TRUE(LoadOrMeasureProfile("cpu-test-2", kMade_s, measure).ok());
  EXPECT_EQ(measured, 1);
}

TEST_F(ProfileStore, DamagedOrForeignFilesAreMeasuredAgain) {
  ASSERT_TRUE(SaveProfile(Sample()).ok());
  for (const char* text : {"", "{", "[]", "{\"id\": 3}"}) {
    ASSERT_TRUE(WriteFileAtomically(ProfilePath("cpu-test-2"), text).ok());
    EXPECT_EQ(LoadProfile("cpu-test-2").status().code(), ErrorCode::kInvalidData);
    int measured = 0;
    ASSERT_TRUE(LoadOrMeasureProfile("cpu-test-2", kMade_s, [&](bool) -> Result<DeviceProfile> {
                  ++measured;
                  return Sample();
                }).ok());
    EXPECT_EQ(measured, 1);
  }
}

}  // namespace
}  // namespace ridge
