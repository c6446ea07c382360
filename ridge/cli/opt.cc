// `ridge opt`: replays the passes on a graph in text form.
#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "ridge/backend/cpu/host_rules.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/planner.h"
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
      return InvalidArgument(
          fmt::format("--pass: '{}' is a step of the planner and leaves the graph as it "
                      "is. hint: ridge plan MODEL --passes=-{}",
                      pass.name, pass.name));
    }
  }
  return selection;
}

// The graph as it was after a pass.
struct Stage {
  std::string name;
  GraphSize size;
  std::optional<double> seconds;  // by the plan; empty when it cannot be planned
};

// Seconds of one execution on this machine.  A graph whose dimensions are open has none, nor has
// one that is only a part of what a plan needs.
std::optional<double> PredictSeconds(const Graph& graph, const Machine& machine) {
  if (!UnboundDims(graph).empty()) return std::nullopt;
  const Result<Program> program = PlanProgram(graph.name, {{"graph", graph}}, *machine.backend,
                                              machine.measured(), PlanOptions{});
  if (!program.ok() || program->steps.empty()) return std::nullopt;
  return PlannedSeconds(program->steps.front());
}

struct Rewritten {
  Graph graph;
  std::vector<Stage> stages;  // as read, then after each pass
};

Result<Rewritten> RunEach(const Graph& graph, const PassSelection& selection,
                          const Machine& machine) {
  Rewritten now = {graph, {{"(as read)", MeasureGraph(graph), PredictSeconds(graph, machine)}}};
  for (const PassInfo& pass : AllPasses()) {
    if (pass.run == nullptr || !selection.Has(pass.name)) continue;
    RIDGE_ASSIGN_OR_RETURN(now.graph,
                           RunPasses(now.graph, {{pass.name}}, machine.backend->rules()));
    now.stages.push_back({pass.name, MeasureGraph(now.graph), PredictSeconds(now.graph, machine)});
  }
  return now;
}

std::string Change(double before, double after, const std::string& now) {
  if (before == after || before <= 0) return now;
  return fmt::format("{} ({})", now, FormatPercentChange(after / before - 1));
}

std::string Change(std::optional<double> before, std::optional<double> after) {
  if (!before || !after) return "-";
  return Change(*before, *after, FormatSeconds(*after));
}

void AddStage(const Stage& before, const Stage& stage, Table& table) {
  const GraphSize &old = before.size, &now = stage.size;
  table.AddRow({stage.name,
                Change(static_cast<double>(old.nodes), static_cast<double>(now.nodes),
                       fmt::format("{}", now.nodes)),
                Change(static_cast<double>(old.result_bytes), static_cast<double>(now.result_bytes),
                       FormatBytes(now.result_bytes)),
                Change(old.flops, now.flops, FormatCount(now.flops)),
                Change(old.traffic_bytes, now.traffic_bytes,
                       FormatBytes(static_cast<int64_t>(now.traffic_bytes))),
                Change(before.seconds, stage.seconds)});
}

std::string SavingsText(const std::vector<Stage>& stages) {
  Table table({{"after"},
               {"nodes", Align::kRight},
               {"results", Align::kRight},
               {"FLOPs", Align::kRight},
               {"read + written", Align::kRight},
               {"predicted", Align::kRight}});
  AddStage(stages.front(), stages.front(), table);
  for (size_t i = 1; i < stages.size(); ++i) AddStage(stages[i - 1], stages[i], table);
  if (stages.size() > 2) {
    Stage together = stages.back();
    together.name = "together";
    table.AddRule();
    AddStage(stages.front(), together, table);
  }
  return table.ToText(DetectTerminal(stderr, ColourChoice::kAuto), /*indent=*/0);
}

Result<int> Optimize(const CLI::App& app, const OptOptions& options) {
  RIDGE_RETURN_IF_ERROR(
      RequireArgument(app, options.file, "FILE", "a graph in text form, or - for standard input"));
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, SelectPasses(options.pass));
  RIDGE_ASSIGN_OR_RETURN(const GraphText source, ReadGraphText(*options.file));
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(source.text, source.name));
  RIDGE_RETURN_IF_ERROR(CheckGraph(graph));
  RIDGE_RETURN_IF_ERROR(CheckComputes(graph, source.name));
  if (options.quiet) {
    RIDGE_ASSIGN_OR_RETURN(const Graph better, RunPasses(graph, selection, HostRules()));
    PrintData(PrintGraph(better));
    return kExitOk;
  }
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened, OpenMachine({}, SayUnless(false)));
  RIDGE_ASSIGN_OR_RETURN(const Rewritten rewritten, RunEach(graph, selection, opened.machine));
  PrintData(PrintGraph(rewritten.graph));
  PrintTalk(SavingsText(rewritten.stages));
  return kExitOk;
}

}  // namespace

VerbBody AddOpt(CLI::App& app) {
  auto options = std::make_shared<OptOptions>();
  AddArgument(app, "FILE", options->file, "A graph in text form; - is standard input");
  AddText(app, "--pass", options->pass, "NAME[,NAME]", "Only these passes, in the usual order");
  AddSwitch(app, "-q,--quiet", options->quiet, "Don't print what each pass saved");
  return [&app, options] { return Optimize(app, *options); };
}

}  // namespace ridge::cli
