// Bytes of parameters, gradients and optimizer states on a device: the formula against what the
// partition gives, for every stage.
#include "ridge/partition/state_bytes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ridge/learn/random_inputs.h"
#include "ridge/learn/training_graph.h"
#include "ridge/models/model.h"
#include "ridge/partition/normal_form.h"
#include "tests/partition/compare.h"
#include "tests/partition/nine_layouts.h"

namespace ridge {

void PrintTo(const StateBytes& bytes, std::ostream* out) {
  *out << fmt::format("{} parameters, {} gradients, {} optimizer, {} other", bytes.parameters,
                      bytes.gradients, bytes.optimizer, bytes.other);
}

namespace {

// The graphs of an update from one batch, or from two.
Result<std::vector<Graph>> FormsOf(const std::string& spec, const std::string& optimizer,
                                   int64_t accumulate) {
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, BuildModel(spec, {.batch = 8}));
  TrainingGraphOptions options;
  options.optimizer.name = optimizer;
  options.accumulate = accumulate;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<NamedGraph> graphs,
                         BuildTrainingGraphs(forward, options));
  std::vector<Graph> forms;
  for (const NamedGraph& named : graphs) {
    RIDGE_ASSIGN_OR_RETURN(Graph form, NormalForm(named.graph));
    forms.push_back(std::move(form));
  }
  return forms;
}

constexpr char kGpt[] = "gpt:layers=2,hidden=64,heads=4,context=16,vocab=96";

TEST(StateBytes, AreThoseOfTheFormulaInEveryStage) {
  for (const char* spec : {kGpt, "resnet18:classes=8", "bert:layers=1,vocab=96"}) {
    const Result<std::vector<Graph>> forms = FormsOf(spec, "adam", 1);
    ASSERT_TRUE(forms.ok()) << forms.status().message();
    for (int64_t ranks : {2, 4, 8}) {
      for (int stage : {0, 1, 2, 3}) {
        const std::string shard = stage == 0 ? "" : fmt::format("zero{}", stage);
        const Result<Partitioned> parts = Lay((*forms)[0], {fmt::format("d={}", ranks), shard});
        if (!parts.ok()) continue;
        EXPECT_EQ(StateBytesOf((*forms)[0], *parts), ZeroStateBytes((*forms)[0], stage, ranks))
            << spec << " " << ranks << " " << shard;
      }
    }
  }
}

// Stages 1 and 2 differ by the sums of gradients over batches.
TEST(StateBytes, OfSumsOverBatchesAreCutFromStage2On) {
  const Result<std::vector<Graph>> forms = FormsOf(kGpt, "adam", 2);
  ASSERT_TRUE(forms.ok()) << forms.status().message();
  const Graph& micro = (*forms)[0];
  const auto gradients = [&](const char* shard) {
    return StateBytesOf(micro, *Lay(micro, {"d=4", shard})).gradients;
  };
  EXPECT_EQ(gradients(""), ZeroStateBytes(micro, 0, 4).gradients);
  EXPECT_EQ(gradients("zero1"), gradients(""));
  EXPECT_EQ(gradients("zero2"), ZeroStateBytes(micro, 2, 4).gradients);
  EXPECT_LT(gradients("zero2"), gradients("zero1"));
}

// Until stage 2 no batch sends a gradient: the sums are complete once an update.
TEST(StateBytes, SumsOverBatchesStayPendingUntilTheUpdate) {
  const Result<std::vector<Graph>> forms = FormsOf(kGpt, "sgd", 2);
  ASSERT_TRUE(forms.ok()) << forms.status().message();
  const Graph &micro = (*forms)[0], &update = (*forms)[1];
  const size_t parameters = micro.ValuesOfKind(ValueKind::kParameter).size();
  constexpr size_t kNumbers = 4;  // loss and correct, and what they are divided by
  EXPECT_EQ(Lay(micro, {"d=4", "zero1"})->collectives.size(), kNumbers);
  EXPECT_EQ(Lay(micro, {"d=4", "zero2"})->collectives.size(), kNumbers + parameters);
  EXPECT_EQ(Lay(update, {"d=4", ""})->collectives.size(), parameters);
  for (const char* shard : {"", "zero1", "zero2", "zero3"}) {
    const Result<Partitioned> parts = Lay(micro, {"d=4", shard});
    const NamedNumbers inputs = NumbersOf(RandomInputs(micro, 1));
    EXPECT_EQ(CompareSteps(micro, *parts, micro, inputs, 2), "") << shard;
  }
}

}  // namespace
}  // namespace ridge
