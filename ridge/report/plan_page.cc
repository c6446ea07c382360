// The tables are made once, as grids, for both forms; charts are SVG that says all without a
// script, which adds a cursor that the mouse and arrow keys move.
#include "ridge/report/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/memory/phases.h"
#include "ridge/report/choose_details.h"
#include "ridge/report/grid.h"
#include "ridge/report/html.h"
#include "ridge/report/plan_tables.h"

namespace ridge {
namespace {

constexpr char kStyle[] =
    ".verdict{font-size:17px;margin:6px 0 2px}\n"
    ".live{margin-bottom:12px}.live:focus-visible{outline:2px solid var(--c0)}\n"
    ".live svg polygon{fill:var(--c0);fill-opacity:.35;stroke:var(--c0)}\n"
    ".live .cursor{stroke:var(--c1);stroke-width:2}.live output{display:block;min-height:3em}\n"
    "circle.compute{fill:var(--c1)}circle.memory{fill:var(--c0)}circle.latency{fill:var(--soft)}\n"
    "svg .roof{stroke:var(--text)}\n"
    "section{margin-top:36px;padding-top:14px;border-top:1px solid var(--line)}\n"
    "@media print{body{max-width:none;padding:0}figure,table{break-inside:avoid}"
    "details>summary{display:none}.live .cursor{display:none}}\n";

// The node under the mouse, or the next one by an arrow key, is told in words.
constexpr char kScript[] = R"(<script>
for(const f of document.querySelectorAll('.live')){
const nodes=JSON.parse(f.querySelector('script').textContent),out=f.querySelector('output'),
line=f.querySelector('.cursor'),svg=f.querySelector('svg');let at=-1;
function show(i){at=Math.max(0,Math.min(nodes.length-1,i));const n=nodes[at];
line.setAttribute('x1',n.x);line.setAttribute('x2',n.x);line.style.display='';out.textContent=n.text}
svg.onmousemove=e=>{const r=svg.getBoundingClientRect(),x=(e.clientX-r.left)/r.width*960;
let i=nodes.findIndex(n=>n.end>x);show(i<0?nodes.length-1:i)};
f.onkeydown=e=>{const d={ArrowRight:1,ArrowLeft:-1,PageDown:10,PageUp:-10}[e.key];
if(d){e.preventDefault();show(at+d)}if(e.key==='Home')show(0);if(e.key==='End')show(nodes.length-1)}}
addEventListener('beforeprint',()=>{for(const d of document.querySelectorAll('details'))d.open=true});
</script>
)";

// Within a script element: no tag may begin.
std::string ScriptText(const std::string& json) {
  std::string out;
  for (const char c : json) out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

std::string DataElement(const char* id, const std::string& json) {
  return fmt::format("<script type=\"application/json\"{}>{}</script>\n",
                     id[0] == '\0' ? "" : fmt::format(" id=\"{}\"", id), ScriptText(json));
}

// ---- memory over the step

constexpr double kWide = 960, kHigh = 220;

struct LivePoint {
  double x = 0, end = 0;
  int64_t bytes = 0;
  std::string text;
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
  std::vector<LivePoint> points;
  const double even = 0.2 * kWide / static_cast<double>(std::max<size_t>(seconds.size(), 1));
  double x = 0;
  for (size_t n = 0; n < memory.size(); ++n) {
    const double node_s = seconds[n] * static_cast<double>(RunsOf(step, n));
    const double end = x + even + (total > 0 ? 0.8 * kWide * node_s / total : 0);
    points.push_back({x, end, memory[n].bytes,
                      fmt::format("{} ({}), {}: {} live, {}{}", step.nodes[n].name,
                                  step.nodes[n].op, memory[n].phase, FormatBytes(memory[n].bytes),
                                  FormatSeconds(node_s), LargestText(memory[n].largest))});
    x = end;
  }
  return points;
}

std::string LiveShape(const std::vector<LivePoint>& points, int64_t most) {
  std::string shape = fmt::format("0,{}", kHigh);
  for (const LivePoint& point : points) {
    const double y =
        kHigh - (kHigh - 10) * static_cast<double>(point.bytes) / static_cast<double>(most);
    shape += fmt::format(" {:.2f},{:.1f} {:.2f},{:.1f}", point.x, y, point.end, y);
  }
  return shape + fmt::format(" {:.2f},{}", points.back().end, kHigh);
}

std::string LiveChart(const Program& program, const StepPlan& step) {
  const std::vector<LivePoint> points = LivePoints(program, step);
  if (points.empty()) return "";
  int64_t most = 1;
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const LivePoint& point : points) {
    most = std::max(most, point.bytes);
    nodes.push_back({{"x", std::round(10 * (point.x + point.end) / 2) / 10},
                     {"end", std::round(100 * point.end) / 100},
                     {"bytes", point.bytes},
                     {"text", point.text}});
  }
  const std::string title = fmt::format("{}: at most {} live", step.name, FormatBytes(most));
  return fmt::format(
             "<figure class=\"live\" tabindex=\"0\" data-step=\"{0}\" aria-label=\"{1}; arrow keys "
             "go from node to node\">\n<figcaption>{1}</figcaption>\n"
             "<svg viewBox=\"0 0 {2} {3}\" role=\"img\" aria-label=\"{1}\">"
             "<polygon points=\"{4}\"/><line class=\"cursor\" y1=\"0\" y2=\"{3}\" "
             "style=\"display:none\"/></svg>\n"
             "<output aria-live=\"polite\" class=\"soft\">Width is time. Hover, or focus and use "
             "arrow keys.</output>\n",
             HtmlEscaped(step.name), HtmlEscaped(title), kWide, kHigh, LiveShape(points, most)) +
         DataElement("",
                     nodes.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) +
         "</figure>\n";
}

std::string LiveCharts(const Program& program) {
  std::string text;
  for (const StepPlan& step : program.steps) text += LiveChart(program, step);
  return text;
}

// The arena is what the charts show.
std::string BesideText(const PlanSummary& plan) {
  return fmt::format("Of the arena of {}; the process needs {} beside it.",
                     FormatBytes(plan.memory.arena_bytes),
                     FormatBytes(plan.memory.peak_bytes - plan.memory.arena_bytes));
}

// ---- roofline

struct RooflinePoint {
  double intensity = 0, flops_per_s = 0, share = 0;
  std::string text, bound;
};

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
      points.push_back(
          {flops / bytes, rate, plan.step_s > 0 ? seconds[n] / plan.step_s : 0,
           fmt::format("{} ({}): {}, {:.3g} FLOP a byte, {}", node.name, node.op,
                       FormatRate(rate, "FLOP"), flops / bytes, FormatSeconds(seconds[n])),
           BoundName(node.bound)});
    }
  }
  return points;
}

