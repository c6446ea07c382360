#include "ridge/train/store/run_overview.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ridge/core/file_lock.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

class RunOverviewTest : public testing::Test {
 protected:
  // A run of 5 epochs that has ended unless `summary` is empty.
  std::string Make(const std::string& name, const std::string& summary = "", int age_s = 0) {
    const std::string run = folder_.File(name);
    fs::create_directories(run + "/checkpoints");
    TrainOptions options;
    options.model = "cnn";
    options.data = "synthetic";
    options.epochs = 5;
    Write(run, "options.json", OptionsToJson(options));
    if (!summary.empty()) Write(run, "summary.json", summary);
    fs::last_write_time(run + "/options.json",
                        fs::file_time_type::clock::now() - std::chrono::seconds(age_s));
    return run;
  }

  static void Write(const std::string& run, const std::string& name, const std::string& text) {
    std::ofstream(run + "/" + name) << text;
  }

  static std::string Summary(int64_t steps) {
    RunSummary summary;
    summary.steps = steps;
    summary.epochs = 5;
    summary.Add("test", {.samples = 10, .loss = 0.25, .accuracy = 0.5, .metrics = {{"wer", 0.75}}});
    summary.measured.step_s = 0.125;
    return SummaryToJson(summary);
  }

  static std::string Line(int64_t step, std::optional<double> evaluation = {}) {
    MetricsReport report;
    report.step = step;
    report.epoch = 2;
    report.loss = static_cast<double>(step);
    report.step_s = 0.5;
    report.evaluation_loss = evaluation;
    return MetricsLine(report) + "\n";
  }

  TempFolder folder_;
};

TEST_F(RunOverviewTest, AFinishedRunTellsWhatItsSummarySays) {
  const RunOverview run = ReadOverview(Make("a", Summary(50)));
  EXPECT_EQ(run.state, RunState::kFinished);
  EXPECT_EQ(run.options.model, "cnn");
  EXPECT_EQ(run.step, 50);
  EXPECT_EQ(run.epoch, 5);
  EXPECT_EQ(run.loss, 0.25);
  EXPECT_EQ(run.accuracy, 0.5);
  EXPECT_EQ(run.wer, 0.75);
  EXPECT_EQ(run.evaluated_on, "test");
  EXPECT_EQ(run.step_s, 0.125);
}

TEST_F(RunOverviewTest, OneWithoutASummaryTellsItsLastEvaluationAndStep) {
  const std::string folder = Make("a");
  EXPECT_FALSE(ReadOverview(folder).loss.has_value());
  Write(folder, "metrics.jsonl", Line(10));
  EXPECT_EQ(ReadOverview(folder).loss, 10);
  EXPECT_EQ(ReadOverview(folder).evaluated_on, "training");
  Write(folder, "metrics.jsonl", Line(10) + Line(10, 0.75) + Line(20) + "{\"step\":30,\"ep");
  const RunOverview run = ReadOverview(folder);
  EXPECT_EQ(run.state, RunState::kInterrupted);
  EXPECT_EQ(run.step, 20);
  EXPECT_EQ(run.epoch, 2);
  EXPECT_EQ(run.loss, 0.75);
  EXPECT_EQ(run.evaluated_on, "validation");
}

TEST_F(RunOverviewTest, OfALongRunTheEndIsRead) {
  const std::string folder = Make("a");
  std::string lines;
  for (int64_t step = 1; step <= 2000; ++step) lines += Line(step);
  ASSERT_GT(lines.size(), size_t{1} << 17);
  Write(folder, "metrics.jsonl", lines);
  EXPECT_EQ(ReadOverview(folder).step, 2000);
}

TEST_F(RunOverviewTest, OneThatIsTrainedHasTheNumberOfTheProcess) {
  const std::string folder = Make("a", Summary(50));
  LockHolder holder;
  const Result<std::optional<FileLock>> lock = FileLock::Take(folder + "/run.lock", holder);
  const RunOverview run = ReadOverview(folder);
  EXPECT_EQ(run.state, RunState::kRunning);
  EXPECT_EQ(run.process, getpid());
  EXPECT_FALSE(run.summary.has_value());  // of an earlier end
  fs::remove(folder + "/options.json");   // as before they are written
  EXPECT_EQ(ReadOverview(folder).state, RunState::kRunning);
}

TEST_F(RunOverviewTest, BrokenFoldersSayWhy) {
  const auto reason = [](const std::string& folder) {
    const RunOverview run = ReadOverview(folder);
    EXPECT_EQ(run.state, RunState::kBroken);
    return run.reason;
  };
  const std::string folder = Make("a", "{}");
  for (const char* text :
       {"", "[]", "{\"steps\": \"many\"}", "{\"steps\": 1e99, \"epochs\": 1, \"loss\": 1}"}) {
    Write(folder, "summary.json", text);
    EXPECT_TRUE(reason(folder).starts_with("summary.json: not the summary of a run: ")) << text;
  }
  for (const char* text : {"", "[]", "{\"model\": 3}"}) {
    Write(folder, "options.json", text);
    EXPECT_TRUE(reason(folder).starts_with("options.json: not the options of a run: ")) << text;
  }
  fs::remove(folder + "/options.json");
  EXPECT_EQ(reason(folder), "has no options.json");
  EXPECT_EQ(reason(folder_.File("nowhere")), "has no options.json");
}

TEST_F(RunOverviewTest, RunsAreListedNewestFirstAndOtherFoldersNot) {
  Make("old", Summary(1), /*age_s=*/3000);
  Make("new", "", /*age_s=*/0);
  Make("middle", Summary(1), /*age_s=*/600);
  Make("sweep/lr=1", Summary(1), /*age_s=*/700);
  fs::create_directories(folder_.File("data/deep/er/checkpoints"));  // too deep
  folder_.Write("file", "");
  fs::create_directories(folder_.File("rest/checkpoints"));
  fs::last_write_time(folder_.File("rest"),
                      fs::file_time_type::clock::now() - std::chrono::seconds(9000));
  const Result<std::vector<RunOverview>> runs = ListRuns(folder_.path());
  ASSERT_TRUE(runs.ok());
  std::vector<std::string> names;
  for (const RunOverview& run : *runs) names.push_back(fs::path(run.folder).filename());
  EXPECT_EQ(names, (std::vector<std::string>{"new", "middle", "lr=1", "old", "rest"}));
  EXPECT_EQ(ListRuns(folder_.File("old"))->size(), 1U);
  EXPECT_EQ(ListRuns(folder_.File("nowhere")).status().code(), ErrorCode::kInvalidData);
}

TEST_F(RunOverviewTest, PlannedStepsAreThoseOfTheOptionsOrUnknown) {
  const std::string folder = Make("a");
  EXPECT_EQ(PlannedSteps(*Run::Open(folder), 0), 0);
  TrainOptions options = Run::Open(folder)->options();
  options.steps = 77;
  Write(folder, "options.json", OptionsToJson(options));
  EXPECT_EQ(PlannedSteps(*Run::Open(folder), 0), 77);
}

}  // namespace
}  // namespace ridge
