#include "ridge/report/plan_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ridge/core/units.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/memory/phases.h"
#include "ridge/report/html.h"
#include "ridge/report/walked_chart.h"

namespace ridge {
namespace {

constexpr double kWide = 960, kLeft = 84, kRight = kWide - 12;

// ---- memory over a step

struct LivePoint {
  double x = 0, end = 0;
  NodeMemory memory;
  std::string name, text;
};

std::string LargestText(const std::vector<std::pair<std::string, int64_t>>& largest) {
  std::string text;
  for (const auto& [name, bytes] : largest)
    text += fmt::format("{}{} {}", text.empty() ? "; largest: " : ", ", name, FormatBytes(bytes));
  return text;
}

// By node; a node is as wide as its seconds, and none is invisible.
std::vector<LivePoint> LivePoints(const Program& program, const StepPlan& step) {
  const std::vector<NodeMemory> memory = MemoryByNode(program, step);
  const std::vector<double> seconds = PlannedNodeSeconds(step);
  double total = 0;
  for (size_t n = 0; n < seconds.size(); ++n)
    total += seconds[n] * static_cast<double>(RunsOf(step, n));
  const double wide = kRight - kLeft;
  const double even = 0.2 * wide / static_cast<double>(std::max<size_t>(seconds.size(), 1));
  std::vector<LivePoint> points;
  double x = kLeft;
  for (size_t n = 0; n < memory.size(); ++n) {
    const double node_s = seconds[n] * static_cast<double>(RunsOf(step, n));
    const double end = x + even + (total > 0 ? 0.8 * wide * node_s / total : 0);
    const PlannedNode& node = step.nodes[n];
    points.push_back({x, end, memory[n], node.name,
                      fmt::format("{} ({}), {}: {} live, {}{}", node.name, node.op, memory[n].phase,
                                  FormatBytes(memory[n].bytes), FormatSeconds(node_s),
                                  LargestText(memory[n].largest))});
    x = end;
  }
  return points;
}

class LiveChart {
 public:
  LiveChart(const Program& program, const StepPlan& step)
      : persistent_bytes_(program.device_persistent_bytes()),
        step_(step.name),
        points_(LivePoints(program, step)) {
    for (const LivePoint& point : points_) {
      if (peak_ == nullptr || point.memory.bytes > peak_->memory.bytes) peak_ = &point;
    }
  }

  std::string Text() const {
    if (points_.empty()) return "";
    WalkedChart chart;
    chart.step = step_;
    chart.caption = fmt::format("{}: at most {} live, at {}", step_,
                                FormatBytes(peak_->memory.bytes), peak_->name);
    chart.label = "Memory at each node of " + step_;
    chart.drawing = Grid() + Persistent() + Area() + Phases() + Peak();
    chart.cursor = fmt::format("<line y1=\"{}\" y2=\"{}\"/>", kTop, kBottom);
    chart.wide = kWide;
    chart.high = kBottom + 16;
    chart.keys = Keys();
    chart.hint = "Width is time. Hover, or focus and use arrow keys.";
    chart.stops = Stops();
    return WalkedFigure(chart);
  }

 private:
  static constexpr double kTop = 22, kBottom = 230;

  double Y(int64_t bytes) const {
    const double most = static_cast<double>(std::max<int64_t>(peak_->memory.bytes, 1));
    return kBottom - (kBottom - kTop) * static_cast<double>(bytes) / most;
  }

  // At 3 to 5 multiples of a power of two.
  std::string Grid() const {
    int64_t step = 1;
    while (peak_->memory.bytes / step >= 6) step *= 2;
    std::string text;
    for (int64_t bytes = 0; bytes <= peak_->memory.bytes; bytes += step)
      text += ChartLevel(kLeft, kRight, Y(bytes), FormatBytes(bytes));
    return text;
  }

  // Variables and inputs, which rest in their places.
  std::string Persistent() const {
    const double y = Y(persistent_bytes_);
    return fmt::format(
        "<rect class=\"base\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", kLeft,
        y, points_.back().end - kLeft, kBottom - y);
  }

