// `ridge train`: the first stop of a training step.
//
// Where we come from: the command line.  What is known here: the user's options.
// Where it goes next: train/loop/trainer.cc, which loads model and data, plans, and runs the plan.
#include <fmt/format.h>

#include <csignal>

#include "ridge/cli/config_file.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/find_rate.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/rank_machine.h"
#include "ridge/cli/ranks.h"
#include "ridge/cli/sweep.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/train_observer.h"
#include "ridge/cli/train_words.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/train/loop/trainer.h"
#include "ridge/train/store/run.h"

namespace ridge::cli {
namespace {

struct TrainVerb {
  TrainFlags train;
  OutputFlags output;
  std::optional<std::string> resume;  // "": in --out, else the newest run
  std::optional<std::string> checkpoint, save_config;
  std::vector<std::string> sweeps;
  std::optional<double> late_after_s;
  bool allow_different = false;
  bool find_lr = false, json = false;
};

// The checkpoint of a run as the MODEL.
Result<std::string> StartCheckpoint(const TrainVerb& verb) {
  if (!verb.checkpoint || verb.train.Has("model"))
    return CheckpointOf(verb.checkpoint, verb.train.options.model);
  return InvalidArgument(
      "--checkpoint says what a new run starts from; --resume goes on from the newest. "
      "hint: ridge train RUN --checkpoint N");
}

Result<TrainRequest> MakeRequest(const CLI::App& app, const TrainVerb& verb) {
  TrainRequest request;
  request.options = verb.train.options;
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, StartedDevices(verb.train.options));
  request.options.batch = BatchOf(verb.train, devices);
  request.resume = verb.resume.has_value();
  request.allow_different = verb.allow_different;
  request.given = GivenKeys(verb.train);
  RIDGE_ASSIGN_OR_RETURN(request.start_checkpoint, StartCheckpoint(verb));
  if (!request.resume) {
    RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.train.Has("model"), "MODEL",
                                          "`ridge models` lists the built-in ones"));
    RIDGE_RETURN_IF_ERROR(
        RequireArgument(app, verb.train.Has("data"), "--data", "--data fashion-mnist"));
    return request;
  }
  if (!verb.resume->empty() && !request.options.out.empty() &&
      *verb.resume != request.options.out) {
    return InvalidArgument("--resume and --out name different folders. hint: leave --out out");
  }
  if (!verb.resume->empty()) request.options.out = *verb.resume;
  return request;
}

Result<CommandLineObserver::Options> ObserverOptions(const OutputFlags& flags) {
  CommandLineObserver::Options options;
  RIDGE_ASSIGN_OR_RETURN(options.out, TerminalFor(stdout, flags));
  RIDGE_ASSIGN_OR_RETURN(options.err, TerminalFor(stderr, flags));
  RIDGE_ASSIGN_OR_RETURN(options.progress, ParseProgressMode(flags.progress.value_or("auto")));
  options.quiet = flags.quiet;
  options.verbose = flags.verbose;
  options.receipts = WantsReceipts(flags);
  return options;
}

void Tell(const TrainOutcome& outcome, bool quiet) {
  if (outcome.end == RunEnd::kCompleted) return;
  if (outcome.end == RunEnd::kWasFinished) return SayUnless(quiet)(outcome.message);
  const bool stopped = outcome.end == RunEnd::kPreempted;
  PrintError(Status(stopped ? ErrorCode::kOk : ErrorCode::kUnavailable, outcome.message));
}

int ExitCodeOf(RunEnd end) {
  if (end == RunEnd::kCompleted || end == RunEnd::kWasFinished) return kExitOk;
  return end == RunEnd::kPreempted ? kExitStopped : kExitFailed;
}

struct Training {
  const TrainVerb& verb;
  TrainRequest request;
  TrainOptions options;  // resolved
  CommandLineObserver::Options shown;
};

Result<OpenedMachine> OpenFor(const Training& training, MpiCommunicator* ranks) {
  // A resumed run has the kernel times of its choices in its folder.
  const bool goes_on = training.request.resume && Run::Exists(training.options.out);
  MachineChoice choice = ChoiceOf(training.verb.train, training.options);
  choice.times = !goes_on;
  choice.counters = !training.verb.find_lr;
  const bool quiet = training.verb.output.quiet;
  if (ranks != nullptr) return OpenRank(choice, training.options, *ranks, quiet);
  return OpenMachine(choice, SayUnless(quiet));
}

// `ranks`: null when this process is alone.
Result<int> RunTraining(const Training& training, MpiCommunicator* ranks) {
  const TrainVerb& verb = training.verb;
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened, OpenFor(training, ranks));
  // A reader that closes our output must not end a training.
  std::signal(SIGPIPE, SIG_IGN);
  if (verb.find_lr) return RunFindRate(training.request, opened.machine, verb.output, verb.json);
  CommandLineObserver observer(training.shown, opened.machine);
  const Result<TrainOutcome> outcome = Train(training.request, opened.machine, observer);
  observer.EndProgress();
  if (!outcome.ok()) return outcome.status();
  if (ranks == nullptr || ranks->rank() == 0) Tell(*outcome, verb.output.quiet);
  return ExitCodeOf(outcome->end);
}

