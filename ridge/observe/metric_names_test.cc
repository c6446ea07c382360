#include "ridge/observe/metric_names.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(MetricNames, SharesAreInPercentAndOthersAreNumbers) {
  EXPECT_EQ(MetricText("f1_macro", 0.5), "macro F1 50.0 %");
  EXPECT_EQ(MetricText("map50_95", 0.123), "mAP50-95 12.3 %");
  EXPECT_EQ(MetricText("r2", 0.51234), "R2 0.5123");
  EXPECT_EQ(MetricText("rmse", 12.34567), "rmse 12.35");
}

TEST(MetricNames, MoreIsBetterUnlessTheMetricIsAnError) {
  for (const char* name : {"accuracy", "map50_95", "mean_iou", "r2"})
    EXPECT_TRUE(MoreIsBetter(name)) << name;
  for (const char* name : {"loss", "wer", "cer", "rmse", "perplexity"})
    EXPECT_FALSE(MoreIsBetter(name)) << name;
}

}  // namespace
}  // namespace ridge