// Both axes are logarithmic, in whole decades.
struct Decades {
  double low = 0, high = 1;  // exponents of ten

  void Take(double value) {
    if (value <= 0 || !std::isfinite(value)) return;
    const double exponent = std::log10(value);
    low = known ? std::min(low, std::floor(exponent)) : std::floor(exponent);
    high = std::max(known ? high : low + 1, std::ceil(exponent));
    known = true;
  }
  double At(double value) const { return (std::log10(value) - low) / (high - low); }
  bool known = false;
};

class RooflineChart {
 public:
  explicit RooflineChart(const PlanOnPage& page) : page_(page), points_(RooflinePoints(page.plan)) {
    for (const RooflinePoint& point : points_) {
      x_.Take(point.intensity);
      y_.Take(point.flops_per_s);
    }
    y_.Take(page.peak_flops_per_s);
  }

  std::string Text() const {
    if (points_.empty()) return "";
    return fmt::format(
        "<h2>Roofline</h2>\n<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {} {}\" "
        "role=\"img\" aria-label=\"FLOP/s of the nodes by their FLOP a byte; the nodes are in the "
        "table below\">\n{}{}{}</svg>\n<div class=\"key\">{}</div></figure>\n",
        HtmlEscaped(Caption()), kWide, kSide + 26, Grid(), Roof(), Circles(), Keys());
  }

