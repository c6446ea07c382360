// `ridge compare`: the first report and the first tensor in which two runs differ.
//
// The exit code says whether they differ; --plot adds their curves, --html makes a page of both.
// Does not compare times: they differ between equal runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/run_curves.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/safetensors.h"
#include "ridge/core/units.h"
#include "ridge/report/html.h"
#include "ridge/train/store/run_overview.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTimes[] = {"samples_s", "input_wait", "input_stages", "step_s", "gpu"};

struct RunFacts {
  Run run;
  Json options;
  std::vector<Json> reports;   // metrics.jsonl
  std::vector<int64_t> steps;  // of checkpoints, oldest first

  const std::string& folder() const { return run.path(); }
};

// What differs, as lines; empty when nothing does.
using Differences = std::vector<std::string>;

std::vector<Json> ReadReports(const Run& run) {
  std::vector<Json> reports;
  for (const std::string& line : run.MetricsLines()) {
    Json report = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!report.is_object()) break;
    for (const char* key : kTimes) report.erase(key);
    reports.push_back(std::move(report));
  }
  return reports;
}

Result<RunFacts> ReadRun(const std::string& folder) {
  if (!Run::Exists(folder)) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: is no run folder: it has no options.json", folder));
  }
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(folder));
  RunFacts facts = {run, Json::parse(OptionsToJson(run.options())), ReadReports(run),
                    run.checkpoints().Steps()};
  std::reverse(facts.steps.begin(), facts.steps.end());
  if (!facts.reports.empty() || !facts.steps.empty()) return facts;
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: has no reports and no checkpoints to compare", folder));
}

// Not a difference of the results, but often the reason of one.
std::vector<std::string> OptionLines(const RunFacts& a, const RunFacts& b) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : a.options.items()) {
    if (key == "out" || !b.options.contains(key) || b.options[key] == value) continue;
    lines.push_back(
        fmt::format("option --{}: {} against {}", key, value.dump(), b.options[key].dump()));
  }
  return lines;
}

std::string FieldDifference(const Json& a, const Json& b) {
  for (const auto& [key, value] : a.items()) {
    const Json other = b.contains(key) ? b[key] : Json();
    if (value != other) return fmt::format("{} {} against {}", key, value.dump(), other.dump());
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) return fmt::format("{} null against {}", key, value.dump());
  }
  return "";
}

std::string EndText(const RunFacts& run) {
  if (run.reports.empty()) return fmt::format("{} has no reports", run.folder());
  return fmt::format("{} ends at step {}", run.folder(),
                     run.reports.back().value("step", Json()).dump());
}

void CompareReports(const RunFacts& a, const RunFacts& b, Differences& differences) {
  const size_t common = std::min(a.reports.size(), b.reports.size());
  for (size_t i = 0; i < common; ++i) {
    const std::string difference = FieldDifference(a.reports[i], b.reports[i]);
    if (difference.empty()) continue;
    differences.push_back(fmt::format("first step that differs: {}: {}",
                                      a.reports[i].value("step", Json()).dump(), difference));
    return;
  }
  if (a.reports.size() != b.reports.size()) {
    differences.push_back(fmt::format("{}, {}", EndText(a), EndText(b)));
  }
}

std::string ElementsText(const Tensor& a, const Tensor& b) {
  int64_t differing = 0;
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ++differing;
    largest = std::max(largest, std::abs(x - y));
  }
  return fmt::format("{} of {} elements, by {:.3g} at most", differing, a.elements(), largest);
}

Result<std::string> TensorDifference(const SafetensorsFile& a, const SafetensorsFile& b,
                                     const std::string& name) {
  RIDGE_ASSIGN_OR_RETURN(const Tensor x, a.Load(name));
  RIDGE_ASSIGN_OR_RETURN(const Tensor y, b.Load(name));
  if (x.type() != y.type()) {
    return fmt::format("'{}': {} against {}", name, TypeToString(x.type()), TypeToString(y.type()));
  }
  if (x.same_bits(y)) return std::string();
  return fmt::format("'{}': {}", name, ElementsText(x, y));
}

// The first tensor of two files that differs; empty when none does.
Result<std::string> FileDifference(const std::string& a_path, const std::string& b_path) {
  RIDGE_ASSIGN_OR_RETURN(const SafetensorsFile a, SafetensorsFile::Open(a_path));
  RIDGE_ASSIGN_OR_RETURN(const SafetensorsFile b, SafetensorsFile::Open(b_path));
  for (const SafetensorsEntry& entry : a.entries()) {
    if (b.Find(entry.name) == nullptr) return fmt::format("'{}' is only in {}", entry.name, a_path);
    RIDGE_ASSIGN_OR_RETURN(std::string difference, TensorDifference(a, b, entry.name));
    if (!difference.empty()) return difference;
  }
  for (const SafetensorsEntry& entry : b.entries()) {
    if (a.Find(entry.name) == nullptr) return fmt::format("'{}' is only in {}", entry.name, b_path);
  }
  return std::string();
}

