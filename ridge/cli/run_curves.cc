#include "ridge/cli/run_curves.h"

#include <algorithm>

#include "ridge/observe/metrics.h"
#include "ridge/report/html.h"
#include "ridge/report/line_chart.h"

namespace ridge::cli {
namespace {

using Points = std::vector<std::pair<double, double>>;

struct Curve {
  Points loss, accuracy;  // percent
  void Add(int64_t step, double a_loss, const std::optional<double>& an_accuracy) {
    const auto x = static_cast<double>(step);
    loss.emplace_back(x, a_loss);
    if (an_accuracy) accuracy.emplace_back(x, *an_accuracy * 100);
  }
};

struct Curves {
  std::string name;
  Curve training, evaluation;
  std::string evaluated_on;  // "" without evaluations
};

Curves ReadCurves(const Run& run) {
  Curves curves;
  curves.name = run.path();
  for (const std::string& line : run.MetricsLines()) {
    const std::optional<MetricsReport> report = ParseMetricsLine(line);
    if (!report) continue;
    if (report->evaluation_loss) {
      curves.evaluation.Add(report->step, *report->evaluation_loss, report->evaluation_accuracy);
      curves.evaluated_on = report->evaluated_on;
    } else {
      curves.training.Add(report->step, report->loss, report->accuracy);
    }
  }
  return curves;
}

std::vector<Curves> ReadAll(const std::vector<Run>& runs) {
  std::vector<Curves> curves;
  for (const Run& run : runs) curves.push_back(ReadCurves(run));
  return curves;
}

// "validation", or "evaluation" where runs were evaluated on different data; "" without any.
std::string EvaluatedOn(const std::vector<Curves>& runs) {
  std::string on;
  for (const Curves& run : runs) {
    if (run.evaluated_on.empty() || run.evaluated_on == on) continue;
    on = on.empty() ? run.evaluated_on : "evaluation";
  }
  return on;
}

// A line for each run that has points.
LineChart Together(const std::vector<Curves>& runs, const std::string& title, Curve Curves::*part,
                   Points Curve::*what) {
  LineChart chart{title, "step", {}};
  for (const Curves& run : runs) {
    const Points& points = run.*part.*what;
    if (!points.empty()) chart.lines.push_back({run.name, points});
  }
  if (chart.lines.size() == 1) chart.title += " of " + chart.lines.front().name;
  return chart;
}

// `what`: Curve::loss or Curve::accuracy.
LineChart ChartOf(const std::vector<Curves>& runs, const std::string& title, Points Curve::*what) {
  LineChart chart{title, "step", {}};
  if (runs.size() == 1) {
    const Curves& run = runs.front();
    chart.lines.push_back({"training", run.training.*what});
    if (!run.evaluated_on.empty()) chart.lines.push_back({run.evaluated_on, run.evaluation.*what});
    return chart;
  }
  const bool evaluated =
      std::all_of(runs.begin(), runs.end(), [](const auto& r) { return !r.evaluated_on.empty(); });
  chart.title = (evaluated ? runs.front().evaluated_on : "training") + (" " + title);
  for (const Curves& run : runs)
    chart.lines.push_back({run.name, (evaluated ? run.evaluation : run.training).*what});
  return chart;
}

}  // namespace

std::string CurvesText(const std::vector<Run>& runs, const Terminal& terminal) {
  const std::vector<Curves> curves = ReadAll(runs);
  const std::string loss = LineChartText(ChartOf(curves, "loss", &Curve::loss), terminal);
  const std::string accuracy =
      LineChartText(ChartOf(curves, "accuracy, %", &Curve::accuracy), terminal);
  return loss + (accuracy.empty() ? "" : "\n") + accuracy;
}

std::string CurvesHtml(const std::vector<Run>& runs) {
  const std::vector<Curves> curves = ReadAll(runs);
  const std::string on = EvaluatedOn(curves);
  const auto chart = [&](const std::string& title, auto part, auto what) {
    return SvgLineChart(Together(curves, title, part, what));
  };
  const std::string text = chart("training loss", &Curves::training, &Curve::loss) +
                           chart("training accuracy, %", &Curves::training, &Curve::accuracy) +
                           chart(on + " loss", &Curves::evaluation, &Curve::loss) +
                           chart(on + " accuracy, %", &Curves::evaluation, &Curve::accuracy);
  return text.empty() ? "" : "<h2>Curves</h2>\n<div class=\"charts\">\n" + text + "</div>\n";
}

}  // namespace ridge::cli
