// `ridge launch`: a training on many devices, started by what a cluster has.
//
// It writes what starts the ranks, says what one rank will have, and sends it with --submit; of
// mpirun it is the parent that starts ranks again after failures (supervise.h).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/launch_files.h"
#include "ridge/cli/output.h"
#include "ridge/cli/supervise.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/train_words.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/slice_tree.h"
#include "ridge/core/threads.h"
#include "ridge/core/units.h"
#include "ridge/dist/mpirun.h"
#include "ridge/partition/layouts.h"
#include "ridge/train/job/slicing.h"
#include "ridge/train/store/run_folder.h"

namespace ridge::cli {
namespace {

struct LaunchVerb {
  std::optional<std::string> on, mpi, file, image, claim, program;
  std::optional<int64_t> devices, min_devices, per_node, cpus, max_restarts;
  std::vector<std::string> words;  // "train", ...
  OutputFlags output;
  bool submit = false, json = false;
};

struct Launch {
  std::string on;
  TrainWords train;
  LaunchJob job;
  std::vector<std::string> first;  // words of the first start
  std::string file;                // "" for mpirun
  std::string content;             // of it
  std::vector<std::string> command;
  std::string plan;
};

bool IsKubernetes(const std::string& on) { return on == "mpijob" || on == "trainjob"; }

// A name that Kubernetes and Slurm take: "cnn-1" of "runs/cnn-1".
std::string JobName(const std::string& folder) {
  std::string name;
  for (const char c : std::filesystem::path(folder).filename().string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    name += plain ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  }
  while (!name.empty() && name.front() == '-') name.erase(0, 1);
  name.resize(std::min<size_t>(name.size(), 40));
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "run-" + name
                                                                                : name;
}

// The next free runs/MODEL-N; nothing is made there.
std::string FreeFolder(const std::string& model) {
  for (int n = 1;; ++n) {
    std::string folder = fmt::format("runs/{}-{}", ShortModelName(model), n);
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) return folder;
  }
}

Status CheckWords(const LaunchVerb& verb, const TrainWords& train) {
  if (std::any_of(verb.words.begin(), verb.words.end(), [](const std::string& word) {
        return word == "--devices" || word.starts_with("--devices=");
      })) {
    return InvalidArgument(
        "launch: --devices stands behind `train`. hint: ridge launch --devices N -- train ...");
  }
  if (train.options.out.empty() && train.resumes)
    return InvalidArgument("launch: --resume needs the folder of the run. hint: --resume DIR");
  return Status();
}

Status CheckKubernetes(const LaunchVerb& verb, const std::string& on, Mpi mpi) {
  if (!IsKubernetes(on)) return Status();
  if (!verb.image || !verb.claim) {
    return InvalidArgument(
        fmt::format("launch --on {}: --image and --claim are missing. hint: --image NAME, the "
                    "container with ridge, sshd and an MPI; --claim NAME, the volume claim that "
                    "holds data and runs",
                    on));
  }
  if (on == "trainjob" && mpi != Mpi::kOpenMpi)
    return InvalidArgument(
        "launch --on trainjob: its schema has host files of Open MPI alone. "
        "hint: --on mpijob, or --mpi openmpi");
  return Status();
}

int64_t SlicesOf(const TrainOptions& options, int64_t devices) {
  const Result<int64_t> given = ParseSlices(options.slices);
  if (given.ok() && *given != kAutoSlices) return *given;
  const Result<SharesOption> shares = ParseShares(options.shares);
  return FewestSlices(options.batch, devices, shares.ok() ? *shares : SharesOption());
}

// What one rank will have.
std::string PlanText(const TrainOptions& options, int64_t devices) {
  if (const Result<Mesh> mesh = ParseMesh(options.mesh);
      mesh.ok() && mesh->Find(kPipelineAxis) >= 0) {
    return fmt::format("rank 0 of {}, mesh {}, pipeline {}", devices, options.mesh,
                       options.pipeline.empty() ? "1f1b" : options.pipeline);
  }
  if (!options.mesh.empty()) {
    return fmt::format("rank 0 of {}, mesh {}, shard {}", devices, options.mesh,
                       options.shard.empty() ? "none" : options.shard);
  }
  const int64_t slices = SlicesOf(options, devices);
  SliceShare share{slices, 0, static_cast<int>(devices)};
  if (const Result<SharesOption> shares = ParseShares(options.shares);
      shares.ok() && !shares->parts.empty())
    share.dealt = DealSlices(slices, shares->parts);
  const std::vector<int64_t> counts = share.Counts();
  const int64_t own = counts.front(), most = *std::max_element(counts.begin(), counts.end());
  return fmt::format("rank 0 of {} computes {} of {}, {} of {} samples a step{}", devices, own,
                     FormatCountOf(slices, "slice"), share.OwnedSamples(options.batch).count(),
                     options.batch, own == most ? "" : fmt::format("; others up to {}", most));
}

Status CheckDevices(const TrainOptions& options, int64_t devices) {
  if (!options.mesh.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const int64_t needed, DevicesOf(options));
    if (devices == needed) return Status();
    return InvalidArgument(
        fmt::format("launch: --mesh {} is of {} devices, not {}. hint: leave "
                    "--devices and --min-devices out",
                    options.mesh, needed, devices));
  }
  RIDGE_RETURN_IF_ERROR(CheckShares(options, devices));
  const int64_t slices = SlicesOf(options, devices);
  if (slices < devices || options.batch % slices != 0) {
    return InvalidArgument(fmt::format(
        "launch: batch {} in {} is too little for {} devices. hint: --slices {} behind `train`",
        options.batch, FormatCountOf(slices, "slice"), devices,
        FewestSlices(options.batch, devices)));
  }
  return Status();
}

