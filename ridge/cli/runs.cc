// `ridge runs`: the runs of a folder, newest first, and the curves of one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/run_curves.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"
#include "ridge/report/text.h"
#include "ridge/train/store/run_overview.h"
#include "ridge/use/run_page.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;
using Runs = std::vector<RunOverview>;

struct RunsVerb {
  std::optional<std::string> folder, filter, html;
  OutputFlags output;
  bool json = false, plot = false;
};

// No folder of its own is no error: nothing was trained yet.
Result<Runs> FindRuns(const RunsVerb& verb) {
  Result<Runs> runs = ListRuns(verb.folder.value_or(kRunsFolder));
  if (!runs.ok()) return verb.folder ? runs : Result<Runs>(Runs());
  std::erase_if(*runs, [&](const RunOverview& run) {
    return verb.filter && run.options.model.find(*verb.filter) == std::string::npos &&
           run.options.data.find(*verb.filter) == std::string::npos;
  });
  return runs;
}

// Epochs that the run is planned for; 0: it counts steps.
int64_t PlannedEpochs(const RunOverview& run) {
  return run.options.steps ? 0 : run.options.epochs.value_or(1);
}

// "3/5", "3" without a plan, "" before anything is done.
std::string DoneText(int64_t done, int64_t planned) {
  if (planned <= 0) return done > 0 ? fmt::format("{}", done) : "";
  return fmt::format("{}/{}", done, planned);
}

// "5 min ago".
std::string AgeText(double since_s) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double age_s = std::chrono::duration<double>(now).count() - since_s;
  const auto seconds = static_cast<int64_t>(std::max(age_s, 0.0));
  if (seconds < 60) return fmt::format("{} s ago", seconds);
  if (seconds < 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

Style StyleOf(RunState state) {
  switch (state) {
    case RunState::kFinished:
      return Style::kPlain;
    case RunState::kRunning:
      return Style::kGreen;
    case RunState::kInterrupted:
      return Style::kYellow;
    case RunState::kBroken:
      break;
  }
  return Style::kRed;
}

struct TableColumn {
  Column column;
  std::string (*text)(const RunOverview& run);
};

// The later ones of the second list go first when a terminal is too narrow.
const std::vector<TableColumn>& Columns() {
  static const std::vector<TableColumn> kColumns = {
      {{"run"}, [](const RunOverview& run) { return run.folder; }},
      {{"model"}, [](const RunOverview& run) { return run.options.model; }},
      {{"data"}, [](const RunOverview& run) { return run.options.data; }},
      {{"epoch", Align::kRight},
       [](const RunOverview& run) { return DoneText(run.epoch, PlannedEpochs(run)); }},
      {{"step", Align::kRight},
       [](const RunOverview& run) { return DoneText(run.step, run.options.steps.value_or(0)); }},
      {{"state"}, [](const RunOverview& run) { return std::string(RunStateName(run.state)); }},
      {{"loss", Align::kRight},
       [](const RunOverview& run) { return run.loss ? fmt::format("{:.4f}", *run.loss) : ""; }},
      {{"accuracy", Align::kRight},
       [](const RunOverview& run) { return run.accuracy ? FormatPercent(*run.accuracy) : ""; }},
      {{"WER", Align::kRight},
       [](const RunOverview& run) { return run.wer ? FormatPercent(*run.wer) : ""; }},
      {{"step time", Align::kRight},
       [](const RunOverview& run) { return run.step_s > 0 ? FormatSeconds(run.step_s) : ""; }},
      {{"started", Align::kRight}, [](const RunOverview& run) { return AgeText(run.started_s); }},
  };
  return kColumns;
}

constexpr std::string_view kDroppedFirst[] = {"step time", "data", "step", "started"};

std::string TableText(const Runs& runs, const std::vector<TableColumn>& columns,
                      const Terminal& terminal) {
  std::vector<Column> titles;
  for (const TableColumn& column : columns) titles.push_back(column.column);
  Table table(titles);
  for (const RunOverview& run : runs) {
    std::vector<std::string> cells;
    const bool unread = run.options.model.empty();
    for (const TableColumn& column : columns) {
      const std::string& title = column.column.title;
      const bool known = !unread || title == "run" || title == "state" || title == "started";
      cells.push_back(known ? column.text(run) : "");
    }
    table.AddRow(std::move(cells), StyleOf(run.state));
  }
  return table.ToText(terminal, /*indent=*/0);
}

int Width(const std::string& text) {
  std::istringstream lines(text);
  int width = 0;
  for (std::string line; std::getline(lines, line);) width = std::max(width, DisplayWidth(line));
  return width;
}

// On a terminal, without the columns that would make the lines too long.
std::string FittingTable(const Runs& runs, const Terminal& terminal) {
  std::vector<TableColumn> columns = Columns();
  const bool heard = std::any_of(runs.begin(), runs.end(),
                                 [](const RunOverview& run) { return run.wer.has_value(); });
  if (!heard) std::erase_if(columns, [](const TableColumn& c) { return c.column.title == "WER"; });
  for (const std::string_view title : kDroppedFirst) {
    const bool fits = Width(TableText(runs, columns, Terminal())) <= terminal.width;
    if (!terminal.is_terminal || fits) break;
    std::erase_if(columns, [&](const TableColumn& c) { return c.column.title == title; });
  }
  return TableText(runs, columns, terminal);
}

Json NumberOrNull(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

Json RunJson(const RunOverview& run) {
  Json json = {{"run", run.folder},
               {"state", RunStateName(run.state)},
               {"reason", nullptr},
               {"process", nullptr},
               {"model", run.options.model},
               {"data", run.options.data},
               {"epoch", run.epoch},
               {"epochs", nullptr},
               {"step", run.step},
               {"steps", nullptr},
               {"loss", NumberOrNull(run.loss)},
               {"accuracy", NumberOrNull(run.accuracy)},
               {"evaluated_on", nullptr},
               {"stopped_early", run.summary && run.summary->stopped_early.has_value()},
               {"step_s", run.step_s},
               {"started_at", UtcText(run.started_s)}};
  if (!run.reason.empty()) json["reason"] = run.reason;
  if (run.process > 0) json["process"] = run.process;
  if (PlannedEpochs(run) > 0) json["epochs"] = PlannedEpochs(run);
  if (run.options.steps) json["steps"] = *run.options.steps;
  if (run.wer) json["wer"] = NumberOrNull(run.wer);
  if (!run.evaluated_on.empty()) json["evaluated_on"] = run.evaluated_on;
  return json;
}

std::string RunsJson(const Runs& runs) {
  Json json = Json::array();
  for (const RunOverview& run : runs) json.push_back(RunJson(run));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ReasonsText(const Runs& runs) {
  std::string text;
  for (const RunOverview& run : runs) {
    if (run.state == RunState::kBroken) text += fmt::format("{}: {}\n", run.folder, run.reason);
  }
  return text.empty() ? "" : "\n" + PrintableLines(text);
}

// The curves of the newest run that can be read.
Status PrintPlot(const Runs& runs, const Terminal& terminal) {
  const auto newest = std::find_if(runs.begin(), runs.end(), [](const RunOverview& run) {
    return run.state != RunState::kBroken;
  });
  if (newest == runs.end()) return Status();
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(newest->folder));
  const std::string curves = CurvesText({run}, terminal);
  PrintData(curves.empty() ? fmt::format("\n{} has no reports yet\n", run.path())
                           : fmt::format("\n{}\n\n{}", Printable(run.path()), curves));
  return Status();
}

// The page of the run, or of the newest one in the folder.
Result<int> WritePage(const RunsVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Runs runs, FindRuns(verb));
  if (runs.empty()) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("no runs in {}. hint: ridge train makes them under {}/",
                              verb.folder.value_or(kRunsFolder), kRunsFolder));
  }
  RIDGE_ASSIGN_OR_RETURN(const std::string page, RunPage(runs.front().folder));
  RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.html, page));
  SayUnless(verb.output.quiet)(fmt::format("{}: the page of {}", *verb.html, runs.front().folder));
  return kExitOk;
}

