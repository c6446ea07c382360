#include "ridge/report/frameworks_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ridge {
namespace {

FrameworksTable Sample() {
  FrameworkRow torch;
  torch.program = "PyTorch";
  torch.least = {"2.0.1", {}, Evidence::kKnown, "floors measured by running wheels"};
  torch.memory = {"24.1 GiB", 24.1, Evidence::kEstimated, "6 published trainings"};
  torch.seconds = {"", {}, Evidence::kNotKnown, "no published training"};
  return {.title = "mlp, batch 8", .devices = {{"h100-sxm", "bf16", {torch}}}};
}

TEST(FrameworksReport, EstimatedAndMissingCellsAreMarked) {
  const std::string text = FrameworksReport(Sample(), {});
  EXPECT_NE(text.find("2.0.1"), std::string::npos);
  EXPECT_EQ(text.find("~2.0.1"), std::string::npos) << text;
  EXPECT_NE(text.find("~24.1 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("?"), std::string::npos) << text;
  EXPECT_EQ(text.find("floors measured"), std::string::npos) << "sources only with --all";
}

TEST(FrameworksReport, AllSourcesAreListedOnRequest) {
  FrameworksTable table = Sample();
  table.all = true;
  const std::string text = FrameworksReport(table, {});
  EXPECT_NE(text.find("least      known      2.0.1: floors measured"), std::string::npos) << text;
  EXPECT_NE(text.find("seconds    not known  no published training"), std::string::npos) << text;
}

TEST(FrameworksReport, TheSecondsOfATrainingAreNamedSo) {
  FrameworksTable table = Sample();
  EXPECT_NE(FrameworksReport(table, {}).find("a step"), std::string::npos);
  table.is_step = false;
  EXPECT_NE(FrameworksReport(table, {}).find("training"), std::string::npos);
}

TEST(FrameworksReport, EachCellOfTheJsonHasItsEvidenceAndSource) {
  const auto json = nlohmann::json::parse(FrameworksJson(Sample()));
  const auto& program = json["devices"][0]["programs"][0];
  for (const FrameworkColumn& column : FrameworkColumns()) {
    EXPECT_TRUE(program[column.key].contains("evidence")) << column.key;
    EXPECT_TRUE(program[column.key].contains("source")) << column.key;
  }
  EXPECT_EQ(program["memory"]["evidence"], "estimated");
  EXPECT_DOUBLE_EQ(program["memory"]["value"], 24.1);
  EXPECT_TRUE(program["seconds"]["text"].is_null());
}

TEST(FrameworksReport, MarkdownHasTheSameMarks) {
  const std::string text = FrameworksMarkdown(Sample());
  EXPECT_NE(text.find("~24.1 GiB"), std::string::npos) << text;
}

}  // namespace
}  // namespace ridge