 private:
  static constexpr double kLeft = 84, kSide = 300;

  double X(double value) const { return kLeft + (kWide - kLeft - 10) * x_.At(value); }
  double Y(double value) const { return kSide - (kSide - 10) * y_.At(value); }

  std::string Caption() const {
    if (page_.peak_flops_per_s <= 0 || page_.bytes_per_s <= 0)
      return "FLOP/s by FLOP a byte; the device's limits are not known";
    return fmt::format("FLOP/s by FLOP a byte; limits {} and {} of memory",
                       FormatRate(page_.peak_flops_per_s, "FLOP"),
                       FormatRate(page_.bytes_per_s, "B"));
  }

  std::string Grid() const {
    std::string text;
    for (double e = y_.low; e <= y_.high; ++e) {
      const double y = Y(std::pow(10, e));
      text += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kLeft, kWide - 10, y, kLeft - 6, y + 4, FormatRate(std::pow(10, e), "FLOP"));
    }
    for (double e = x_.low; e <= x_.high; ++e) {
      text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
                          std::min(X(std::pow(10, e)), kWide - 24), kSide + 18, std::pow(10, e));
    }
    return text;
  }

  // min(peak, bandwidth x intensity), clipped to the chart.
  std::string Roof() const {
    const double peak = page_.peak_flops_per_s, bandwidth = page_.bytes_per_s;
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

  // The longest node first, so that short ones are not hidden below it.
  std::string Circles() const {
    std::vector<RooflinePoint> sorted = points_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.share > b.share; });
    std::string text;
    for (const RooflinePoint& point : sorted) {
      text += fmt::format(
          "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" "
          "fill-opacity=\"0.7\"><title>{}</title></circle>\n",
          point.bound, X(point.intensity), Y(point.flops_per_s),
          3 + 14 * std::sqrt(std::min(1.0, point.share)), HtmlEscaped(point.text));
    }
    return text;
  }

  static std::string Keys() {
    return "<span>bound by:</span><span><i style=\"background:var(--c1)\"></i>compute</span>"
           "<span><i style=\"background:var(--c0)\"></i>memory</span>"
           "<span><i style=\"background:var(--soft)\"></i>latency</span>"
           "<span>larger: more of the step's time</span>";
  }

  const PlanOnPage& page_;
  const std::vector<RooflinePoint> points_;
  Decades x_, y_;
};

// ---- the page

std::string VerdictHtml(const PlanOnPage& page) {
  const PlanSummary& plan = page.plan;
  const std::string note =
      page.note.empty() ? "" : fmt::format("<p class=\"soft\">{}</p>\n", HtmlEscaped(page.note));
  return fmt::format("<p class=\"verdict {}\">{}</p>\n<p>{}</p>\n",
                     !plan.knows_limit() ? ""
                     : plan.fits         ? "good"
                                         : "bad",
                     HtmlEscaped(FitsText(plan)), HtmlEscaped(StepText(plan))) +
         note;
}

std::string SourcesHtml(const PlanOnPage& page) {
  std::string items;
  for (const std::string& source : SourcesOf(page.sources, page.plan))
    items += fmt::format("<li>{}</li>\n", HtmlEscaped(source));
  return items.empty() ? "" : "<h2>Sources</h2>\n<ul>\n" + items + "</ul>\n";
}

std::string PlanSection(const PlanOnPage& page) {
  const PlanSummary& plan = page.plan;
  std::string text = VerdictHtml(page);
  text += "<h2>Memory</h2>\n" + HtmlGrid(MemoryGrid(plan)) + HtmlGrid(PhasesGrid(plan));
  text += fmt::format("<h2>Memory over the step</h2>\n<p class=\"soft\">{}</p>\n{}",
                      BesideText(plan), LiveCharts(*plan.program));
  text += RooflineChart(page).Text();
  text += "<h2>Time</h2>\n" + HtmlGrid(ClassesGrid(plan));
  text += "<details><summary>All nodes</summary>\n" + HtmlGrid(NodesGrid(plan)) + "</details>\n";
  if (!plan.candidates.empty())
    text += "<h2>Plans that were compared</h2>\n" + HtmlGrid(CandidatesGrid(plan));
  return text + SourcesHtml(page);
}

