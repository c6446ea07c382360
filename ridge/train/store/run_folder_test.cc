#include "ridge/train/store/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ridge/core/test_folder.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

// Runs are numbered below the current folder.
class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~RunFolderTest() override { std::filesystem::current_path(before_); }

  std::string Create(const std::string& out, const std::string& model = "cnn") {
    const Result<RunFolder> run = RunFolder::Create(out, model);
    EXPECT_TRUE(run.ok()) << run.status().message();
    if (!run.ok()) return "";
    WriteOptions(run->path(), model);
    return run->path();
  }

  static void WriteOptions(const std::string& folder, const std::string& model) {
    TrainOptions options;
    options.model = model;
    options.batch = 8;
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/options.json") << OptionsToJson(options);
  }

  TempFolder folder_;
  std::filesystem::path before_;
};

TEST_F(RunFolderTest, RunsAreNumberedByModel) {
  EXPECT_EQ(Create(""), "runs/cnn-1");
  EXPECT_EQ(Create(""), "runs/cnn-2");
  EXPECT_EQ(Create("", "mlp:hidden=3"), "runs/mlp-1");
  EXPECT_EQ(Create("", "models/net.ridge"), "runs/net-1");
  EXPECT_TRUE(std::filesystem::is_directory("runs/cnn-2/checkpoints"));
}

TEST_F(RunFolderTest, AnEmptyOutFolderIsUsedAndAFilledOneRefused) {
  std::filesystem::create_directory("mine");
  EXPECT_EQ(Create("mine"), "mine");
  const Result<RunFolder> again = RunFolder::Create("mine", "cnn");
  EXPECT_EQ(again.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(again.status().message(),
            "mine: holds a run already. hint: --resume mine goes on with it; another --out starts "
            "a new one");
}

TEST_F(RunFolderTest, NoNameIsNoRunEvenInsideOne) {
  std::ofstream("options.json") << "{}";
  EXPECT_TRUE(Run::Exists("."));
  EXPECT_FALSE(Run::Exists(""));
}

TEST_F(RunFolderTest, TheLockIsHeldByOne) {
  const std::string path = Create("mine");
  Result<FileLock> lock = RunFolder::Continue(path)->Lock();
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(RunFolder::Continue(path)->Lock().status().message(),
            "mine: process " + std::to_string(getpid()) +
                " is training in this folder. hint: wait until it has ended, or stop it: its "
                "checkpoint is kept");
}

TEST_F(RunFolderTest, TheNewestRunIsFound) {
  EXPECT_EQ(Run::Open("").status().message(),
            "no run under runs/. hint: name the run's folder: --resume DIR");
  Create("");
  const std::string newest = Create("");
  const auto later =
      std::filesystem::last_write_time(newest + "/options.json") + std::chrono::seconds(5);
  std::filesystem::last_write_time("runs/cnn-1/options.json", later);
  EXPECT_EQ(Run::Open("")->path(), "runs/cnn-1");
  EXPECT_EQ(Run::Open("runs/cnn-2")->path(), "runs/cnn-2");
  EXPECT_EQ(Run::Open("runs").status().message(), "runs: holds no run: there is no options.json");
}

TEST_F(RunFolderTest, ReadingARunCreatesNothing) {
  WriteOptions("run", "mlp");
  std::ofstream("run/metrics.jsonl") << "{\"step\": 1}\n{\"st";
  const auto run = Run::Open("run");
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->options().batch, 8);
  EXPECT_EQ(run->ModelSource(), "mlp");
  EXPECT_EQ(run->MetricsLines(), (std::vector<std::string>{"{\"step\": 1}", "{\"st"}));
  EXPECT_EQ(run->checkpoints().Find("newest").status().message(),
            "run/checkpoints: no checkpoint yet; train it first");
  EXPECT_FALSE(std::filesystem::exists("run/checkpoints"));
}

TEST_F(RunFolderTest, AModelFromAFileIsReadFromTheRunsCopy) {
  WriteOptions("run", "models/net.onnx");
  EXPECT_EQ(Run::Open("run")->ModelSource(), "run/model.onnx");
  WriteOptions("run", "models/net.ridge");
  EXPECT_EQ(Run::Open("run")->ModelSource(), "run/model.ridge");
}

TEST_F(RunFolderTest, OptionsThatCannotBeReadAreNoRun) {
  std::ofstream("options.json") << "{";
  const auto run = Run::Open(".");
  EXPECT_EQ(run.status().code(), ErrorCode::kInvalidData);
  EXPECT_TRUE(run.status().message().starts_with("./options.json: not the options of a run: "));
}

TEST_F(RunFolderTest, NamesOfClassesAreReadAsTheyWereWritten) {
  Create("mine");
  const ridge::Run run = *ridge::Run::Open("mine");
  EXPECT_TRUE(run.ClassNames()->empty());
  const std::vector<std::string> names = {"cat", "\"dog\"", "caf\u00e9"};
  std::ofstream(run.File("classes.json")) << NamesToJson(names);
  EXPECT_EQ(*run.ClassNames(), names);
  EXPECT_EQ(NamesToJson({"\xFF"}), "[\n \"\xEF\xBF\xBD\"\n]\n");
  std::ofstream(run.File("classes.json")) << "{";
  EXPECT_EQ(run.ClassNames().status().message(), "mine/classes.json: is no list of names");
}

}  // namespace
}  // namespace ridge
