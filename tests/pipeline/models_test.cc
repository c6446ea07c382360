// Models in stages under every schedule: as on one device, and with its bits; with tied weights,
// whose gradients are added in another order, with the bits of each other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ridge/models/model.h"
#include "ridge/pipeline/check_schedule.h"
#include "ridge/pipeline/cuts.h"
#include "tests/partition/small_resnet.h"
#include "tests/pipeline/whole_step.h"

namespace ridge {
namespace {

constexpr const char* kGpt = "gpt:layers=2,hidden=16,heads=2,context=8,vocab=24";
constexpr const char* kBert =
    "bert:layers=2,hidden=16,heads=2,inner=32,tokens=8,positions=8,vocab=24";

Result<Graph> Model(const std::string& spec) {
  if (spec == "resnet") return SmallResnet();
  return BuildModel(spec, {.batch = 2, .dtype = DType::kF64});
}

// Every node takes as long as it has bytes and operations.
std::vector<double> NodeSeconds(const Graph& micro) {
  std::vector<double> seconds;
  for (const Node& node : micro.nodes()) {
    const Cost cost = CallCost(*node.op, micro.Call(node));
    seconds.push_back(static_cast<double>(cost.flops + cost.bytes_read + cost.bytes_written));
  }
  return seconds;
}

Result<std::vector<int>> Cuts(const WholeStep& step, int chunks) {
  const StageCosts costs(step.untied.micro, step.untied.update, step.untied.places,
                         NodeSeconds(step.untied.micro));
  return ChooseCuts(costs, {chunks, std::vector<int64_t>(static_cast<size_t>(chunks), 1)});
}

void ExpectEqualUnderAllSchedules(const std::string& spec, int devices, int micros,
                                  const StepOptions& options = {}) {
  const Result<Graph> forward = Model(spec);
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  const Result<WholeStep> step = MakeWholeStep(*forward, micros, options);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const Result<StepResults> want = RunWhole(*step, micros, /*updates=*/2);
  ASSERT_TRUE(want.ok()) << want.status().message();
  std::optional<StepResults> first;
  for (const char* kind : {"gpipe", "1f1b", "interleaved:2", "zero-bubble"}) {
    const Result<PipelineSchedule> schedule =
        MakeSchedule(*ParseScheduleKind(kind), devices, micros);
    if (!schedule.ok()) continue;
    const Result<std::vector<int>> borders = Cuts(*step, schedule->chunks);
    ASSERT_TRUE(borders.ok()) << kind << ": " << borders.status().message();
    const Result<StepResults> got = RunStages(*step, *borders, *schedule, /*updates=*/2);
    ASSERT_TRUE(got.ok()) << spec << " " << kind << ": " << got.status().message();
    EXPECT_EQ(CompareResults(*got, *want), "") << spec << " " << kind;
    if (!first) first = step->untied.copies.empty() ? *want : *got;
    EXPECT_TRUE(*got == *first) << spec << " " << kind << ": other bits";
  }
}

TEST(Pipeline, GptTrainsAsOnOneDevice) {
  ExpectEqualUnderAllSchedules(kGpt, 2, 4);
  ExpectEqualUnderAllSchedules(kGpt, 3, 3);
}

// The embedding is in the first stage and, as the head, in the last.
TEST(Pipeline, TiedGptTrainsAsOnOneDevice) {
  StepOptions options;
  options.clip_norm = 0.01;
  const std::string tied = fmt::format("{},tied=1", kGpt);
  ExpectEqualUnderAllSchedules(tied, 2, 4, options);
  options.optimizer = "adam";
  options.clip_norm = 0;
  ExpectEqualUnderAllSchedules(tied, 3, 3, options);
}

TEST(Pipeline, BertTrainsAsOnOneDevice) { ExpectEqualUnderAllSchedules(kBert, 2, 4); }

// Batch norm's statistics are those of a micro batch, and its running ones of all in their order.
TEST(Pipeline, ResnetTrainsAsOnOneDevice) {
  ExpectEqualUnderAllSchedules("resnet", 2, 4);
  ExpectEqualUnderAllSchedules("resnet", 4, 8);
}

TEST(Pipeline, ClipsByTheNormOfAllStages) {
  StepOptions options;
  options.clip_norm = 0.01;
  ExpectEqualUnderAllSchedules(kGpt, 3, 3, options);
}

TEST(Pipeline, KeepsAveragesAndStatesWithTheirParameters) {
  StepOptions options;
  options.average_decay = 0.9;
  options.optimizer = "adam";
  options.clip_norm = 1;
  ExpectEqualUnderAllSchedules(kGpt, 2, 2, options);
}

}  // namespace
}  // namespace ridge
