// `ridge bench suite`: times all workloads, each in its own process, relative to the machine's
// speed.
//
// Peak memory and the first step need a fresh process for every run.  Each round runs all workloads
// in turn, so that a slow period of the machine affects all of them.  Every run times
// the vendor's 2048^3 matmul and a triad after its steps; `suite_record.h` compares with these.
#include <fmt/format.h>

#include "ridge/cli/child_process.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/suite_record.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/cli/workloads.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"

namespace ridge::cli {
namespace {

constexpr int64_t kRounds = 3;

struct BenchSuiteVerb {
  std::optional<std::string> against, only, out;
  std::optional<int64_t> rounds, threads;
  OutputFlags output;
  bool json = false;
};

std::string KnownNames() {
  std::string names;
  for (const Workload& workload : kWorkloads)
    names += (names.empty() ? "" : ", ") + workload.name();
  return names;
}

// "cnn" is all of its batches.  Fails with kInvalidArgument.
Result<std::vector<Workload>> Chosen(const std::optional<std::string>& only) {
  if (!only) return std::vector<Workload>(std::begin(kWorkloads), std::end(kWorkloads));
  std::vector<Workload> chosen;
  for (const std::string_view name : SplitAt(*only, ',')) {
    const size_t before = chosen.size();
    for (const Workload& workload : kWorkloads) {
      if (name == workload.name() || name == workload.model) chosen.push_back(workload);
    }
    if (chosen.size() != before) continue;
    return InvalidArgument(
        fmt::format("--only names '{}'; known workloads: {}", name, KnownNames()));
  }
  return chosen;
}

Result<SuiteRun> RunWorkload(const Workload& workload, int64_t threads) {
  std::vector<std::string> words = {"bench",   "step",
                                    "--json",  "--quiet",
                                    "--batch", std::to_string(workload.batch),
                                    "--steps", std::to_string(workload.steps)};
  if (threads > 0) {
    words.insert(words.end(), {"--threads", std::to_string(threads)});
  }
  words.emplace_back(workload.model);
  RIDGE_ASSIGN_OR_RETURN(const std::string text, OutputOfChild(words));
  return ParseSuiteRun(text);
}

Result<SuiteRecord> RunSuite(const std::vector<Workload>& workloads, const BenchSuiteVerb& verb,
                             SuiteRecord record) {
  const int64_t rounds = verb.rounds.value_or(kRounds);
  const auto say = SayUnless(verb.output.quiet);
  for (int64_t round = 1; round <= rounds; ++round) {
    for (size_t w = 0; w < workloads.size(); ++w) {
      const Workload& workload = workloads[w];
      RIDGE_ASSIGN_OR_RETURN(const SuiteRun run, RunWorkload(workload, verb.threads.value_or(0)));
      AddRun(workload.name(), run, record);
      say(fmt::format("round {}/{}, {}/{}: {} {:.4g} ms", round, rounds, w + 1, workloads.size(),
                      workload.name(), run.ms_min));
    }
  }
  record.rounds = rounds;
  return record;
}

Result<std::optional<SuiteRecord>> ReadBaseline(const std::optional<std::string>& path) {
  if (!path) return std::optional<SuiteRecord>();
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(*path, 1 << 24));
  RIDGE_ASSIGN_OR_RETURN(SuiteRecord record, SuiteFromJson(text, *path));
  return std::optional<SuiteRecord>(std::move(record));
}

Result<int> RunBenchSuite(const BenchSuiteVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(
      OneOnStandardOutput({{"--json", verb.json}, {"--out", IsStandardOutput(verb.out)}}));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Workload> workloads, Chosen(verb.only));
  RIDGE_ASSIGN_OR_RETURN(const std::optional<SuiteRecord> baseline, ReadBaseline(verb.against));
  // Opened so that the machine's profile is there before any run is timed.
  RIDGE_ASSIGN_OR_RETURN(
      const OpenedMachine opened,
      OpenMachine({.device = "cpu", .backend = "cpu", .threads = verb.threads.value_or(0)},
                  SayUnless(verb.output.quiet)));
  SuiteRecord record = NewSuiteRecord(opened.machine.profile.name, opened.backend->threads());
  RIDGE_ASSIGN_OR_RETURN(record, RunSuite(workloads, verb, std::move(record)));
  const SuiteRecord* before = baseline ? &*baseline : nullptr;
  const std::string json = SuiteToJson(record, before);
  if (verb.out) RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.out, json));
  const auto print = IsStandardOutput(verb.out) ? PrintTalk : PrintData;
  print(verb.json ? json : SuiteReport(record, before, terminal));
  if (before == nullptr) return kExitOk;
  const std::vector<std::string> slower = Regressions(record, *before);
  for (const std::string& text : slower) PrintWarning(text);
  return slower.empty() ? kExitOk : kExitQualityGate;
}

}  // namespace

VerbBody AddBenchSuite(CLI::App& app) {
  auto verb = std::make_shared<BenchSuiteVerb>();
  AddText(app, "--only", verb->only, "NAME[,NAME]",
          "Workloads to run: cnn:64, or cnn for all of it");
  AddText(app, "--against", verb->against, "FILE",
          "An earlier --out: compares times relative to the machine's speed; exit 7 when one grew "
          "by over 5 %");
  AddInteger(app, "--rounds", verb->rounds, {.minimum = 1, .maximum = 1000}, "N",
             fmt::format("Runs of each workload ({})", kRounds));
  AddInteger(app, "--threads", verb->threads, {.minimum = 1, .maximum = 1024}, "N",
             "Threads of the kernels (all cores that may be used)");
  AddText(app, "--out", verb->out, "FILE", "Writes the results as JSON")->group(kOutputGroup);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [verb] { return RunBenchSuite(*verb); };
}

}  // namespace ridge::cli
