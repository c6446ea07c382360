#include "ridge/observe/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

MetricsReport At(int64_t step) {
  MetricsReport report;
  report.step = step;
  report.epoch = 1;
  report.loss = 0.5;
  report.accuracy = 0.25;
  report.lr = 0.001;
  report.samples_s = 51200;
  report.input_wait = 0.01;
  report.step_s = 0.0025;
  return report;
}

std::string TestPath(const std::string& name) { return TestFolder() + "/" + name; }

// What is left of `before` when a run resumes at step 20.
std::string AfterResume(const std::string& before) {
  const std::string path = TestPath("resume.jsonl");
  EXPECT_TRUE(WriteFileAtomically(path, before).ok());
  Result<MetricsWriter> writer = MetricsWriter::Resume(path, 20);
  EXPECT_TRUE(writer.ok());
  EXPECT_TRUE(writer->Close().ok());
  return *ReadFile(path);
}

TEST(Metrics, LineHasTheKeysOfTheContract) {
  EXPECT_EQ(MetricsLine(At(10)),
            R"({"step":10,"epoch":1,"loss":0.5,"accuracy":0.25,"lr":0.001,"samples_s":51200,)"
            R"("input_wait":0.01,"step_s":0.0025})");
}

TEST(Metrics, WhatIsNotFiniteIsNullAndSaysSo) {
  MetricsReport report = At(10);
  report.loss = std::nan("");
  report.accuracy.reset();
  report.samples_s = std::numeric_limits<double>::infinity();
  EXPECT_EQ(MetricsLine(report),
            R"({"step":10,"epoch":1,"loss":null,"accuracy":null,"lr":0.001,"samples_s":null,)"
            R"("input_wait":0.01,"step_s":0.0025,"loss_text":"nan"})");
  report.loss = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(nlohmann::json::parse(MetricsLine(report))["loss_text"], "-inf");
}

TEST(Metrics, StagesOfReadingAreSharesWhereThereAreAny) {
  MetricsReport report = At(10);
  report.input_stages.At(InputStage::kRead) = 1;
  report.input_stages.At(InputStage::kDecode) = 3;
  const std::string line = MetricsLine(report);
  EXPECT_TRUE(line.ends_with(R"("step_s":0.0025,"input_stages":{"read":0.2500,"decode":0.7500}})"))
      << line;
  EXPECT_EQ(ParseMetricsLine(line)->input_stages.At(InputStage::kDecode), 0.75);
}

TEST(Metrics, CountersAreThereWhereTheDeviceTellsThem) {
  MetricsReport report = At(10);
  report.gpu = {.utilization = 0.96, .power_w = 412.50003, .uncorrected_errors = 0};
  const std::string line = MetricsLine(report);
  EXPECT_TRUE(
      line.ends_with(R"("gpu":{"utilization":0.96,"power_w":412.5,"uncorrected_errors":0}})"))
      << line;
  EXPECT_EQ(MetricsLine(*ParseMetricsLine(line)), line);
}

TEST(Metrics, ALossScaleAndSkippedStepsAreThereWithAScaleOnly) {
  MetricsReport report;
  EXPECT_EQ(MetricsLine(report).find("loss_scale"), std::string::npos);
  EXPECT_FALSE(ParseMetricsLine(MetricsLine(report))->loss_scaling);
  report.loss_scaling = {4096, 3};
  const std::string line = MetricsLine(report);
  EXPECT_TRUE(line.ends_with(R"(,"loss_scale":4096,"skipped_steps":3})")) << line;
  const std::optional<MetricsReport> read = ParseMetricsLine(line);
  ASSERT_TRUE(read && read->loss_scaling);
  EXPECT_EQ(read->loss_scaling->scale, 4096);
  EXPECT_EQ(read->loss_scaling->skipped_steps, 3);
}

TEST(Metrics, ALineGivesItsReportBack) {
  MetricsReport report = At(10);
  report.evaluated_on = "test";
  report.evaluation_loss = 0.75;
  EXPECT_EQ(MetricsLine(*ParseMetricsLine(MetricsLine(report))), MetricsLine(report));
  report = At(20);
  report.accuracy.reset();
  report.loss = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(MetricsLine(*ParseMetricsLine(MetricsLine(report))), MetricsLine(report));
  for (const char* other : {"", "{", "[1]", "3", "{\"note\":1}", "{\"step\":\"a\"}",
                            "{\"step\":1e99}", "{\"step\":1,\"epoch\":0.5}"})
    EXPECT_FALSE(ParseMetricsLine(other).has_value()) << other;
}

