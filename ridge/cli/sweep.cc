// Each run has its own process: what a run measures of its memory is its own.
#include "ridge/cli/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ridge/cli/child_process.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/core/units.h"
#include "ridge/graph/suggest.h"
#include "ridge/report/table.h"
#include "ridge/train/store/run_folder.h"
#include "ridge/train/store/run_overview.h"

namespace ridge::cli {
namespace {

struct Swept {
  std::string key;
  std::vector<std::string> values;
};

// A value for each swept option, in their order.
using Combination = std::vector<std::string>;

struct SweptRun {
  Combination values;
  std::string folder;
  int code = 0;
};

// The options that a run may differ in: all but where it runs and where it is kept.
std::vector<std::string> SweepKeys() {
  std::vector<std::string> keys;
  ForEachOption([&](const OptionInfo& option, auto) {
    const bool swept = option.group == OptionGroup::kModel || option.group == OptionGroup::kData ||
                       option.group == OptionGroup::kTraining || option.key == "precision";
    if (swept) keys.emplace_back(option.key);
  });
  return keys;
}

// Tries the value as if the command line had it.
Status CheckValue(CLI::Option& flag, const std::string& value) {
  try {
    flag.clear();
    flag.add_result(value);
    flag.run_callback();
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(fmt::format("{} (in --sweep)", error.what()));
  }
  return Status();
}

Result<Swept> ParseSweep(const std::string& text, const TrainFlags& flags) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return InvalidArgument(
        fmt::format("--sweep is '{}'; it must be OPTION=VALUE,VALUE: lr=1e-3,3e-4", text));
  }
  Swept swept = {text.substr(0, equals), {}};
  const std::vector<std::string> keys = SweepKeys();
  if (std::find(keys.begin(), keys.end(), swept.key) == keys.end()) {
    return InvalidArgument(
        fmt::format("--sweep names '{}'; that is no option of model, data or "
                    "training{}",
                    swept.key, DidYouMean(swept.key, keys)));
  }
  for (const std::string_view value : SplitAt(std::string_view(text).substr(equals + 1), ',')) {
    if (std::find(swept.values.begin(), swept.values.end(), value) != swept.values.end())
      return InvalidArgument(fmt::format("--sweep gives {} the value {} twice", swept.key, value));
    swept.values.emplace_back(value);
    RIDGE_RETURN_IF_ERROR(CheckValue(*FindFlag(*flags.app, swept.key), swept.values.back()));
  }
  return swept;
}

