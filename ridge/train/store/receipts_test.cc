#include "ridge/train/store/receipts.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

class ReceiptsTest : public ::testing::Test {
 protected:
  ReceiptsTest() { setenv("XDG_STATE_HOME", folder_.path().c_str(), 1); }
  ~ReceiptsTest() override { unsetenv("XDG_STATE_HOME"); }

  static Receipt Of(const std::string& model, double planned_s, double measured_s) {
    Receipt receipt;
    receipt.made_at = "2026-01-01T00:00:00Z";
    receipt.ridge_version = "0.1.0";
    receipt.device = "cpu-test-2";
    receipt.model = model;
    receipt.precision = "f32";
    receipt.batch = 32;
    receipt.threads = 2;
    receipt.steps = 100;
    receipt.planned = {1000, 500, planned_s, 2.0, planned_s};
    receipt.measured = {900, 400, measured_s, std::nullopt};
    return receipt;
  }
  static std::vector<Receipt> Stored() {
    const Result<std::vector<Receipt>> receipts = LoadReceipts();
    EXPECT_TRUE(receipts.ok());
    return receipts.ok() ? *receipts : std::vector<Receipt>();
  }

  TempFolder folder_;
};

TEST_F(ReceiptsTest, AreKeptInOrder) {
  EXPECT_TRUE(Stored().empty());
  ASSERT_TRUE(AddReceipt(Of("cnn", 1, 1.1)).ok());
  ASSERT_TRUE(AddReceipt(Of("mlp:hidden=8", 0.001, 0.002)).ok());
  const std::vector<Receipt> stored = Stored();
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(ReceiptToJson(stored[0]), ReceiptToJson(Of("cnn", 1, 1.1)));
  EXPECT_EQ(stored[1].model, "mlp:hidden=8");
  EXPECT_EQ(stored[1].planned.epoch_s, 2.0);
  EXPECT_FALSE(stored[1].measured.epoch_s);
}

TEST_F(ReceiptsTest, ShortRunsLeaveNone) {
  Receipt receipt = Of("cnn", 1, 1);
  receipt.steps = kLeastReceiptSteps - 1;
  ASSERT_TRUE(AddReceipt(receipt).ok());
  ASSERT_TRUE(AddReceipt(Of("cnn", 1, 0)).ok());
  EXPECT_TRUE(Stored().empty());
}

TEST_F(ReceiptsTest, DamagedLinesAreSkipped) {
  ASSERT_TRUE(MakeFolders(StateFolder()).ok());
  std::ofstream(ReceiptsPath()) << "{\n[]\n{\"model\": 3}\n"
                                << ReceiptToJson(Of("cnn", 1, 2)) << "\n\xff\n";
  EXPECT_EQ(Stored().size(), 1u);
  ASSERT_TRUE(AddReceipt(Of("cnn", 1, 3)).ok());
  EXPECT_EQ(Stored().size(), 2u);
}

TEST_F(ReceiptsTest, TheOldestGoWhenThereAreMany) {
  ASSERT_TRUE(MakeFolders(StateFolder()).ok());
  std::string text = ReceiptToJson(Of("first", 1, 1)) + "\n";
  for (int i = 0; i < 999; ++i) text += ReceiptToJson(Of("cnn", 1, 1)) + "\n";
  std::ofstream(ReceiptsPath()) << text;
  ASSERT_TRUE(AddReceipt(Of("last", 1, 1)).ok());
  const std::vector<Receipt> stored = Stored();
  ASSERT_EQ(stored.size(), 1000u);
  EXPECT_EQ(stored.front().model, "cnn");
  EXPECT_EQ(stored.back().model, "last");
}

TEST_F(ReceiptsTest, ProcessesAtTheSameTimeLoseNone) {
  constexpr int kProcesses = 4, kEach = 5;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      int failed = 0;
      for (int i = 0; i < kEach; ++i) failed += !AddReceipt(Of("cnn", 1, 1)).ok();
      _exit(failed);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Stored().size(), size_t{kProcesses * kEach});
}

