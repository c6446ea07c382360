#include "ridge/use/run_findings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ridge {
namespace {

MetricsReport At(int64_t step, double loss) {
  MetricsReport report;
  report.step = step;
  report.loss = loss;
  return report;
}

MetricsReport Evaluated(int64_t step, double loss) {
  MetricsReport report = At(step, loss);
  report.evaluation_loss = loss;
  return report;
}

ClassMetrics Class(const std::string& name, int64_t support, int64_t hits) {
  ClassMetrics one;
  one.name = name;
  one.support = support;
  one.hits = hits;
  one.recall = static_cast<double>(hits) / static_cast<double>(support);
  return one;
}

TEST(RunFindingsTest, NothingIsToldOfARunThatWentWell) {
  const RunCurves curves = {{At(10, 1), At(20, 0.5)}, {Evaluated(10, 1.1), Evaluated(20, 0.6)}};
  EXPECT_TRUE(FindingsOf({}, curves, std::nullopt).empty());
}

TEST(RunFindingsTest, ARisingValidationLossUnderAFallingTrainingLossIsOverfitting) {
  RunCurves curves = {{At(10, 1), At(20, 0.5), At(30, 0.2)},
                      {Evaluated(10, 1), Evaluated(20, 0.8), Evaluated(30, 1.2)}};
  const auto findings = FindingsOf({}, curves, std::nullopt);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0],
            "It overfits: since step 20 the validation loss has risen from 0.8000 to 1.2000, while "
            "the training loss fell from 0.5000 to 0.2000. Take --checkpoint best; or more data, "
            "--augment, --weight-decay, --patience.");
  curves.training.back().loss = 0.9;  // both rise: that is no overfitting
  EXPECT_TRUE(FindingsOf({}, curves, std::nullopt).empty());
}

TEST(RunFindingsTest, ALossThatIsNoNumberComesFirst) {
  const RunCurves curves = {{At(10, 1), At(20, std::numeric_limits<double>::infinity())}, {}};
  const auto findings = FindingsOf({}, curves, std::nullopt);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0],
            "The loss is no number from step 20 on. Try a smaller --lr, or --clip-norm 1.");
}

LayerReport Layers(int64_t step, const std::vector<double>& gradients) {
  LayerReport report{step, {}};
  for (const double gradient : gradients)
    report.layers.push_back({"fc" + std::to_string(report.layers.size() + 1), 0.1, gradient});
  return report;
}

TEST(RunFindingsTest, LayersWithoutGradientsAreNamedAsVanishing) {
  RunCurves curves;
  curves.layers = {Layers(10, {1e-9, 1e-12, 1e-5, 1e-2})};
  const auto findings = FindingsOf({}, curves, std::nullopt);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0],
            "Gradients vanish: those of 'fc2' and of 1 more (of 4 layers) are below a millionth of "
            "those of 'fc4'. Try normalization, residual connections, or relu in place of sigmoid "
            "and tanh.");
  curves.layers = {Layers(10, {1e-6, 1e-5, 1e-2})};  // a usual range
  EXPECT_TRUE(FindingsOf({}, curves, std::nullopt).empty());
  curves.layers = {Layers(10, {0, 0})};  // all at rest
  EXPECT_TRUE(FindingsOf({}, curves, std::nullopt).empty());
}

TEST(RunFindingsTest, GradientsThatGrowAThousandfoldAreNamedAsExploding) {
  RunCurves curves;
  curves.layers = {Layers(10, {1e-3, 1e-3}), Layers(20, {2e-3, 4})};
  const auto findings = FindingsOf({}, curves, std::nullopt);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0],
            "Gradients explode: those of 'fc2' have grown 4000-fold from step 10 to 20. Try a "
            "smaller --lr, or --clip-norm 1.");
  curves.layers.back() = Layers(20, {1e-3, 0.5});
  EXPECT_TRUE(FindingsOf({}, curves, std::nullopt).empty());
}

TEST(RunFindingsTest, GuessingIsToldByTheLargestClass) {
  EvaluationRecord record;
  record.samples = 100;
  record.accuracy = 0.9;
  record.classes = {Class("common", 90, 90), Class("rare", 10, 0)};
  record.confusion = {90, 0, 10, 0};
  const auto findings = FindingsOf({}, {}, record);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0],
            "An accuracy of 90.0 % is no better than always saying one class of 2 (90.0 % of the "
            "samples are of the largest). Try another --lr (--sweep), more epochs, and `ridge "
            "data`.");
  EXPECT_EQ(findings[1],
            "Of the 10 samples of 'rare' it finds 0.0 %. Look at them below, and at how many the "
            "training data have.");
  EXPECT_EQ(findings[2], "100.0 % of 'rare' are taken for 'common'.");
}

TEST(RunFindingsTest, WaitingAndAWrongPlanAreTold) {
  RunOverview run;
  run.summary.emplace();
  run.summary->planned.step_s = 0.010;
  run.summary->measured.step_s = 0.020;
  MetricsReport waits = At(10, 1);
  waits.input_wait = 0.25;
  const auto findings = FindingsOf(run, {{waits, waits}, {}}, std::nullopt);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0],
            "Steps wait 25.0 % of their time for data. `ridge data SPEC --bench` says which stage "
            "takes how long; --workers gives it more threads.");
  EXPECT_EQ(findings[1],
            "The plan's step time was off by -50.0 %: other programs may have run beside it, then "
            "or while the machine was measured (`ridge bench device`).");
}

TEST(RunFindingsTest, LinesThatAreNoReportsAreLeftOut) {
  const RunCurves curves =
      ReadRunCurves({MetricsLine(At(1, 2)), "{\"step\":", "", MetricsLine(Evaluated(1, 3))});
  EXPECT_EQ(curves.training.size(), 1u);
  EXPECT_EQ(curves.evaluations.size(), 1u);
}

}  // namespace
}  // namespace ridge