// "train", what was given, and where.  Threads are the same on every start, whatever its ranks.
std::vector<std::string> WordsOf(const LaunchVerb& verb, const Launch& launch, bool again) {
  std::vector<std::string> words = verb.words;
  const auto add = [&](const std::string& word, const std::string& value = "") {
    words.push_back(word);
    if (!value.empty()) words.push_back(value);
  };
  const bool resumes = launch.train.resumes;
  if (!resumes && !launch.train.given.contains("out")) add("--out", launch.job.folder);
  if (launch.on == "mpirun" && !resumes && launch.train.options.threads == 0)
    add("--threads", std::to_string(std::max<int64_t>(1, AvailableThreads() / launch.job.devices)));
  if (launch.on != "mpirun" && !resumes && launch.train.options.threads == 0 && verb.cpus)
    add("--threads", std::to_string(*verb.cpus));
  const bool adds = launch.train.options.mesh.empty() && launch.train.options.sums != "tree";
  if (!resumes && adds) add("--sums", "tree");
  if (!resumes && again) add("--resume");
  return words;
}

Result<Mpi> MpiOf(const LaunchVerb& verb, const std::string& on) {
  if (verb.mpi) return *verb.mpi == "mpich" ? Mpi::kMpich : Mpi::kOpenMpi;
  if (IsKubernetes(on)) return Mpi::kOpenMpi;
  const auto* found = std::find_if(std::begin(kAllMpis), std::end(kAllMpis),
                                   [](Mpi mpi) { return !FindMpiPlugin(mpi).empty(); });
  return found == std::end(kAllMpis) ? Mpi::kOpenMpi : *found;
}

std::string ContentOf(const Launch& launch) {
  if (launch.on == "slurm") return SlurmScript(launch.job);
  return launch.on == "mpijob" ? MpiJobYaml(launch.job) : TrainJobYaml(launch.job);
}

Result<std::string> ProgramFor(const LaunchVerb& verb, const std::string& on) {
  if (verb.program) return *verb.program;
  if (IsKubernetes(on)) return std::string("ridge");
  return OwnProgram();
}