Status CheckRanks(Communicator& ranks, const Training& training) {
  if (training.verb.find_lr)
    return InvalidArgument("--find-lr runs on one device. hint: leave --devices out");
  return CheckAlike(ranks, training.options);
}

Result<int> RunTrain(const CLI::App& app, const TrainVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const CommandLineObserver::Options shown, ObserverOptions(verb.output));
  if (verb.save_config) {
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.save_config, ConfigText(verb.train)));
    return kExitOk;
  }
  RIDGE_ASSIGN_OR_RETURN(const TrainRequest request, MakeRequest(app, verb));
  if (!verb.sweeps.empty()) {
    RIDGE_RETURN_IF_ERROR(CheckNoLauncher("--sweep"));
    return RunSweep(verb.sweeps, verb.train, verb.output);
  }
  RIDGE_ASSIGN_OR_RETURN(const TrainOptions options, ResolveOptions(request));
  RIDGE_RETURN_IF_ERROR(CheckOptions(options));
  if (!request.resume) RIDGE_RETURN_IF_ERROR(CheckModel(options));
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, DevicesOf(options));
  RIDGE_ASSIGN_OR_RETURN(
      const std::unique_ptr<MpiCommunicator> ranks,
      JoinRanks({devices, request.given.contains("devices") || !options.mesh.empty(),
                 verb.late_after_s.value_or(kLateAfter_s)}));
  const Training training = {verb, request, options, shown};
  if (ranks == nullptr) return RunTraining(training, nullptr);
  const Status alike = CheckRanks(*ranks, training);
  if (!alike.ok()) return FailAlike(*ranks, alike);
  return EndRanks(*ranks, RunTraining(training, ranks.get()));
}

// The flags of the verb, and where their values are.
std::shared_ptr<TrainVerb> AddFlags(CLI::App& app) {
  auto verb = std::make_shared<TrainVerb>();
  AddTrainFlags(app, verb->train);
  AddDevicesFlags(app, verb->train);
  AddOptions(app, verb->train, {"mesh", "shard", "pipeline", "shares", "wire", "overlap"});
  AddNumber(app, "--late-after", verb->late_after_s, {.maximum = 86400}, "SECONDS",
            "End the job, and name the rank, when one keeps the others waiting for so long without "
            "reason (5; 0: never)")
      ->group("Devices");
  AddCheckpointFlag(app, verb->checkpoint);
  AddOptionalText(app, "--resume", verb->resume, "DIR",
                  "Continue the run in DIR (the newest one); needs no other option; with --epochs "
                  "or --steps to a new end")
      ->group("Run folder");
  CLI::Option* sweep =
      AddTexts(app, "--sweep", verb->sweeps, "OPTION=VALUE,VALUE",
               "A run for each value, one after another, and a table of them: lr=1e-3,3e-4; given "
               "again, for each combination");
  sweep->group("Training");
  Exclude(sweep, app.get_option("--resume"));
  Exclude(sweep, app.get_option("--batch-per-device"));
  CLI::Option* find = AddSwitch(
      app, "--find-lr", verb->find_lr,
      "Look for a learning rate: 100 updates (--steps N) from 1e-7 to 1, the curve of the "
      "loss, and a suggestion; leaves no run");
  find->group("Training");
  Exclude(find, app.get_option("--resume"));
  Exclude(find, sweep);
  AddSwitch(app, "--json", verb->json, "With --find-lr: print JSON")
      ->group(kOutputGroup)
      ->needs(find);
  AddSwitch(app, "--allow-different", verb->allow_different,
            "Resume on another CPU type or number of threads, or with other data; results may then "
            "differ")
      ->group("Run folder");
  AddChoice(app, "--progress", verb->output.progress, {"auto", "bar", "plain", "json", "none"},
            "Progress (auto: a bar on terminals, else a line every few seconds)")
      ->group(kOutputGroup);
  AddReceiptsFlag(app, verb->output);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  AddConfigFlag(app);
  AddSaveConfigFlag(app, verb->save_config);
  return verb;
}

}  // namespace

Result<TrainWords> ReadTrainWords(const std::vector<std::string>& words) {
  CLI::App app("", "train");
  const auto verb = AddFlags(app);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
    ApplyEnvironment(app);
    ApplyConfig(app);
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(fmt::format("train: {}. hint: ridge train --help", error.what()));
  }
  if (!verb->sweeps.empty() || verb->find_lr || verb->save_config) {
    return InvalidArgument(
        "train: --sweep, --find-lr and --save-config make no run of their own. hint: leave them "
        "out");
  }
  RIDGE_ASSIGN_OR_RETURN(const TrainRequest request, MakeRequest(app, *verb));
  RIDGE_ASSIGN_OR_RETURN(const TrainOptions options, ResolveOptions(request));
  RIDGE_RETURN_IF_ERROR(CheckOptions(options));
  return TrainWords{options, request.resume, request.given};
}

VerbBody AddTrain(CLI::App& app) {
  const auto verb = AddFlags(app);
  return [&app, verb] { return RunTrain(app, *verb); };
}

}  // namespace ridge::cli