std::vector<int64_t> CommonSteps(const RunFacts& a, const RunFacts& b) {
  std::vector<int64_t> common;
  std::set_intersection(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                        std::back_inserter(common));
  return common;
}

Status CompareTensors(const RunFacts& a, const RunFacts& b, Differences& differences) {
  const Checkpoints in_a = a.run.checkpoints(), in_b = b.run.checkpoints();
  const std::vector<int64_t> common = CommonSteps(a, b);
  for (const int64_t step : common) {
    for (const char* file : {"/parameters.safetensors", "/state.safetensors"}) {
      RIDGE_ASSIGN_OR_RETURN(const std::string difference,
                             FileDifference(in_a.PathOf(step) + file, in_b.PathOf(step) + file));
      if (difference.empty()) continue;
      differences.push_back(
          fmt::format("first tensor that differs, at step {}: {}", step, difference));
      return {};
    }
  }
  if (common.empty()) {
    differences.emplace_back("no checkpoint of the same step, so no tensor was compared");
  }
  return {};
}

struct CompareVerb {
  std::optional<std::string> a, b, html;
  OutputFlags output;
  bool plot = false;
};

struct Comparison {
  bool equal = false;
  std::vector<std::string> lines;  // options first
};

Result<Comparison> CompareRuns(const RunFacts& a, const RunFacts& b) {
  Differences differences;
  CompareReports(a, b, differences);
  RIDGE_RETURN_IF_ERROR(CompareTensors(a, b, differences));
  if (differences.empty()) {
    return Comparison{
        true,
        {fmt::format("equal: {}, {}",
                     FormatCountOf(static_cast<int64_t>(a.reports.size()), "report"),
                     FormatCountOf(static_cast<int64_t>(CommonSteps(a, b).size()), "checkpoint"))}};
  }
  Comparison comparison = {false, OptionLines(a, b)};
  for (std::string& difference : differences) comparison.lines.push_back(std::move(difference));
  return comparison;
}

// A run as a row: what it reached.
std::vector<std::string> ResultCells(const RunFacts& facts) {
  const RunOverview run = ReadOverview(facts.folder());
  return {HtmlEscaped(facts.folder()), FormatInteger(run.step),
          run.loss ? fmt::format("{:.4f}", *run.loss) : "",
          run.accuracy ? FormatPercent(*run.accuracy) : "", HtmlEscaped(run.evaluated_on)};
}

std::string PageOf(const RunFacts& a, const RunFacts& b, const Comparison& comparison) {
  std::string body =
      HtmlTable({{"run", "steps", "loss", "accuracy", "of"}, ResultCells(a), ResultCells(b)});
  body += "<h2>What differs</h2>\n<ul>\n";
  for (const std::string& line : comparison.lines) body += "<li>" + HtmlEscaped(line) + "</li>\n";
  body += "</ul>\n" + CurvesHtml({a.run, b.run});
  return HtmlPage(a.folder() + " against " + b.folder(), body);
}

Result<int> Compare(const CLI::App& app, const CompareVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.a, "RUN", "two run folders"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.b, "the second RUN", "two run folders"));
  RIDGE_ASSIGN_OR_RETURN(const RunFacts a, ReadRun(*verb.a));
  RIDGE_ASSIGN_OR_RETURN(const RunFacts b, ReadRun(*verb.b));
  RIDGE_ASSIGN_OR_RETURN(const Comparison comparison, CompareRuns(a, b));
  if (verb.html) RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.html, PageOf(a, b, comparison)));
  if (!IsStandardOutput(verb.html)) {
    for (const std::string& line : comparison.lines) PrintData(line + "\n");
  }
  if (verb.plot) PrintData("\n" + CurvesText({a.run, b.run}, terminal));
  return comparison.equal ? kExitOk : kExitFailed;
}

}  // namespace

VerbBody AddCompare(CLI::App& app) {
  auto verb = std::make_shared<CompareVerb>();
  AddArgument(app, "RUN", verb->a, "A run folder");
  AddArgument(app, "OTHER", verb->b, "The run folder to compare it with");
  CLI::Option* plot =
      AddSwitch(app, "--plot", verb->plot, "Draw loss and accuracy of both over their steps");
  plot->group(kOutputGroup);
  CLI::Option* html = AddText(app, "--html", verb->html, "FILE",
                              "Write one page: results, what differs, curves of both on one axis");
  html->group(kOutputGroup);
  Exclude(html, plot);
  AddColorFlag(app, verb->output);
  return [&app, verb] { return Compare(app, *verb); };
}

}  // namespace ridge::cli