Result<int> PrintRuns(const RunsVerb& verb) {
  if (verb.html) return WritePage(verb);
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const Runs runs, FindRuns(verb));
  if (verb.json) {
    PrintData(RunsJson(runs));
    return kExitOk;
  }
  if (runs.empty()) {
    SayUnless(false)(fmt::format("no {} in {}. hint: ridge train makes them under {}/",
                                 verb.filter ? "such runs" : "runs",
                                 verb.folder.value_or(kRunsFolder), kRunsFolder));
    return kExitOk;
  }
  PrintData(FittingTable(runs, terminal));
  PrintData(ReasonsText(runs));
  if (verb.plot) RIDGE_RETURN_IF_ERROR(PrintPlot(runs, terminal));
  return kExitOk;
}

}  // namespace

VerbBody AddRuns(CLI::App& app) {
  auto verb = std::make_shared<RunsVerb>();
  AddArgument(app, "DIR", verb->folder, "The folder with the runs, or one run (runs)");
  AddText(app, "--filter", verb->filter, "TEXT", "Only runs whose model or data contain TEXT");
  CLI::Option* plot = AddSwitch(app, "--plot", verb->plot,
                                "Draw loss and accuracy of the newest of them over its steps");
  plot->group(kOutputGroup);
  CLI::Option* json = AddSwitch(app, "--json", verb->json, "Print JSON");
  json->group(kOutputGroup);
  Exclude(plot, json);
  CLI::Option* html =
      AddText(app, "--html", verb->html, "FILE",
              "Write the newest of them as one page: curves, plan, times, classes, mistakes");
  html->group(kOutputGroup);
  Exclude(html, json);
  Exclude(html, plot);
  AddColorFlag(app, verb->output);
  return [verb] { return PrintRuns(*verb); };
}

}  // namespace ridge::cli
