#include "ridge/doctor/compat.h"

#include <gtest/gtest.h>

#include <set>

#include "ridge/doctor/frameworks.h"

namespace ridge {
namespace {

TEST(Compat, VersionsCompareByNumber) {
  EXPECT_LT(Version("2.9"), Version("2.10"));
  EXPECT_LT(Version("12"), Version("12.0"));
  EXPECT_EQ(Version("2.5.1+cu124"), Version("2.5.1"));
  EXPECT_EQ(Version("12.4.1").Text(2), "12.4");
  EXPECT_TRUE(Version("none").numbers.empty());
  EXPECT_TRUE(Version("99999999999").numbers.empty());
}

TEST(Compat, EachRowHasASource) {
  std::set<std::string> tables;
  for (const CompatRow& row : CompatRows()) {
    EXPECT_FALSE(row.table.empty() || row.key.empty() || row.source.empty())
        << row.table << row.key;
    tables.insert(row.table);
  }
  EXPECT_EQ(tables.size(), 17u);
}

TEST(Compat, EachRowSaysHowGoodItsSourceIs) {
  const std::set<std::string> known = {"datasheet", "secondary", "recalled"};
  for (const CompatRow& row : CompatRows())
    EXPECT_TRUE(known.contains(row.confidence)) << row.table << " " << row.key;
}

TEST(Compat, OneDriverTakesAMajorReleaseOfCuda) {
  EXPECT_TRUE(DriverTakes("525.60.13", "12.8"));
  EXPECT_FALSE(DriverTakes("525.53", "12.0"));
  EXPECT_FALSE(DriverTakes("575.57.08", "13.0"));
  EXPECT_TRUE(DriverTakes("440.33", "10.2"));
  EXPECT_FALSE(DriverTakes("418.39", "10.2"));
  EXPECT_TRUE(DriverTakes("", "13.0"));
}

TEST(Compat, CodeRunsOnItsMajorArchitectureAndPtxOnNewerOnes) {
  const std::vector<std::string> built = {"7.5", "8.0", "9.0+PTX"};
  EXPECT_TRUE(RunsOn(built, "8.6"));
  EXPECT_FALSE(RunsOn(built, "7.0"));
  EXPECT_TRUE(RunsOn(built, "12.0"));
  EXPECT_FALSE(RunsOn({"8.6"}, "8.0"));
}

// onnxruntime-gpu asks for CUDA 13 since 1.27.
TEST(Compat, OnnxRuntimeIsAsItsNewestRowThatIsNoNewer) {
  const auto cuda_of = [](const char* version) {
    Probe probe;
    probe.python.packages.push_back({"onnxruntime-gpu", version, "", ""});
    return FrameworksOf(probe).front().cuda;
  };
  EXPECT_EQ(cuda_of("1.31.1"), "13");
  EXPECT_EQ(cuda_of("1.26.0"), "12");
  EXPECT_EQ(cuda_of("1.18.1"), "11.8");
  EXPECT_EQ(cuda_of("1.9.0"), "");
}

TEST(Compat, RangesOfPython) {
  EXPECT_TRUE(TakesPython("3.9-3.12", "3.12.4"));
  EXPECT_FALSE(TakesPython("3.9-3.12", "3.13"));
  EXPECT_TRUE(TakesPython(">=3.9,<=3.13 (3.13t experimental)", "3.13"));
  EXPECT_FALSE(TakesPython(">=3.10,<=3.14", "3.9"));
}

}  // namespace
}  // namespace ridge
