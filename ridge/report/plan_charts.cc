// All charts share one drawing size and one script: what a cursor can reach is an array of
// {x, y, text} beside the SVG, in units of its view box.
#include "ridge/report/plan_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "ridge/core/units.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/memory/phases.h"
#include "ridge/report/html.h"

namespace ridge {

const char kChartStyle[] =
    ".walk{overflow-x:auto}.walk:focus-visible{outline:2px solid var(--c0);outline-offset:2px}\n"
    ".walk svg{min-width:640px}figure.walks{margin-bottom:12px}\n"
    ".walks .told{min-height:3em}.walks .cursor{stroke:var(--c3);stroke-width:2;fill:none}\n"
    "svg .area{fill:var(--c0);fill-opacity:.35;stroke:var(--c0)}\n"
    "svg .base{fill:var(--c0);fill-opacity:.35}svg .peak{fill:var(--c1)}\n"
    "svg text.name{fill:var(--text)}\n"
    ".forward{fill:var(--c0);background:var(--c0)}.backward{fill:var(--c1);background:var(--c1)}\n"
    ".optimizer{fill:var(--c2);background:var(--c2)}\n"
    ".evaluation{fill:var(--c3);background:var(--c3)}\n"
    ".compute{fill:var(--c1);background:var(--c1)}.memory{fill:var(--c0);background:var(--c0)}\n"
    ".latency{fill:var(--soft);background:var(--soft)}svg .roof{stroke:var(--text)}\n"
    "@media print{.walk svg{min-width:0}.walks .told,.walks .cursor{display:none}}\n";

const char kChartScript[] = R"(<script>
for (const figure of document.querySelectorAll('.walks')) {
  const chart = figure.querySelector('.walk'), svg = figure.querySelector('svg');
  const nodes = JSON.parse(figure.querySelector('script').textContent);
  const told = figure.querySelector('.told'), cursor = figure.querySelector('.cursor');
  let at = -1;
  const show = i => {
    at = Math.max(0, Math.min(nodes.length - 1, i));
    cursor.setAttribute('transform', `translate(${nodes[at].x} ${nodes[at].y})`);
    cursor.style.display = '';
    told.textContent = nodes[at].text;
    chart.setAttribute('aria-valuenow', at + 1);
    chart.setAttribute('aria-valuetext', nodes[at].text);
  };
  const nearest = (x, y) => {
    if ('end' in nodes[0]) return nodes.findIndex(n => n.end > x);
    const far = n => Math.hypot(n.x - x, n.y - y);
    return nodes.reduce((best, n, i) => far(n) < far(nodes[best]) ? i : best, 0);
  };
  const attributes = {role: 'slider', tabindex: 0, 'aria-label': chart.dataset.label,
    'aria-valuemin': 1, 'aria-valuemax': nodes.length, 'aria-valuenow': 1,
    'aria-valuetext': nodes[0].text};
  for (const [name, value] of Object.entries(attributes)) chart.setAttribute(name, value);
  svg.onmousemove = event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const i = nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    show(i < 0 ? nodes.length - 1 : i);
  };
  chart.onkeydown = event => {
    const steps = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageDown: 10,
      PageUp: -10, Home: -nodes.length, End: nodes.length};
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(at + steps[event.key]);
  };
}
</script>
)";

std::string DataElement(const std::string& id, const std::string& json) {
  std::string text;  // no tag may begin in it
  for (const char c : json) text += c == '<' ? "\\u003c" : std::string(1, c);
  return fmt::format("<script type=\"application/json\"{}>{}</script>\n",
                     id.empty() ? "" : fmt::format(" id=\"{}\"", id), text);
}

