// `ridge opt`: replays the passes on a graph in text form.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <iterator>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/graph/passes/pipeline.h"
#include "ridge/graph/suggest.h"
#include "ridge/graph/text.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

constexpr int64_t kMostTextBytes = int64_t{1} << 30;

struct OptOptions {
  std::optional<std::string> file;
  std::optional<std::string> pass;
  bool quiet = false;
};

struct GraphText {
  std::string name;  // for messages
  std::string text;
};

Result<GraphText> ReadGraphText(const std::string& file) {
  if (file != "-") {
    Result<std::string> text = ReadFile(file, kMostTextBytes);
    if (!text.ok()) return Status(ErrorCode::kInvalidModel, text.status().message());
    return GraphText{file, std::move(*text)};
  }
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  return GraphText{"standard input", std::move(text)};
}

// "fuse" or "fold,cse"; none given: all.
Result<PassSelection> SelectPasses(const std::optional<std::string>& names) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection,
                         ParsePassSpec(names ? "only:" + *names : ""));
  for (const PassInfo& pass : AllPasses()) {
    if (names && pass.run == nullptr && selection.Has(pass.name)) {
      return Status(ErrorCode::kInvalidArgument,
                    fmt::format("--pass: '{}' is a step of the planner and leaves the graph as it "
                                "is. hint: ridge plan MODEL --passes=-{}",
                                pass.name, pass.name));
    }
  }
  return selection;
}

std::string Change(double before, double after, const std::string& now) {
  if (before == after || before <= 0) return now;
  return fmt::format("{} ({})", now, FormatPercentChange(after / before - 1));
}

void AddReport(const PassReport& report, Table& table) {
  const GraphSize &before = report.before, &after = report.after;
  table.AddRow({report.name,
                Change(static_cast<double>(before.nodes), static_cast<double>(after.nodes),
                       fmt::format("{}", after.nodes)),
                Change(static_cast<double>(before.result_bytes),
                       static_cast<double>(after.result_bytes), FormatBytes(after.result_bytes)),
                Change(before.flops, after.flops, FormatCount(after.flops)),
                Change(before.traffic_bytes, after.traffic_bytes,
                       FormatBytes(static_cast<int64_t>(after.traffic_bytes)))});
}

std::string SavingsText(const GraphSize& start, const std::vector<PassReport>& reports) {
  Table table({{"after"},
               {"nodes", Align::kRight},
               {"results", Align::kRight},
               {"FLOPs", Align::kRight},
               {"read + written", Align::kRight}});
  AddReport({"(as read)", start, start}, table);
  for (const PassReport& report : reports) AddReport(report, table);
  if (reports.size() > 1) {
    table.AddRule();
    AddReport({"together", start, reports.back().after}, table);
  }
  return table.ToText(DetectTerminal(stderr, ColourChoice::kAuto), /*indent=*/0);
}

Result<int> Optimize(const CLI::App& app, const OptOptions& options) {
  RIDGE_RETURN_IF_ERROR(
      RequireArgument(app, options.file, "FILE", "a graph in text form, or - for standard input"));
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, SelectPasses(options.pass));
  RIDGE_ASSIGN_OR_RETURN(const GraphText source, ReadGraphText(*options.file));
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(source.text, source.name));
  std::vector<PassReport> reports;
  RIDGE_ASSIGN_OR_RETURN(const Graph better, RunPasses(graph, selection, &reports));
  PrintData(PrintGraph(better));
  if (!options.quiet) PrintTalk(SavingsText(MeasureGraph(graph), reports));
  return kExitOk;
}

}  // namespace

VerbBody AddOpt(CLI::App& app) {
  auto options = std::make_shared<OptOptions>();
  AddArgument(app, "FILE", options->file, "A graph in text form; - is standard input");
  AddText(app, "--pass", options->pass, "NAME[,NAME]", "Only these passes, in the usual order");
  AddSwitch(app, "-q,--quiet", options->quiet, "Don't say what each pass saved");
  return [&app, options] { return Optimize(app, *options); };
}

}  // namespace ridge::cli
