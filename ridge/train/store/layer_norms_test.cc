#include "ridge/train/store/layer_norms.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridge {
namespace {

LayerReport Report(int64_t step, double gradient) {
  return {step, {{"a", 0.5, gradient}, {"\"b\"", 2, std::nullopt}}};
}

TEST(LayerNormsTest, ReportsComeBackFromTheirLines) {
  const auto reports =
      ReadLayerReports(LayerReportLine(Report(10, 0.25)) + LayerReportLine(Report(20, NAN)));
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].step, 10);
  EXPECT_EQ(reports[0].layers[0].name, "a");
  EXPECT_EQ(reports[0].layers[0].weight_rms, 0.5);
  EXPECT_EQ(reports[0].layers[0].gradient_rms, 0.25);
  EXPECT_EQ(reports[0].layers[1].name, "\"b\"");
  EXPECT_FALSE(reports[0].layers[1].gradient_rms);
  EXPECT_TRUE(std::isnan(*reports[1].layers[0].gradient_rms));
}

TEST(LayerNormsTest, AResumedRunReplacesTheReportsOfLaterSteps) {
  const auto reports =
      ReadLayerReports(LayerReportLine(Report(10, 1)) + LayerReportLine(Report(20, 2)) +
                       LayerReportLine(Report(30, 3)) + LayerReportLine(Report(20, 4)));
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].step, 20);
  EXPECT_EQ(reports[1].layers[0].gradient_rms, 4);
}

TEST(LayerNormsTest, LinesThatAreNoReportsAreSkipped) {
  const std::string line = LayerReportLine(Report(10, 1));
  const auto reports = ReadLayerReports("\n[]\n{\"step\":\"x\"}\n" + line.substr(0, 20) + "\n" +
                                        line + line.substr(0, line.size() / 2));
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].step, 10);
}

}  // namespace
}  // namespace ridge
