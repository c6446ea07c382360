// The tables are made once, as grids, for both forms.
#include "ridge/report/plan_page.h"

#include <fmt/format.h>

#include "ridge/core/units.h"
#include "ridge/report/choose_details.h"
#include "ridge/report/grid.h"
#include "ridge/report/html.h"
#include "ridge/report/plan_charts.h"
#include "ridge/report/plan_tables.h"
#include "ridge/report/scaling_chart.h"
#include "ridge/report/walked_chart.h"

namespace ridge {
namespace {

constexpr char kStyle[] =
    ".verdict{font-size:17px;margin:6px 0 2px}section h2{font-size:19px}section "
    "h3{font-size:16px}\n"
    "a{color:var(--c0)}section{margin-top:36px;padding-top:14px;border-top:1px solid var(--line)}\n"
    "@media print{body{max-width:none;padding:0}figure,tr{break-inside:avoid}"
    "h2,h3,caption{break-after:avoid}summary{list-style:none}}\n";

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

// The arena is what the charts show.
std::string BesideText(const PlanSummary& plan) {
  return fmt::format("Of the arena of {}; the process needs {} beside it.",
                     FormatBytes(plan.memory.arena_bytes),
                     FormatBytes(plan.memory.peak_bytes - plan.memory.arena_bytes));
}

std::string ListOf(const std::vector<std::string>& lines) {
  std::string items;
  for (const std::string& line : lines) items += fmt::format("<li>{}</li>\n", HtmlEscaped(line));
  return "<ul>\n" + items + "</ul>\n";
}

// A heading of this level and what it is of; "" where that is empty.
std::string Part(int level, const char* title, const std::string& text) {
  return text.empty() ? "" : fmt::format("<h{0}>{1}</h{0}>\n{2}", level, title, text);
}

// `level`: of its headings.
std::string PlanSection(const PlanOnPage& page, int level) {
  const PlanSummary& plan = page.plan;
  const std::vector<std::string> sources = SourcesOf(page.sources, plan);
  std::string text = VerdictHtml(page);
  text += Part(level, "Memory", HtmlGrid(MemoryGrid(plan)) + HtmlGrid(PhasesGrid(plan)));
  text += Part(
      level, "Memory over the step",
      fmt::format("<p class=\"soft\">{}</p>\n{}", BesideText(plan), LiveCharts(*plan.program)));
  text += Part(level, "Roofline", RooflineChart(plan, {page.peak_flops_per_s, page.bytes_per_s}));
  text += Part(level, "Time",
               HtmlGrid(ClassesGrid(plan)) + "<details><summary>All nodes</summary>\n" +
                   HtmlGrid(NodesGrid(plan)) + "</details>\n");
  if (!plan.candidates.empty())
    text += Part(level, "Plans that were compared", HtmlGrid(CandidatesGrid(plan)));
  return text + (sources.empty() ? "" : Part(level, "Sources", ListOf(sources)));
}

std::string Page(const std::string& title, const std::string& body, const std::string& json) {
  return HtmlPage(
      title,
      "<main>\n" + body + "</main>\n" + DataElement("plan-json", json) + kGridScript + kChartScript,
      std::string(kGridStyle) + kChartStyle + kStyle);
}

std::vector<PlanSummary> Summaries(const std::vector<PlanOnPage>& plans) {
  std::vector<PlanSummary> summaries;
  for (const PlanOnPage& page : plans) summaries.push_back(page.plan);
  return summaries;
}

}  // namespace

std::string PlanPage(const std::vector<PlanOnPage>& plans) {
  const std::string json = PlansToJson(Summaries(plans));
  if (plans.size() == 1) return Page(plans[0].title, PlanSection(plans[0], 2), json);
  std::string body = HtmlGrid(DevicesGrid(Summaries(plans))), links, sections;
  for (size_t i = 0; i < plans.size(); ++i) {
    const std::string title = HtmlEscaped(plans[i].title);
    links += fmt::format("<li><a href=\"#plan-{}\">{}</a></li>\n", i + 1, title);
    sections += fmt::format("<section id=\"plan-{}\">\n<h2>{}</h2>\n{}</section>\n", i + 1, title,
                            PlanSection(plans[i], 3));
  }
  body += "<nav aria-label=\"Plans\"><ul>\n" + links + "</ul></nav>\n" + sections;
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
  constexpr size_t kScalingCharts = 6;  // of the best offers' devices
  std::string body = "<p>Nothing was run: all numbers are modelled.</p>\n";
  for (const std::string& line : BestOffers(table.offers))
    body += fmt::format("<p class=\"verdict\">{}</p>\n", HtmlEscaped(line));
  body += "<h2>Offers</h2>\n" + HtmlGrid(OffersGrid(table.offers));
  if (const std::string charts = ScalingCharts(table.offers, kScalingCharts); !charts.empty()) {
    body +=
        Part(2, "Scaling",
             "<p class=\"soft\">One batch of an update over all devices, whose parts shrink as "
             "they grow in number. Hover, or focus and use arrow keys; all devices stand in the "
             "table.</p>\n" +
                 charts);
  }
  if (!table.upgrades.empty()) body += Part(2, "Then", ListOf(UpgradeLines(table)));
  body += Part(2, "Sources",
               "<p>Devices: ridge devices show ID. Prices: the list and its date stand beside each "
               "cost.</p>\n");
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