Result<Launch> MakeLaunch(const LaunchVerb& verb) {
  Launch launch;
  launch.on = verb.on.value_or("mpirun");
  if (verb.words.empty() || verb.words.front() != "train") {
    return InvalidArgument(
        "launch: the training is missing. hint: ridge launch --devices 2 -- train MODEL --data "
        "SPEC");
  }
  RIDGE_ASSIGN_OR_RETURN(launch.train, ReadTrainWords({verb.words.begin() + 1, verb.words.end()}));
  RIDGE_RETURN_IF_ERROR(CheckWords(verb, launch.train));
  LaunchJob& job = launch.job;
  RIDGE_ASSIGN_OR_RETURN(const int64_t named, DevicesOf(launch.train.options));
  job.devices = verb.devices.value_or(launch.train.options.mesh.empty() ? 2 : named);
  RIDGE_RETURN_IF_ERROR(CheckDevices(launch.train.options, job.devices));
  if (verb.min_devices && !launch.train.options.mesh.empty())
    RIDGE_RETURN_IF_ERROR(CheckDevices(launch.train.options, *verb.min_devices));
  job.devices_per_node = verb.per_node.value_or(IsKubernetes(launch.on) ? 1 : job.devices);
  if (job.devices % job.devices_per_node != 0) {
    return InvalidArgument(
        fmt::format("--devices is {}; nodes of {} do not make it. hint: a multiple", job.devices,
                    FormatCountOf(job.devices_per_node, "device")));
  }
  RIDGE_ASSIGN_OR_RETURN(job.mpi, MpiOf(verb, launch.on));
  RIDGE_RETURN_IF_ERROR(CheckKubernetes(verb, launch.on, job.mpi));
  job.cpus = verb.cpus.value_or(0);
  job.max_restarts = verb.max_restarts.value_or(job.max_restarts);
  job.image = verb.image.value_or("");
  job.claim = verb.claim.value_or("");
  job.has_shares = !ParseShares(launch.train.options.shares)->parts.empty();
  RIDGE_ASSIGN_OR_RETURN(job.program, ProgramFor(verb, launch.on));
  const TrainOptions& options = launch.train.options;
  job.folder = options.out.empty() ? FreeFolder(options.model) : options.out;
  job.name = JobName(job.folder);
  launch.first = WordsOf(verb, launch, /*again=*/false);
  job.words = WordsOf(verb, launch, /*again=*/true);
  launch.plan = PlanText(options, job.devices);
  if (launch.on != "mpirun") {
    launch.file = verb.file.value_or(
        fmt::format("{}.{}", job.name, launch.on == "slurm" ? "sbatch" : "yaml"));
    launch.content = ContentOf(launch);
    launch.command = launch.on == "slurm"
                         ? std::vector<std::string>{"sbatch", launch.file}
                         : std::vector<std::string>{"kubectl", "apply", "-f", launch.file};
  }
  return launch;
}

Result<int> RunProgram(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    UnpinThread();
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int state = 0;
  while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (child > 0 && WIFEXITED(state) && WEXITSTATUS(state) != 127) return WEXITSTATUS(state);
  return Status(ErrorCode::kUnavailable,
                fmt::format("{} cannot be started here. hint: `{}` on a machine of the cluster",
                            words[0], ShellLine(words)));
}

