#include "ridge/doctor/framework_support.h"

#include <gtest/gtest.h>

#include <set>

#include "ridge/plan/hardware/hardware.h"

namespace ridge {
namespace {

constexpr const char* kPrograms[] = {"torch", "tf", "jax", "paddle"};

FrameworkBuild Least(const std::string& program, const std::string& architecture) {
  return SupportOf(program, architecture).least.value_or(FrameworkBuild());
}
FrameworkBuild Newest(const std::string& program, const std::string& architecture) {
  return SupportOf(program, architecture).newest.value_or(FrameworkBuild());
}

TEST(FrameworkSupport, AReleaseThatWasSeenToRunIsTheLeast) {
  EXPECT_EQ(Least("torch", "9.0").version, "2.0.1");
  EXPECT_EQ(Least("torch", "12.0").version, "2.7.0");
  EXPECT_EQ(Least("jax", "9.0").version, "0.4.12");
  EXPECT_TRUE(Least("torch", "9.0").is_listed);
}

// Nothing is known of what TensorFlow 2.12 has code for; CUDA 11.8 is the first that knows Hopper.
TEST(FrameworkSupport, WithoutAListTheCompilerDecides) {
  const FrameworkBuild least = Least("tf", "9.0");
  EXPECT_EQ(least.version, "2.12.0");
  EXPECT_EQ(least.toolkit, "CUDA 11.8");
  EXPECT_FALSE(least.is_listed);
  EXPECT_TRUE(Newest("tf", "9.0").is_listed);
}

TEST(FrameworkSupport, PtxIsCompiledThere) {
  EXPECT_TRUE(Newest("tf", "12.0").is_compiled_there);
  EXPECT_FALSE(Newest("tf", "8.0").is_compiled_there);
  EXPECT_FALSE(Newest("torch", "9.0").is_compiled_there);
}

TEST(FrameworkSupport, NewToolkitsLeaveOldGpusOut) {
  EXPECT_EQ(Newest("torch", "7.0").toolkit, "CUDA 12.6");
  EXPECT_EQ(Newest("torch", "9.0").toolkit, "CUDA 13.2");
  EXPECT_EQ(Newest("jax", "7.0").toolkit, "CUDA 12");
  EXPECT_EQ(Newest("jax", "7.5").toolkit, "CUDA 13");
}

// Its compilers and its table end before Blackwell.
TEST(FrameworkSupport, NothingIsSaidWhereNothingRuns) {
  EXPECT_FALSE(SupportOf("paddle", "12.0").newest);
  EXPECT_FALSE(SupportOf("torch", "").newest);
  EXPECT_FALSE(SupportOf("mxnet", "9.0").newest);
}

// The one release in the table may not be the first that runs there.
TEST(FrameworkSupport, ATableThatBeginsWithTheReleaseHasNoLeast) {
  EXPECT_TRUE(SupportOf("jax", "8.0").newest);
  EXPECT_FALSE(SupportOf("jax", "8.0").least);
  EXPECT_EQ(SupportOf("jax", "8.0").begins, "0.12.0");
  EXPECT_EQ(SupportOf("paddle", "9.0").begins, "2.5");
}

TEST(FrameworkSupport, RocmHasItsTargets) {
  EXPECT_EQ(Newest("torch", "gfx942").toolkit, "ROCm 7.14");
  EXPECT_EQ(Newest("tf", "gfx942").toolkit, "ROCm 6.3.3");
  EXPECT_EQ(Newest("torch", "gfx906").toolkit, "ROCm 5.7");
  EXPECT_FALSE(SupportOf("paddle", "gfx942").newest);
}

TEST(FrameworkSupport, TheLeastIsNoNewerAndBothRunOnTheDevice) {
  for (const Hardware& hardware : HardwareCatalog()) {
    for (const char* program : kPrograms) {
      const FrameworkSupport support = SupportOf(program, hardware.compute_capability);
      if (!support.newest) continue;
      EXPECT_FALSE(support.newest->code->source.empty()) << program << " " << hardware.id;
      if (!support.least) continue;
      EXPECT_LE(Version(support.least->version), Version(support.newest->version))
          << program << " " << hardware.id;
    }
  }
}

TEST(FrameworkInstall, EachHasItsSourceAndDate) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Install& install : Installs()) {
    EXPECT_TRUE(seen.insert({install.program, install.device}).second) << install.program;
    EXPECT_GT(install.bytes, 0);
    EXPECT_GE(install.packages, 1);
    EXPECT_TRUE(install.date.starts_with("20")) << install.date;
    EXPECT_FALSE(install.source.empty() || install.requirement.empty()) << install.program;
    EXPECT_TRUE(install.confidence == "datasheet" || install.confidence == "secondary");
  }
  for (const char* program : kPrograms) {
    EXPECT_TRUE(FindInstall(program, "cpu") || FindInstall(program, "cuda13")) << program;
  }
  EXPECT_TRUE(FindInstall("ridge", "cpu")->python.empty());
}

}  // namespace
}  // namespace ridge