  std::string Area() const {
    std::string shape = fmt::format("{},{}", kLeft, kBottom);
    for (const LivePoint& point : points_) {
      const double y = Y(point.memory.bytes);
      shape += fmt::format(" {:.2f},{:.1f} {:.2f},{:.1f}", point.x, y, point.end, y);
    }
    return fmt::format("<polygon class=\"area\" points=\"{} {:.2f},{}\"/>\n", shape,
                       points_.back().end, kBottom);
  }

  // A strip below the nodes; neighbours in one phase are one bar.
  std::string Phases() const {
    std::string text;
    for (size_t first = 0, end = 0; first < points_.size(); first = end) {
      const std::string& phase = points_[first].memory.phase;
      while (end < points_.size() && points_[end].memory.phase == phase) ++end;
      text += fmt::format(
          "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"6\"/>\n", phase,
          points_[first].x, kBottom + 5, points_[end - 1].end - points_[first].x);
    }
    return text;
  }

  std::string Peak() const {
    const double x = (peak_->x + peak_->end) / 2;
    const bool is_right = x > (kLeft + kRight) / 2;
    return fmt::format(
        "<circle class=\"peak\" cx=\"{:.1f}\" cy=\"{}\" r=\"4\"/><text class=\"name\" "
        "x=\"{:.1f}\" y=\"14\" text-anchor=\"{}\">{}</text>\n",
        x, kTop, x, is_right ? "end" : "start", HtmlEscaped(FormatBytes(peak_->memory.bytes)));
  }

  std::string Keys() const {
    std::string text;
    std::set<std::string> seen;
    for (const LivePoint& point : points_) {
      if (seen.insert(point.memory.phase).second)
        text += ChartKey(point.memory.phase, point.memory.phase);
    }
    return text + fmt::format("<span>darker: variables and inputs, {}</span>",
                              FormatBytes(persistent_bytes_));
  }

  std::vector<ChartStop> Stops() const {
    std::vector<ChartStop> stops;
    for (const LivePoint& point : points_)
      stops.push_back({(point.x + point.end) / 2, 0, point.text, point.end, point.memory.bytes});
    return stops;
  }

  const int64_t persistent_bytes_;
  const std::string step_;
  const std::vector<LivePoint> points_;
  const LivePoint* peak_ = nullptr;
};

// ---- roofline

struct RooflinePoint {
  double intensity = 0, flops_per_s = 0, share = 0;
  std::string text, bound;
};

// The longest node first, so that short ones are not hidden below it.
std::vector<RooflinePoint> RooflinePoints(const PlanSummary& plan) {
  std::vector<RooflinePoint> points;
  for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
    const std::vector<double> seconds = PlannedNodeSeconds(*part.step);
    for (size_t n = 0; n < seconds.size(); ++n) {
      const PlannedNode& node = part.step->nodes[n];
      const double bytes = static_cast<double>(node.cost.bytes_read + node.cost.bytes_written);
      const double flops = static_cast<double>(node.cost.flops);
      if (flops <= 0 || bytes <= 0 || seconds[n] <= 0) continue;
      const double rate = flops / seconds[n];
      const std::string bound = BoundName(node.bound);
      points.push_back(
          {flops / bytes, rate, plan.step_s > 0 ? seconds[n] / plan.step_s : 0,
           fmt::format("{} ({}): {}, {:.3g} FLOP a byte, {}, bound by {}", node.name, node.op,
                       FormatRate(rate, "FLOP"), flops / bytes, FormatSeconds(seconds[n]), bound),
           bound});
    }
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return points;
}

// A logarithmic axis of whole decades.
struct Decades {
  double low = 0, high = 1;  // exponents of ten
  bool known = false;

  void Take(double value) {
    if (value <= 0 || !std::isfinite(value)) return;
    const double exponent = std::log10(value);
    low = known ? std::min(low, std::floor(exponent)) : std::floor(exponent);
    high = std::max(known ? high : low + 1, std::ceil(exponent));
    known = true;
  }
  double At(double value) const { return (std::log10(value) - low) / (high - low); }
};

class RooflineDrawing {
 public:
  RooflineDrawing(const PlanSummary& plan, const RooflineLimits& limits)
      : limits_(limits), points_(RooflinePoints(plan)) {
    for (const RooflinePoint& point : points_) {
      x_.Take(point.intensity);
      y_.Take(point.flops_per_s);
    }
    y_.Take(limits.peak_flops_per_s);
  }