// All of them, the last option changing first.
std::vector<Combination> Combine(const std::vector<Swept>& sweeps) {
  std::vector<Combination> all = {{}};
  for (const Swept& swept : sweeps) {
    std::vector<Combination> longer;
    for (const Combination& before : all) {
      for (const std::string& value : swept.values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// "lr=1e-3,batch=64", without what a folder's name must not have.
std::string NameOf(const std::vector<Swept>& sweeps, const Combination& values) {
  std::string name;
  for (size_t i = 0; i < sweeps.size(); ++i)
    name += fmt::format("{}{}={}", name.empty() ? "" : ",", sweeps[i].key, values[i]);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

// The words of a child: what was given here, with one value for each swept option.
std::vector<std::string> WordsFor(const TrainFlags& flags, const std::vector<Swept>& sweeps,
                                  const SweptRun& run) {
  std::vector<std::string> words = {"train", flags.options.model};
  const auto left_out = [&](const std::string& name) {
    constexpr std::string_view kOwn[] = {"sweep", "out", "config"};
    return std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn) ||
           std::any_of(sweeps.begin(), sweeps.end(), [&](const auto& s) { return s.key == name; });
  };
  for (const CLI::Option* option : flags.app->get_options()) {
    if (option->get_lnames().empty() || left_out(option->get_lnames().front())) continue;
    for (const std::string& value : option->results()) {
      words.push_back("--" + option->get_lnames().front());
      if (option->get_items_expected_max() > 0) words.push_back(value);
    }
  }
  for (size_t i = 0; i < sweeps.size(); ++i)
    words.insert(words.end(), {"--" + sweeps[i].key, run.values[i]});
  words.insert(words.end(), {"--out", run.folder});
  return words;
}

// --out, or a new folder under runs/.
Result<std::string> MakeFolder(const TrainOptions& options) {
  if (!options.out.empty()) return options.out;
  RIDGE_RETURN_IF_ERROR(MakeFolders(kRunsFolder));
  for (int n = 1;; ++n) {
    std::string path = fmt::format("{}/{}-sweep-{}", kRunsFolder, ShortModelName(options.model), n);
    std::error_code error;
    if (std::filesystem::create_directory(path, error)) return path;
    if (error) {
      return Status(ErrorCode::kUnavailable,
                    fmt::format("{}: cannot make the folder: {}", path, error.message()));
    }
  }
}

// The row of the best accuracy, or loss, on a validation set; -1 when they cannot be compared.
int BestRow(const std::vector<RunOverview>& runs) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(runs.size()); ++i) {
    const RunOverview& run = runs[static_cast<size_t>(i)];
    if (run.state != RunState::kFinished || run.evaluated_on == "test" || !run.loss) continue;
    if (best < 0) {
      best = i;
      continue;
    }
    const RunOverview& other = runs[static_cast<size_t>(best)];
    const bool better =
        run.accuracy && other.accuracy ? *run.accuracy > *other.accuracy : *run.loss < *other.loss;
    if (better) best = i;
  }
  return best;
}

std::string TableText(const std::vector<Swept>& sweeps, const std::vector<SweptRun>& swept,
                      const Terminal& terminal) {
  std::vector<Column> columns;
  for (const Swept& option : sweeps) columns.push_back({option.key, Align::kRight});
  for (const char* title : {"loss", "accuracy", "step time"})
    columns.push_back({title, Align::kRight});
  columns.push_back({"state"});
  columns.push_back({"run"});
  std::vector<RunOverview> runs;
  for (const SweptRun& run : swept) runs.push_back(ReadOverview(run.folder));
  const int best = BestRow(runs);
  Table table(columns);
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunOverview& run = runs[i];
    std::vector<std::string> cells = swept[i].values;
    cells.push_back(run.loss ? fmt::format("{:.4f}", *run.loss) : "");
    cells.push_back(run.accuracy ? FormatPercent(*run.accuracy) : "");
    cells.push_back(run.step_s > 0 ? FormatSeconds(run.step_s) : "");
    cells.push_back(swept[i].code == kExitFailed ? "failed" : RunStateName(run.state));
    cells.push_back(run.folder);
    table.AddRow(std::move(cells), static_cast<int>(i) == best ? Style::kBold : Style::kPlain);
  }
  return table.ToText(terminal, /*indent=*/0);
}

}  // namespace

Result<int> RunSweep(const std::vector<std::string>& texts, const TrainFlags& flags,
                     const OutputFlags& output) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, output));
  std::vector<Swept> sweeps;
  for (const std::string& text : texts) {
    RIDGE_ASSIGN_OR_RETURN(Swept swept, ParseSweep(text, flags));
    sweeps.push_back(std::move(swept));
  }
  RIDGE_ASSIGN_OR_RETURN(const std::string folder, MakeFolder(flags.options));
  const std::vector<Combination> combinations = Combine(sweeps);
  setenv("RIDGE_SWEEP", "", /*overwrite=*/1);  // for the children
  std::vector<SweptRun> runs;
  int code = kExitOk, number = 0;
  for (const Combination& values : combinations) {
    const std::string name = NameOf(sweeps, values);
    SweptRun run = {values, folder + "/" + name};
    SayUnless(output.quiet)(
        fmt::format("sweep: {} of {}: {}", ++number, combinations.size(), name));
    RIDGE_ASSIGN_OR_RETURN(run.code, ExitCodeOfChild(WordsFor(flags, sweeps, run)));
    if (Run::Exists(run.folder)) runs.push_back(run);
    if (run.code == kExitOk) continue;
    code = run.code;
    if (run.code != kExitFailed) break;
  }
  if (!runs.empty()) PrintData("\n" + TableText(sweeps, runs, terminal));
  return code;
}

}  // namespace ridge::cli
