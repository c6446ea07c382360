#include "ridge/use/run_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/core/units.h"

namespace ridge {
namespace {

using Found = std::optional<std::string>;

Found BadLoss(const RunCurves& curves) {
  const auto bad = std::find_if(curves.training.begin(), curves.training.end(),
                                [](const MetricsReport& r) { return !std::isfinite(r.loss); });
  if (bad == curves.training.end()) return std::nullopt;
  return fmt::format("The loss is no number from step {} on. Try a smaller --lr, or --clip-norm 1.",
                     bad->step);
}

// The layers whose gradients are below a millionth of the largest layer's do not learn.
Found Vanishes(const RunCurves& curves) {
  constexpr double kTiny = 1e-6;
  if (curves.layers.empty()) return std::nullopt;
  const std::vector<LayerNorms>& layers = curves.layers.back().layers;
  const LayerNorms* largest = nullptr;
  for (const LayerNorms& layer : layers) {
    const double gradient = layer.gradient_rms.value_or(0);
    if (std::isfinite(gradient) && gradient > (largest ? *largest->gradient_rms : 0))
      largest = &layer;
  }
  if (largest == nullptr) return std::nullopt;
  std::vector<const LayerNorms*> tiny;
  for (const LayerNorms& layer : layers) {
    if (layer.gradient_rms && *layer.gradient_rms < kTiny * *largest->gradient_rms)
      tiny.push_back(&layer);
  }
  if (tiny.empty()) return std::nullopt;
  const LayerNorms* least = *std::min_element(
      tiny.begin(), tiny.end(),
      [](const auto* a, const auto* b) { return *a->gradient_rms < *b->gradient_rms; });
  const std::string others =
      tiny.size() == 1 ? "" : fmt::format(" and of {} more", tiny.size() - 1);
  return fmt::format(
      "Gradients vanish: those of '{}'{} (of {} layers) are below a millionth of those of '{}'. "
      "Try "
      "normalization, residual connections, or relu in place of sigmoid and tanh.",
      least->name, others, layers.size(), largest->name);
}

// A layer's gradients have grown a thousandfold since the first report.
Found Explodes(const RunCurves& curves) {
  constexpr double kMuch = 1000;
  if (curves.layers.size() < 2) return std::nullopt;
  const LayerReport &first = curves.layers.front(), &last = curves.layers.back();
  std::string worst;
  double most = kMuch;
  for (size_t i = 0; i < std::min(first.layers.size(), last.layers.size()); ++i) {
    const LayerNorms &then = first.layers[i], &now = last.layers[i];
    if (then.name != now.name || !(then.gradient_rms.value_or(0) > 0)) continue;
    const double growth = now.gradient_rms.value_or(0) / *then.gradient_rms;
    if (!(growth > most)) continue;
    most = growth;
    worst = now.name;
  }
  if (worst.empty()) return std::nullopt;
  return fmt::format(
      "Gradients explode: those of '{}' have grown {:.0f}-fold from step {} to {}. Try a smaller "
      "--lr, or --clip-norm 1.",
      worst, most, first.step, last.step);
}

// The training loss that was reported last at or before a step.
std::optional<double> TrainingLossAt(const RunCurves& curves, int64_t step) {
  std::optional<double> loss;
  for (const MetricsReport& report : curves.training) {
    if (report.step <= step) loss = report.loss;
  }
  return loss;
}

// The validation loss has risen by a tenth since its lowest value while the training loss fell.
Found Overfits(const RunCurves& curves) {
  constexpr double kRise = 1.1;
  if (curves.evaluations.size() < 2) return std::nullopt;
  const auto lowest = std::min_element(
      curves.evaluations.begin(), curves.evaluations.end(),
      [](const auto& a, const auto& b) { return *a.evaluation_loss < *b.evaluation_loss; });
  const MetricsReport& last = curves.evaluations.back();
  const auto then = TrainingLossAt(curves, lowest->step), now = TrainingLossAt(curves, last.step);
  const bool rises = *last.evaluation_loss > kRise * *lowest->evaluation_loss;
  if (!rises || !then || !now || !(*now < *then)) return std::nullopt;
  return fmt::format(
      "It overfits: since step {} the {} loss has risen from {:.4f} to {:.4f}, while the training "
      "loss fell from {:.4f} to {:.4f}. Take --checkpoint best; or more data, --augment, "
      "--weight-decay, --patience.",
      lowest->step, last.evaluated_on, *lowest->evaluation_loss, *last.evaluation_loss, *then,
      *now);
}

Found Guesses(const EvaluationRecord& evaluation) {
  constexpr double kAboveChance = 1.3;
  const size_t classes = evaluation.classes.size();
  if (!evaluation.accuracy || classes < 2 || evaluation.samples == 0) return std::nullopt;
  int64_t most = 0;
  for (const ClassMetrics& one : evaluation.classes) most = std::max(most, one.support);
  const double largest = static_cast<double>(most) / static_cast<double>(evaluation.samples);
  if (*evaluation.accuracy > std::min(1.0, kAboveChance / static_cast<double>(classes)) &&
      *evaluation.accuracy > largest)
    return std::nullopt;
  return fmt::format(
      "An accuracy of {} is no better than always saying one class of {} ({} of the samples are of "
      "the largest). Try another --lr (--sweep), more epochs, and `ridge data`.",
      FormatPercent(*evaluation.accuracy), classes, FormatPercent(largest));
}

Found MissedClass(const EvaluationRecord& evaluation) {
  constexpr int64_t kLeastSupport = 5;
  const ClassMetrics* worst = nullptr;
  for (const ClassMetrics& one : evaluation.classes) {
    if (!one.recall || one.support < kLeastSupport) continue;
    if (worst == nullptr || *one.recall < *worst->recall) worst = &one;
  }
  if (worst == nullptr || !evaluation.accuracy || *worst->recall > *evaluation.accuracy / 2)
    return std::nullopt;
  return fmt::format(
      "Of the {} {} of '{}' it finds {}. Look at them below, and at how many the training "
      "data "
      "have.",
      worst->support, evaluation.pixels ? "pixels" : "samples", worst->name,
      FormatPercent(*worst->recall));
}

Found ConfusedPair(const EvaluationRecord& evaluation) {
  constexpr double kMuch = 0.2;
  const size_t n = evaluation.classes.size();
  if (evaluation.confusion.size() != n * n) return std::nullopt;
  size_t at = 0;
  double most = 0;
  for (size_t cell = 0; cell < n * n; ++cell) {
    const int64_t support = evaluation.classes[cell / n].support;
    if (cell / n == cell % n || support < 5) continue;
    const double share =
        static_cast<double>(evaluation.confusion[cell]) / static_cast<double>(support);
    if (share <= most) continue;
    most = share;
    at = cell;
  }
  if (most < kMuch) return std::nullopt;
  return fmt::format("{} of '{}' are taken for '{}'.", FormatPercent(most),
                     evaluation.classes[at / n].name, evaluation.classes[at % n].name);
}

Found WaitsForData(const RunCurves& curves) {
  constexpr double kMuch = 0.05;
  if (curves.training.size() < 2) return std::nullopt;
  double sum = 0;
  for (const MetricsReport& report : curves.training) sum += report.input_wait;
  const double mean = sum / static_cast<double>(curves.training.size());
  if (!(mean > kMuch)) return std::nullopt;
  return fmt::format(
      "Steps wait {} of their time for data. `ridge data SPEC --bench` says which stage takes how "
      "long; --workers gives it more threads.",
      FormatPercent(mean));
}

Found PlanWasWrong(const RunOverview& run) {
  constexpr double kMuch = 0.15;
  if (!run.summary || run.summary->measured.step_s <= 0) return std::nullopt;
  const double error = run.summary->planned.step_s / run.summary->measured.step_s - 1;
  if (std::abs(error) < kMuch) return std::nullopt;
  return fmt::format(
      "The plan's step time was off by {}: other programs may have run beside it, then or while "
      "the "
      "machine was measured (`ridge bench device`).",
      FormatPercentChange(error));
}

}  // namespace

RunCurves ReadRunCurves(const std::vector<std::string>& lines) {
  RunCurves curves;
  for (const std::string& line : lines) {
    std::optional<MetricsReport> report = ParseMetricsLine(line);
    if (!report) continue;
    (report->evaluation_loss ? curves.evaluations : curves.training).push_back(std::move(*report));
  }
  return curves;
}

std::vector<std::string> FindingsOf(const RunOverview& run, const RunCurves& curves,
                                    const std::optional<EvaluationRecord>& evaluation) {
  std::vector<Found> found = {BadLoss(curves), Vanishes(curves), Explodes(curves),
                              Overfits(curves)};
  if (evaluation) {
    found.push_back(Guesses(*evaluation));
    found.push_back(MissedClass(*evaluation));
    found.push_back(ConfusedPair(*evaluation));
  }
  found.push_back(WaitsForData(curves));
  found.push_back(PlanWasWrong(run));
  std::vector<std::string> findings;
  for (Found& one : found) {
    if (one) findings.push_back(std::move(*one));
  }
  return findings;
}

}  // namespace ridge