  std::string Text() const {
    if (points_.empty()) return "";
    WalkedChart chart;
    chart.caption = Caption();
    chart.label = "Nodes of the roofline, longest first";
    chart.drawing = Grid() + Roof() + Circles();
    chart.cursor = "<circle r=\"9\"/>";
    chart.wide = kWide;
    chart.high = kBottom + 36;
    chart.keys = "<span>bound by:</span>" + ChartKey("compute", "compute") +
                 ChartKey("memory", "memory") + ChartKey("latency", "latency") +
                 "<span>larger: more of the step's time</span>";
    chart.hint =
        "Hover, or focus and use arrow keys, longest node first. All nodes stand in the "
        "table below.";
    for (const RooflinePoint& point : points_)
      chart.stops.push_back({X(point.intensity), Y(point.flops_per_s), point.text});
    return WalkedFigure(chart);
  }

 private:
  static constexpr double kTop = 10, kBottom = 300;

  double X(double value) const { return kLeft + (kRight - kLeft) * x_.At(value); }
  double Y(double value) const { return kBottom - (kBottom - kTop) * y_.At(value); }

  std::string Caption() const {
    if (limits_.peak_flops_per_s <= 0 || limits_.bytes_per_s <= 0)
      return "FLOP/s by FLOP a byte; the device's limits are not known";
    return fmt::format("FLOP/s by FLOP a byte; limits {} and {} of memory",
                       FormatRate(limits_.peak_flops_per_s, "FLOP"),
                       FormatRate(limits_.bytes_per_s, "B"));
  }

  std::string Grid() const {
    std::string text;
    for (double e = y_.low; e <= y_.high; ++e)
      text += ChartLevel(kLeft, kRight, Y(std::pow(10, e)), FormatRate(std::pow(10, e), "FLOP"));
    for (double e = x_.low; e <= x_.high; ++e) {
      text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{:g}</text>\n",
                          X(std::pow(10, e)), kBottom + 16, e == x_.high ? "end" : "middle",
                          std::pow(10, e));
    }
    return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">FLOP a byte</text>\n",
                              (kLeft + kRight) / 2, kBottom + 32);
  }

  // min(peak, bandwidth x intensity), clipped to the chart.
  std::string Roof() const {
    const double peak = limits_.peak_flops_per_s, bandwidth = limits_.bytes_per_s;
    if (peak <= 0 || bandwidth <= 0) return "";
    std::string path;
    constexpr int kPoints = 200;
    for (int i = 0; i <= kPoints; ++i) {
      const double exponent = x_.low + (x_.high - x_.low) * i / kPoints;
      const double intensity = std::pow(10, exponent);
      const double rate = std::max(std::min(peak, bandwidth * intensity), std::pow(10, y_.low));
      path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", X(intensity), Y(rate));
    }
    return fmt::format("<path class=\"roof\" d=\"{}\"/>\n", path);
  }

  std::string Circles() const {
    std::string text;
    for (const RooflinePoint& point : points_) {
      text += fmt::format(
          "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" "
          "fill-opacity=\"0.7\"><title>{}</title></circle>\n",
          point.bound, X(point.intensity), Y(point.flops_per_s),
          3 + 14 * std::sqrt(std::min(1.0, point.share)), HtmlEscaped(point.text));
    }
    return text;
  }

  const RooflineLimits limits_;
  const std::vector<RooflinePoint> points_;
  Decades x_, y_;
};

}  // namespace

std::string LiveCharts(const Program& program) {
  std::string text;
  for (const StepPlan& step : program.steps) text += LiveChart(program, step).Text();
  return text;
}

std::string RooflineChart(const PlanSummary& plan, const RooflineLimits& limits) {
  return RooflineDrawing(plan, limits).Text();
}

}  // namespace ridge