std::string LaunchJson(const Launch& launch) {
  using Json = nlohmann::ordered_json;
  const Json json = {{"on", launch.on},
                     {"folder", launch.job.folder},
                     {"devices", launch.job.devices},
                     {"batch", launch.train.options.batch},
                     {"slices", SlicesOf(launch.train.options, launch.job.devices)},
                     {"file", launch.file.empty() ? Json() : Json(launch.file)},
                     {"command", launch.command}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<int> SubmitFile(const Launch& launch) {
  RIDGE_ASSIGN_OR_RETURN(const int code, RunProgram(launch.command));
  if (code == 0) return kExitOk;
  return Status(ErrorCode::kUnavailable,
                fmt::format("`{}` failed with {}", ShellLine(launch.command), code));
}

Result<int> RunLaunch(const LaunchVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(Launch launch, MakeLaunch(verb));
  std::optional<Mpirun> mpirun;
  if (launch.on == "mpirun") {
    RIDGE_ASSIGN_OR_RETURN(
        mpirun,
        FindMpirun(verb.mpi ? std::optional(launch.job.mpi) : std::nullopt, launch.job.devices));
    std::vector<std::string> program = {launch.job.program};
    program.insert(program.end(), launch.first.begin(), launch.first.end());
    launch.command =
        MpirunWords(*mpirun, {launch.job.devices, PhysicalCores(), geteuid() == 0}, program);
  } else if (IsStandardOutput(launch.file)) {
    if (verb.submit || verb.json)
      return InvalidArgument("launch: --file - prints the file and nothing else");
    PrintData(launch.content);
    return kExitOk;
  } else {
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(launch.file, launch.content));
  }
  const auto say = SayUnless(verb.output.quiet);
  if (verb.json) PrintData(LaunchJson(launch));
  if (!verb.json) {
    say(fmt::format("{}: {}", launch.job.folder, launch.plan));
    if (!launch.file.empty()) say(fmt::format("{} is written", launch.file));
    if (!verb.submit) PrintData(fmt::format("{}\n", ShellLine(launch.command)));
  }
  if (!verb.submit) return kExitOk;
  if (!mpirun) return SubmitFile(launch);
  const RestartPolicy::Limits limits = {
      launch.job.devices, verb.min_devices.value_or(launch.job.devices), launch.job.max_restarts};
  return Supervise(launch.job, *mpirun, launch.first, limits, say);
}

}  // namespace

VerbBody AddLaunch(CLI::App& app) {
  auto verb = std::make_shared<LaunchVerb>();
  app.add_option("words", verb->words, "The training: -- train MODEL --data SPEC ...")
      ->type_name("-- train MODEL ...");
  AddChoice(app, "--on", verb->on, {"mpirun", "slurm", "mpijob", "trainjob"},
            "What starts the ranks: mpirun on this machine (default), a batch script of Slurm, an "
            "MPIJob or a TrainJob of Kubernetes");
  AddInteger(app, "--devices", verb->devices, {1, 65536}, "N", "How many (2)");
  AddSwitch(app, "--submit", verb->submit,
            "Send it: run mpirun and start it again after failures, sbatch, or kubectl apply");
  AddInteger(app, "--max-restarts", verb->max_restarts, {0, 1000000}, "N",
             "Restarts after failures (3); of mpirun those without a newer checkpoint count");
  AddInteger(app, "--min-devices", verb->min_devices, {1, 65536}, "N",
             "With mpirun: after a restart without a newer checkpoint go on with a device fewer, "
             "down to so many");
  AddInteger(app, "--devices-per-node", verb->per_node, {1, 65536}, "N",
             "Of Slurm (all) and Kubernetes (1)");
  AddInteger(app, "--cpus-per-device", verb->cpus, {1, 65536}, "N",
             "Of Slurm and Kubernetes: cores and threads of a rank");
  AddChoice(app, "--mpi", verb->mpi, {"openmpi", "mpich"},
            "Which MPI (the first that has a plug-in here)");
  AddText(app, "--image", verb->image, "NAME",
          "Of Kubernetes: the container, with ridge, sshd and an MPI");
  AddText(app, "--claim", verb->claim, "NAME",
          "Of Kubernetes: the volume claim with data and runs, at /work");
  AddText(app, "--program", verb->program, "FILE",
          "ridge where the ranks run (this file; in a container `ridge`)");
  AddText(app, "--file", verb->file, "FILE",
          "Where to write (NAME.sbatch, NAME.yaml of the run's folder; -: print it)");
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddQuietFlags(app, verb->output);
  return [verb] { return RunLaunch(*verb); };
}

}  // namespace ridge::cli