TEST_F(ReceiptsTest, RunsOfOtherNumbersOfRanksAreAnotherKind) {
  std::vector<Receipt> receipts = {Of("cnn", 1, 2), Of("cnn", 1, 2), Of("cnn", 1, 2)};
  for (Receipt& receipt : receipts) receipt.ranks = 2;
  Receipt like = Of("cnn", 0, 0);
  EXPECT_FALSE(FindGroup(receipts, like));
  like.ranks = 2;
  const auto group = FindGroup(receipts, like);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->ranks, 2);
  EXPECT_EQ(group->scale, 2);
  const auto read = ReceiptsFromText(ReceiptToJson(receipts[0]));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].ranks, 2);
}

TEST_F(ReceiptsTest, TheScaleIsTheMedianOfTheModelsRuns) {
  const std::vector<Receipt> receipts = {Of("cnn", 1, 1.1), Of("mlp", 1, 3), Of("cnn", 1, 1.2),
                                         Of("cnn", 2, 8)};
  const std::optional<ReceiptGroup> group = FindGroup(receipts, Of("cnn", 0, 0));
  ASSERT_TRUE(group);
  EXPECT_EQ(group->model, "cnn");
  EXPECT_EQ(group->receipts, 3u);
  EXPECT_DOUBLE_EQ(group->scale, 1.2);
  EXPECT_DOUBLE_EQ(group->low, 1.1);
  EXPECT_DOUBLE_EQ(group->high, 4);
}

TEST_F(ReceiptsTest, AnUnknownModelTakesThatOfAllModels) {
  const std::vector<Receipt> receipts = {Of("a", 1, 1), Of("b", 1, 2), Of("c", 1, 3)};
  const std::optional<ReceiptGroup> group = FindGroup(receipts, Of("cnn", 0, 0));
  ASSERT_TRUE(group);
  EXPECT_EQ(group->model, "");
  EXPECT_DOUBLE_EQ(group->scale, 2);
}

TEST_F(ReceiptsTest, OtherMachinesVersionsAndPrecisionsDoNotCount) {
  std::vector<Receipt> receipts(3, Of("cnn", 1, 2));
  Receipt like = Of("cnn", 0, 0);
  like.device = "cpu-other-4";
  EXPECT_FALSE(FindGroup(receipts, like));
  like = Of("cnn", 0, 0);
  like.precision = "bf16";
  EXPECT_FALSE(FindGroup(receipts, like));
  like = Of("cnn", 0, 0);
  like.ridge_version = "0.2.0";
  EXPECT_FALSE(FindGroup(receipts, like));
  receipts.pop_back();
  EXPECT_FALSE(FindGroup(receipts, Of("cnn", 0, 0)));
}

TEST_F(ReceiptsTest, OnlyTheNewestTwentyCount) {
  std::vector<Receipt> receipts(20, Of("cnn", 1, 9));
  for (int i = 0; i < 20; ++i) receipts.push_back(Of("cnn", 1, 1));
  EXPECT_DOUBLE_EQ(FindGroup(receipts, Of("cnn", 0, 0))->high, 1);
}

TEST_F(ReceiptsTest, ExpectedSecondsAreThePlansTimesTheScale) {
  const std::vector<Receipt> receipts(3, Of("cnn", 1, 1.5));
  PlanSummary plan;
  plan.step_s = 2;
  plan.epoch_s = 10;
  const ExpectedStep expected = ExpectedBy(*FindGroup(receipts, Of("cnn", 0, 0)), plan);
  EXPECT_DOUBLE_EQ(expected.step_s, 3);
  EXPECT_DOUBLE_EQ(*expected.epoch_s, 15);
  EXPECT_EQ(expected.runs, 3);
}

}  // namespace
}  // namespace ridge
