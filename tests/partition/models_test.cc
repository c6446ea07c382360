// Models under the nine layouts: steps as on one device, and the collectives that they need.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ridge/learn/random_inputs.h"
#include "ridge/models/model.h"
#include "tests/partition/compare.h"
#include "tests/partition/golden.h"
#include "tests/partition/nine_layouts.h"
#include "tests/partition/small_resnet.h"

namespace ridge {
namespace {

Result<StepGraphs> StepOf(const std::string& spec, int64_t batch, DType dtype,
                          const std::string& optimizer) {
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, BuildModel(spec, {.batch = batch, .dtype = dtype}));
  return TrainingStep(forward, optimizer);
}

// Loss and weights of three steps.  Momentum: Adam divides gradients that are 0 but for rounding,
// such as those of a key's bias, by their own size.
void ExpectSameSteps(const Graph& forward, const std::string& optimizer,
                     const std::vector<NamedLayout>& layouts) {
  const Result<StepGraphs> step = TrainingStep(forward, optimizer);
  ASSERT_TRUE(step.ok()) << step.status().message();
  NamedNumbers inputs = NumbersOf(RandomInputs(step->whole, 1));
  if (inputs.contains("ridge.lr")) inputs["ridge.lr"] = {0.01};
  for (const NamedLayout& layout : layouts) {
    const Result<Partitioned> parts = Lay(step->form, layout);
    ASSERT_TRUE(parts.ok()) << layout.text() << ": " << parts.status().message();
    EXPECT_EQ(CompareSteps(step->whole, *parts, step->form, inputs, 3), "")
        << forward.name << " " << layout.text();
  }
}

void ExpectSameSteps(const std::string& spec, const std::vector<NamedLayout>& layouts) {
  const Result<Graph> forward = BuildModel(spec, {.batch = 4, .dtype = DType::kF64});
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  ExpectSameSteps(*forward, "sgd", layouts);
}

TEST(SharedModels, GptTrainsAsOnOneDevice) {
  ExpectSameSteps("gpt:layers=2,hidden=16,heads=4,context=8,vocab=24", NineLayouts());
  ExpectSameSteps("gpt:layers=1,hidden=16,heads=4,context=8,vocab=24,tied=1,documents=1",
                  NineLayouts());
}

TEST(SharedModels, BertTrainsAsOnOneDevice) {
  ExpectSameSteps("bert:layers=2,hidden=16,heads=4,inner=32,tokens=8,positions=8,vocab=24",
                  NineLayouts());
}

// Batch norm is synchronized: its moments are sums over the devices.
TEST(SharedModels, ResnetTrainsAsOnOneDevice) {
  const Result<Graph> forward = SmallResnet();
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  ExpectSameSteps(*forward, "sgd",
                  {{"d=2", ""}, {"d=4", ""}, {"d=8", ""}, {"d=2", "zero1"}, {"d=4", "zero3"}});
}

// The norm of all gradients is one number, of parts where they are stored in parts.
TEST(SharedModels, ClipByTheNormOfTheWholeGradient) {
  const Result<Graph> forward = BuildModel("gpt:layers=1,hidden=16,heads=2,context=8,vocab=24",
                                           {.batch = 4, .dtype = DType::kF64});
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  const Result<StepGraphs> step = TrainingStep(*forward, "sgd", /*clip_norm=*/0.01);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const NamedNumbers inputs = NumbersOf(RandomInputs(step->whole, 1));
  for (const NamedLayout& layout :
       {NamedLayout{"d=2", ""}, {"d=2", "zero1"}, {"t=2", ""}, {"d=2,t=2", "zero3,sequence"}}) {
    const Result<Partitioned> parts = Lay(step->form, layout);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    EXPECT_EQ(CompareSteps(step->whole, *parts, step->form, inputs, 3), "") << layout.text();
    int64_t numbers = 0;
    for (const MeshCollective& c : parts->collectives) numbers += c.bytes == sizeof(double);
    EXPECT_LE(numbers, 12) << layout.text();
  }
}

// ---- golden text

std::string CollectivesOfModels() {
  std::string text;
  for (const auto& [spec, batch] :
       {std::pair{"gpt", 8}, std::pair{"bert", 8}, std::pair{"resnet50", 32}}) {
    const Result<StepGraphs> step = StepOf(spec, batch, DType::kF32, "adam");
    EXPECT_TRUE(step.ok()) << step.status().message();
    for (const NamedLayout& layout : NineLayouts()) {
      text += fmt::format("{} batch {}, {}\n", spec, batch, layout.text());
      const Result<Partitioned> parts = Lay(step->form, layout);
      text += parts.ok() ? CollectiveText(*parts)
                         : fmt::format("  refused: {}\n", parts.status().message());
    }
  }
  return text;
}

TEST(SharedModels, NeedTheCollectivesOnRecord) {
  ExpectGolden("collectives.txt", CollectivesOfModels());
}

}  // namespace
}  // namespace ridge