namespace {

using Json = nlohmann::ordered_json;

constexpr double kWide = 960, kLeft = 84, kRight = kWide - 12;

double Tenths(double value) { return std::round(10 * value) / 10; }

std::string DataOf(const Json& nodes) {
  return DataElement("", nodes.dump(-1, ' ', false, Json::error_handler_t::replace));
}

struct Figure {
  std::string attributes;  // of the element, with a blank before them
  std::string caption;
  std::string label;  // of the slider
  std::string drawing, cursor;
  double high = 0;
  std::string keys, hint;
  Json nodes;
};

std::string FigureText(const Figure& figure) {
  return fmt::format(
             "<figure class=\"walks\"{}>\n<figcaption>{}</figcaption>\n"
             "<div class=\"walk\" data-label=\"{}\">\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
             "aria-label=\"{}\">\n{}<g class=\"cursor\" style=\"display:none\">{}</g></svg></div>\n"
             "<div class=\"key\">{}</div>\n<p class=\"told soft\">{}</p>\n",
             figure.attributes, HtmlEscaped(figure.caption), HtmlEscaped(figure.label), kWide,
             figure.high, HtmlEscaped(figure.caption), figure.drawing, figure.cursor, figure.keys,
             figure.hint) +
         DataOf(figure.nodes) + "</figure>\n";
}

std::string Key(const std::string& name, const std::string& text) {
  return fmt::format("<span><i class=\"{}\"></i>{}</span>", name, text);
}

std::string HorizontalLine(double y, const std::string& name) {
  return fmt::format(
      "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
      "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
      kLeft, kRight, y, kLeft - 6, y + 4, name);
}

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
      : persistent_bytes_(program.persistent_bytes),
        step_(step.name),
        points_(LivePoints(program, step)) {
    for (const LivePoint& point : points_) {
      if (peak_ == nullptr || point.memory.bytes > peak_->memory.bytes) peak_ = &point;
    }
  }

  std::string Text() const {
    if (points_.empty()) return "";
    Figure figure;
    figure.attributes = fmt::format(" data-step=\"{}\"", HtmlEscaped(step_));
    figure.caption = fmt::format("{}: at most {} live, at {}", step_,
                                 FormatBytes(peak_->memory.bytes), peak_->name);
    figure.label = "Memory at each node of " + step_;
    figure.drawing = Grid() + Persistent() + Area() + Phases() + Peak();
    figure.cursor = fmt::format("<line y1=\"{}\" y2=\"{}\"/>", kTop, kBottom);
    figure.high = kBottom + 16;
    figure.keys = Keys();
    figure.hint = "Width is time. Hover, or focus and use arrow keys.";
    figure.nodes = Nodes();
    return FigureText(figure);
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
      text += HorizontalLine(Y(bytes), FormatBytes(bytes));
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
        text += Key(point.memory.phase, point.memory.phase);
    }
    return text + fmt::format("<span>darker: variables and inputs, {}</span>",
                              FormatBytes(persistent_bytes_));
  }

  Json Nodes() const {
    Json nodes = Json::array();
    for (const LivePoint& point : points_) {
      nodes.push_back({{"x", Tenths((point.x + point.end) / 2)},
                       {"y", 0},
                       {"end", std::round(100 * point.end) / 100},
                       {"bytes", point.memory.bytes},
                       {"text", point.text}});
    }
    return nodes;
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
    Figure figure;
    figure.caption = Caption();
    figure.label = "Nodes of the roofline, longest first";
    figure.drawing = Grid() + Roof() + Circles();
    figure.cursor = "<circle r=\"9\"/>";
    figure.high = kBottom + 36;
    figure.keys = "<span>bound by:</span>" + Key("compute", "compute") + Key("memory", "memory") +
                  Key("latency", "latency") + "<span>larger: more of the step's time</span>";
    figure.hint =
        "Hover, or focus and use arrow keys, longest node first. All nodes stand in the "
        "table below.";
    figure.nodes = Json::array();
    for (const RooflinePoint& point : points_) {
      figure.nodes.push_back({{"x", Tenths(X(point.intensity))},
                              {"y", Tenths(Y(point.flops_per_s))},
                              {"text", point.text}});
    }
    return FigureText(figure);
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
      text += HorizontalLine(Y(std::pow(10, e)), FormatRate(std::pow(10, e), "FLOP"));
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
