#include "ridge/runtime/kernel_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ridge/core/files.h"

namespace ridge {
namespace {

using testing::HasSubstr;

class KernelTimesStore : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "ridge-kernels-" + std::to_string(::getpid());
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("XDG_CACHE_HOME");
  }

  static KernelTimes Sample() {
    return {"cpu-test-2", "oneDNN 3.2.1", "2026-01-01T00:00:00Z", {{"conv a", 1.0 / 3}}};
  }
  static void ExpectRefused(const std::string& device, const std::string& library,
                            const std::string& why) {
    const auto loaded = LoadKernelTimes(device, library);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.status().code(), ErrorCode::kInvalidData);
    EXPECT_THAT(loaded.status().message(), HasSubstr(why));
    EXPECT_THAT(loaded.status().message(), HasSubstr("hint: ridge bench device --tune MODEL"));
  }

  std::string folder_;
};

TEST_F(KernelTimesStore, WhatIsSavedIsLoadedToTheLastBit) {
  ASSERT_TRUE(SaveKernelTimes(Sample()).ok());
  const auto loaded = LoadKernelTimes("cpu-test-2", "oneDNN 3.2.1");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->kernel_s, Sample().kernel_s);
  EXPECT_EQ(KernelTimesToJson(*loaded), KernelTimesToJson(Sample()));
}

TEST_F(KernelTimesStore, MissingForeignAndStaleFilesAreRefused) {
  ExpectRefused("cpu-test-2", "oneDNN 3.2.1", "no kernels were timed on this machine yet");
  ASSERT_TRUE(SaveKernelTimes(Sample()).ok());
  ExpectRefused("cpu-test-2", "oneDNN 3.3.0", "was timed with oneDNN 3.2.1; this is oneDNN 3.3.0");
  std::filesystem::copy(KernelTimesPath("cpu-test-2"), KernelTimesPath("cpu-test-4"));
  ExpectRefused("cpu-test-4", "oneDNN 3.2.1", "was timed on 'cpu-test-2'; this is 'cpu-test-4'");
}

TEST_F(KernelTimesStore, DamagedFilesAreRefused) {
  ASSERT_TRUE(SaveKernelTimes(Sample()).ok());
  for (const char* text :
       {"", "{", "[]", "{\"device\": 3}",
        R"({"device": "cpu-test-2", "library": "l", "made_at": "", "kernel_s": {"a": 0}})",
        R"({"device": "cpu-test-2", "library": "l", "made_at": "", "kernel_s": {"a": "b"}})"}) {
    ASSERT_TRUE(WriteFileAtomically(KernelTimesPath("cpu-test-2"), text).ok());
    ExpectRefused("cpu-test-2", "l", ".kernels.json: ");
  }
}

}  // namespace
}  // namespace ridge
