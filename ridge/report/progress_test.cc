#include "ridge/report/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ridge/report/text.h"

namespace ridge {
namespace {

ProgressReport At(int64_t step) {
  ProgressReport report;
  report.epoch = 1;
  report.epochs = 3;
  report.step = step;
  report.steps = 1404;
  report.loss = 0.43125;
  report.accuracy = 0.851;
  report.samples_s = 52310;
  report.input_wait = 0.003;
  report.eta_s = 11.2;
  return report;
}

Terminal OfWidth(int width) {
  Terminal terminal;
  terminal.is_terminal = true;
  terminal.width = width;
  return terminal;
}

TEST(ProgressText, PlainHasAllFields) {
  EXPECT_EQ(PlainProgress(At(234)),
            "epoch 1/3  step 234/1404  loss 0.4313  accuracy 0.8510  52,310 samples/s  "
            "ETA 12 s  input wait 0.3 %");
}

TEST(ProgressText, CountsBadRecordsWhenThereAreSome) {
  ProgressReport report = At(234);
  report.bad_records = 3;
  EXPECT_TRUE(PlainProgress(report).ends_with("input wait 0.3 %  3 bad records"));
  EXPECT_TRUE(JsonProgress(report).ends_with(R"("eta_s":11.2,"bad_records":3})"));
}

TEST(ProgressText, NamesTheTwoLargestStagesOfReading) {
  ProgressReport report = At(234);
  report.input_stages.At(InputStage::kDecode) = 8;
  report.input_stages.At(InputStage::kResize) = 1.7;
  report.input_stages.At(InputStage::kRead) = 0.3;
  EXPECT_TRUE(PlainProgress(report).ends_with("input wait 0.3 % (decode 80 % resize 17 %)"));
  EXPECT_TRUE(JsonProgress(report).ends_with(
      R"("eta_s":11.2,"input_stages":{"read":0.0300,"decode":0.8000,"resize":0.1700}})"));
}

TEST(ProgressText, TellsWhatTheGpuTells) {
  ProgressReport report = At(234);
  report.gpu = {.utilization = 0.962, .power_w = 411.6, .temperature_c = 61, .clock_mhz = 1980};
  EXPECT_TRUE(PlainProgress(report).ends_with(
      "ETA 12 s  input wait 0.3 %  GPU 96 %, 412 W, 61 C, 1980 MHz"));
  EXPECT_TRUE(JsonProgress(report).ends_with(
      R"("gpu":{"utilization":0.962,"power_w":411.6,"temperature_c":61,"clock_mhz":1980}})"));
  report.gpu = {.sm_share = 0.91, .tensor_share = 0.43, .power_w = 412};
  EXPECT_TRUE(PlainProgress(report).ends_with("  GPU SMs 91 %, tensor cores 43 %, 412 W"));
}

TEST(ProgressText, LeavesOutWhatIsUnknown) {
  ProgressReport report = At(234);
  report.epochs = report.steps = 0;
  report.accuracy.reset();
  report.eta_s.reset();
  report.loss = std::nan("");
  EXPECT_EQ(PlainProgress(report),
            "epoch 1  step 234  loss nan  52,310 samples/s  input wait 0.3 %");
}

TEST(ProgressText, SmallAndLargeLossesKeepTheirDigits) {
  ProgressReport report = At(1);
  report.loss = 1.5e-7;
  EXPECT_NE(PlainProgress(report).find("loss 1.500e-07"), std::string::npos);
  report.loss = 3e30;
  EXPECT_NE(PlainProgress(report).find("loss 3.000e+30"), std::string::npos);
}

TEST(ProgressText, JsonHasTheKeysOfTheMetrics) {
  EXPECT_EQ(JsonProgress(At(234)),
            R"({"event":"progress","epoch":1,"epochs":3,"step":234,"steps":1404,"loss":0.43125,)"
            R"("accuracy":0.851,"samples_s":52310,"input_wait":0.003,"eta_s":11.2})");
  ProgressReport report = At(1);
  report.loss = std::nan("");
  report.accuracy.reset();
  EXPECT_NE(JsonProgress(report).find(R"("loss":null,"accuracy":null)"), std::string::npos);
}

TEST(ProgressText, BarFitsEveryWidth) {
  EXPECT_EQ(BarProgress(At(702), OfWidth(140)),
            "epoch 1/3  ############              step  702/1404  loss 0.4313  accuracy 0.8510  "
            "52,310 samples/s  ETA 12 s  input wait 0.3 %");
  EXPECT_EQ(BarProgress(At(702), OfWidth(60)),
            "epoch 1/3  ########          step  702/1404  loss 0.4313");
  EXPECT_EQ(BarProgress(At(702), OfWidth(20)), "epoch 1/3  step ...");
  for (int width = 20; width < 160; ++width)
    EXPECT_LT(DisplayWidth(BarProgress(At(1404), OfWidth(width))), width);
}

TEST(Progress, BarIsRedrawnTenTimesASecondAtMost) {
  std::string out;
  Progress progress(ProgressMode::kAuto, OfWidth(60), SinkTo(&out));
  for (int i = 1; i <= 100; ++i) progress.Update(At(i), i * 0.01);  // one second
  const auto redraws = std::count(out.begin(), out.end(), '\r');
  EXPECT_GE(redraws, 9);
  EXPECT_LE(redraws, 11);
  EXPECT_EQ(out.find('\n'), std::string::npos);
}

TEST(Progress, FinishShowsTheLastReportOnce) {
  std::string out;
  Progress progress(ProgressMode::kBar, OfWidth(60), SinkTo(&out));
  progress.Update(At(1), 0);
  progress.Update(At(1404), 0.01);
  progress.Finish();
  progress.Finish();
  EXPECT_EQ(out, "\r\x1b[K" + BarProgress(At(1), OfWidth(60)) + "\r\x1b[K" +
                     BarProgress(At(1404), OfWidth(60)) + "\n");
}

TEST(Progress, PlainLineEveryFiveSeconds) {
  std::string out;
  Progress progress(ProgressMode::kAuto, {}, SinkTo(&out));  // no terminal
  EXPECT_EQ(progress.mode(), ProgressMode::kPlain);
  for (int i = 1; i <= 120; ++i) progress.Update(At(i), i * 0.1);
  progress.Finish();
  EXPECT_EQ(out, PlainProgress(At(1)) + "\n" + PlainProgress(At(51)) + "\n" +
                     PlainProgress(At(101)) + "\n" + PlainProgress(At(120)) + "\n");
}

TEST(Progress, BarWhereThereIsNoTerminalIsPlain) {
  std::string out;
  Progress progress(ProgressMode::kBar, {}, SinkTo(&out));
  progress.Update(At(1), 0);
  EXPECT_EQ(out, PlainProgress(At(1)) + "\n");
}

TEST(Progress, LineIsPrintedAboveTheBar) {
  std::string out;
  Progress progress(ProgressMode::kBar, OfWidth(60), SinkTo(&out));
  progress.Print("before");
  progress.Update(At(1), 0);
  progress.Print("epoch 1: test accuracy 0.8812");
  const std::string bar = "\r\x1b[K" + BarProgress(At(1), OfWidth(60));
  EXPECT_EQ(out, "before\n" + bar + "\r\x1b[Kepoch 1: test accuracy 0.8812\n" + bar);
}

TEST(Progress, JsonModeWritesOnlyJson) {
  std::string out;
  Progress progress(ProgressMode::kJson, OfWidth(60), SinkTo(&out));
  progress.Update(At(1), 0);
  progress.Print("say \"hi\"");
  progress.Finish();
  EXPECT_EQ(out, JsonProgress(At(1)) + "\n{\"event\":\"message\",\"text\":\"say \\\"hi\\\"\"}\n");
}

TEST(Progress, NoneIsSilentButForMessages) {
  std::string out;
  Progress progress(ProgressMode::kNone, OfWidth(60), SinkTo(&out));
  progress.Update(At(1), 0);
  progress.Print("warning");
  progress.Finish();
  EXPECT_EQ(out, "warning\n");
}

TEST(Progress, FollowsTheWidthOfTheWindow) {
  std::string out;
  ProgressOptions options;
  options.columns = [] { return 30; };
  Progress progress(ProgressMode::kBar, OfWidth(140), SinkTo(&out), options);
  progress.Update(At(1), 0);
  EXPECT_EQ(out, "\r\x1b[K" + BarProgress(At(1), OfWidth(30)));
}

TEST(Progress, OwnerThatGoesLeavesTheCursorOnAFreshLine) {
  std::string out;
  {
    Progress progress(ProgressMode::kBar, OfWidth(60), SinkTo(&out));
    progress.Update(At(1), 0);
  }
  EXPECT_EQ(out.back(), '\n');
}

TEST(ParseProgressMode, NamesTheModes) {
  EXPECT_EQ(*ParseProgressMode("json"), ProgressMode::kJson);
  EXPECT_EQ(ParseProgressMode("fancy").status().message(),
            "--progress 'fancy' is unknown; use auto, bar, plain, json or none");
}

}  // namespace
}  // namespace ridge