std::string Page(const std::string& title, const std::string& body, const std::string& json) {
  return HtmlPage(
      title,
      "<main>\n" + body + "</main>\n" + DataElement("plan-json", json) + kGridScript + kScript,
      std::string(kGridStyle) + kStyle);
}

std::vector<PlanSummary> Summaries(const std::vector<PlanOnPage>& plans) {
  std::vector<PlanSummary> summaries;
  for (const PlanOnPage& page : plans) summaries.push_back(page.plan);
  return summaries;
}

}  // namespace

std::string PlanPage(const std::vector<PlanOnPage>& plans) {
  const std::string json = PlansToJson(Summaries(plans));
  if (plans.size() == 1) return Page(plans[0].title, PlanSection(plans[0]), json);
  std::string body = HtmlGrid(DevicesGrid(Summaries(plans)));
  for (const PlanOnPage& page : plans) {
    body += fmt::format("<section>\n<h1>{}</h1>\n{}</section>\n", HtmlEscaped(page.title),
                        PlanSection(page));
  }
  const std::string title =
      fmt::format("{} on {}", plans[0].plan.program->model,
                  FormatCountOf(static_cast<int64_t>(plans.size()), "device"));
  return Page(title, body, json);
}

std::string PlanMarkdown(const std::vector<PlanOnPage>& plans) {
  std::string text;
  if (plans.size() > 1) text += MarkdownGrid(DevicesGrid(Summaries(plans))) + "\n";
  for (size_t i = 0; i < plans.size(); ++i) {
    const PlanSummary& plan = plans[i].plan;
    text += fmt::format("{}## {}\n\n{}. {}.\n\n", i > 0 ? "\n" : "", plans[i].title, FitsText(plan),
                        StepText(plan));
    text += MarkdownGrid(MemoryGrid(plan)) + "\n" + MarkdownGrid(PhasesGrid(plan)) + "\n" +
            MarkdownGrid(ClassesGrid(plan));
    if (!plan.candidates.empty()) text += "\n" + MarkdownGrid(CandidatesGrid(plan));
    const std::vector<std::string> sources = SourcesOf(plans[i].sources, plan);
    if (!sources.empty()) text += "\n### Sources\n\n";
    for (const std::string& source : sources) text += "- " + source + "\n";
  }
  return text;
}

std::string ChoosePage(const ChooseTable& table) {
  std::string body = "<p>Nothing was run: all numbers are modelled.</p>\n";
  for (const std::string& line : BestOffers(table.offers))
    body += fmt::format("<p class=\"verdict\">{}</p>\n", HtmlEscaped(line));
  body += "<h2>Offers</h2>\n" + HtmlGrid(OffersGrid(table.offers));
  if (!table.upgrades.empty()) body += "<h2>Then</h2>\n";
  for (const std::string& line : UpgradeLines(table))
    body += fmt::format("<p>{}</p>\n", HtmlEscaped(line));
  body +=
      "<h2>Sources</h2>\n<p>Devices: ridge devices show ID. Prices: the list and its date "
      "stand beside each cost.</p>\n";
  return Page(table.title, body, ChooseJson(table));
}

std::string ChooseMarkdown(const ChooseTable& table) {
  std::string text =
      fmt::format("## {}\n\nNothing was run: all numbers are modelled.\n\n", table.title);
  for (const std::string& line : BestOffers(table.offers)) text += "- " + line + "\n";
  text += "\n" + MarkdownGrid(OffersGrid(table.offers));
  if (!table.upgrades.empty()) text += "\n### Then\n\n";
  for (const std::string& line : UpgradeLines(table)) text += "- " + line + "\n";
  return text;
}

}  // namespace ridge