TEST(Metrics, ValidationComesOnlyAfterAnEvaluation) {
  MetricsReport report = At(10);
  report.evaluation_loss = 0.75;
  report.evaluation_accuracy = 0.5;
  const auto json = nlohmann::json::parse(MetricsLine(report));
  EXPECT_EQ(json["validation_loss"], 0.75);
  EXPECT_EQ(json["validation_accuracy"], 0.5);
  report.evaluated_on = "test";
  const auto test = nlohmann::json::parse(MetricsLine(report));
  EXPECT_EQ(test["test_loss"], 0.75);
  EXPECT_EQ(test["test_accuracy"], 0.5);
  EXPECT_FALSE(test.contains("validation_loss"));
  EXPECT_FALSE(nlohmann::json::parse(MetricsLine(At(1))).contains("validation_loss"));
}

TEST(Metrics, NumbersKeepEveryBit) {
  MetricsReport report = At(10);
  report.loss = 0.1 + 0.2;
  EXPECT_EQ(nlohmann::json::parse(MetricsLine(report))["loss"].get<double>(), 0.1 + 0.2);
}

TEST(Metrics, NewRunStartsEmptyAndLinesAreThereAtOnce) {
  const std::string path = TestPath("new.jsonl");
  ASSERT_TRUE(WriteFileAtomically(path, "old\n").ok());
  Result<MetricsWriter> writer = MetricsWriter::Create(path);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Add(At(1)).ok());
  ASSERT_TRUE(writer->Add(At(2)).ok());
  EXPECT_EQ(*ReadFile(path), MetricsLine(At(1)) + "\n" + MetricsLine(At(2)) + "\n");
}

TEST(Metrics, ResumeCutsLaterStepsAndUnfinishedLines) {
  const std::string a = MetricsLine(At(10)) + "\n", b = MetricsLine(At(20)) + "\n";
  const std::string c = MetricsLine(At(21)) + "\n", d = MetricsLine(At(30)) + "\n";
  EXPECT_EQ(AfterResume(a + b + c + d), a + b);
  EXPECT_EQ(AfterResume(a + b), a + b);
  EXPECT_EQ(AfterResume(a + b.substr(0, 12)), a);
  EXPECT_EQ(AfterResume(a + MetricsLine(At(20))), a);  // whole, but without its newline
  EXPECT_EQ(AfterResume(a + "my note\n" + b + c), a + "my note\n" + b);
  EXPECT_EQ(AfterResume(c), "");
  EXPECT_EQ(AfterResume(""), "");
}

TEST(Metrics, ResumeCutsAnEvaluationThatIsMadeAgain) {
  const std::string path = TestPath("owed.jsonl");
  MetricsReport evaluation = At(20);
  evaluation.evaluation_loss = 1.5;
  const std::string plain = MetricsLine(At(20)) + "\n";
  const std::string both = plain + MetricsLine(evaluation) + "\n";
  for (const bool owed : {true, false}) {
    ASSERT_TRUE(WriteFileAtomically(path, both).ok());
    ASSERT_TRUE(MetricsWriter::Resume(path, 20, owed).ok());
    EXPECT_EQ(*ReadFile(path), owed ? plain : both);
  }
}

TEST(Metrics, ResumeGoesOnBehindWhatIsKept) {
  const std::string path = TestPath("on.jsonl");
  std::remove(path.c_str());
  for (int run = 0; run < 2; ++run) {  // the first one finds no file
    Result<MetricsWriter> writer = MetricsWriter::Resume(path, 10);
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(run == 1 || writer->Add(At(10)).ok());
    ASSERT_TRUE(writer->Add(At(20)).ok());
    ASSERT_TRUE(writer->Close().ok());
  }
  EXPECT_EQ(*ReadFile(path), MetricsLine(At(10)) + "\n" + MetricsLine(At(20)) + "\n");
}

TEST(Metrics, NamesThePathItCannotWrite) {
  EXPECT_EQ(MetricsWriter::Create("/no/such/m.jsonl").status().message(),
            "/no/such/m.jsonl: cannot create: No such file or directory");
}

}  // namespace
}  // namespace ridge
