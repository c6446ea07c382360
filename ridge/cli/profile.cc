// `ridge profile`: where the time of a training step goes, and what would help most.
#include "ridge/measure/profile.h"

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/train/load/folder_options.h"
#include "ridge/train/store/run.h"

namespace ridge::cli {
namespace {

struct ProfileVerb {
  TrainFlags train;
  OutputFlags output;
  std::optional<std::string> trace, html;
  bool json = false;
};

// A run is profiled with its own options, except those of the command line.
Result<ProfileRequest> MakeRequest(const ProfileVerb& verb) {
  ProfileRequest request;
  const std::string& model = verb.train.options.model;
  TrainOptions base;
  if (Run::Exists(model)) {
    RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
    base = run.options();
    base.accumulate = 1;  // a step is one batch
    base.threads = 0;
    base.validation.clear();
    base.weights.clear();
    base.weights_skip.clear();
    if (verb.train.Has("batch")) base.loss_chunks = "auto";
    request.run = model;
  }
  const std::string run_model = base.model;
  request.options = ToTrainOptions(verb.train, std::move(base));
  if (!request.run.empty()) request.options.model = run_model;
  request.options.epochs.reset();
  request.options.steps.reset();  // the profile counts its own
  request.steps = verb.train.options.steps;
  request.with_data = !request.options.data.empty();
  if (!request.with_data) request.options.data = "synthetic";  // the source of the batch
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(request.options));
  RIDGE_RETURN_IF_ERROR(CheckOptions(request.options));
  if (request.run.empty()) RIDGE_RETURN_IF_ERROR(CheckModel(request.options));
  return request;
}

Status WriteFiles(const ProfileVerb& verb, const StepProfile& profile) {
  const auto say = SayUnless(verb.output.quiet || verb.json);
  if (verb.trace) {
    RIDGE_RETURN_IF_ERROR(WriteProfileTrace(profile, *verb.trace));
    say("timeline in " + *verb.trace + ", for ui.perfetto.dev");
  }
  if (verb.html) {
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.html, ProfileToHtml(profile)));
    say("page in " + *verb.html);
  }
  return Status();
}

Result<int> RunProfile(const CLI::App& app, const ProfileVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.train.Has("model"), "MODEL",
                                        "`ridge models` lists the built-in ones"));
  const bool page = IsStandardOutput(verb.html), timeline = IsStandardOutput(verb.trace);
  RIDGE_RETURN_IF_ERROR(
      OneOnStandardOutput({{"--json", verb.json}, {"--trace", timeline}, {"--html", page}}));
  RIDGE_ASSIGN_OR_RETURN(ProfileRequest request, MakeRequest(verb));
  RIDGE_ASSIGN_OR_RETURN(
      const OpenedMachine opened,
      OpenMachine(ChoiceOf(verb.train, request.options), SayUnless(verb.output.quiet)));
  request.measure_peaks = PeaksOf(opened);
  RIDGE_ASSIGN_OR_RETURN(const ProfiledRun run, ProfileRun(request, opened.machine));
  const auto print = page || timeline ? PrintTalk : PrintData;
  print(verb.json ? ProfileToJson(run.profile) + "\n" : ProfileReport(run.profile, terminal));
  RIDGE_RETURN_IF_ERROR(WriteFiles(verb, run.profile));
  return kExitOk;
}

}  // namespace

VerbBody AddProfile(CLI::App& app) {
  auto verb = std::make_shared<ProfileVerb>();
  AddModelArgument(app, verb->train,
                   "A built-in model, an ONNX file, a graph in text form or a run folder");
  AddGroup(app, verb->train, OptionGroup::kModel);
  AddOption(app, verb->train, "data",
            "Data of the batches; the wait for them counts (one random batch in memory)");
  AddOptions(app, verb->train, {"batch", "slices", "recompute", "loss-chunks"});
  AddOption(app, verb->train, "steps",
            "Rounds of one step with node times and one without (5 s of them)");
  AddOption(app, verb->train, "seed", "Seed of initial values and batch (0)");
  AddOptimizerFlags(app, verb->train);
  AddMachineFlags(app, verb->train);
  AddText(app, "--trace", verb->trace, "FILE",
          "A timeline with the memory in use, for Perfetto (-: standard output)")
      ->group(kOutputGroup);
  AddText(app, "--html", verb->html, "FILE", "The same as one page for a browser")
      ->group(kOutputGroup);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunProfile(app, *verb); };
}

}  // namespace ridge::cli
