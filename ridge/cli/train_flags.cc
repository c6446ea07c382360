#include "ridge/cli/train_flags.h"

#include <fmt/format.h>

#include <utility>

#include "ridge/cli/flags.h"
#include "ridge/train/store/checkpoint.h"
#include "ridge/train/store/run_folder.h"

namespace ridge::cli {
namespace {

constexpr char kModelDoc[] =
    "A built-in model (`ridge models` lists them; cnn:filters=64), an ONNX file (net.onnx), a "
    "graph "
    "in text form (net.ridge) or a run folder";
constexpr IntegerRange kFromOne = {.minimum = 1};
constexpr IntegerRange kFromZero = {.minimum = 0};
constexpr int64_t kMostThreads = 1024;

CLI::Option* AddTexts(CLI::App& app, const std::string& name, std::vector<std::string>& to,
                      const std::string& value_name, const std::string& doc) {
  return app.add_option(name, to, doc)
      ->type_name(value_name)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddDataFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Data";
  AddText(app, "--data", flags.data, "SPEC",
          "fashion-mnist, synthetic, idx:DIR, npz:FILE or csv:FILE")
      ->group(group);
  AddText(app, "--validation", flags.validation, "SPEC",
          "Data to evaluate on while training, or the fraction of --data to hold out (0.1)")
      ->group(group);
  AddInteger(app, "--batch", flags.batch, kFromOne, "N", "Samples a step (32)")->group(group);
  AddInteger(app, "--accumulate", flags.accumulate, kFromOne, "N",
             "Batches whose gradients make one update (1)")
      ->group(group);
  AddSlicesFlag(app, flags.slices)->group(group);
  AddRecomputeFlag(app, flags.recompute)->group(group);
}

void AddLengthFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Training";
  CLI::Option* epochs =
      AddInteger(app, "--epochs", flags.epochs, kFromOne, "N", "Times through the data (1)");
  CLI::Option* steps =
      AddInteger(app, "--steps", flags.steps, kFromOne, "N", "Updates, instead of --epochs");
  Exclude(epochs, steps);
  epochs->group(group);
  steps->group(group);
}

void AddScheduleFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Training";
  AddChoice(app, "--schedule", flags.schedule, {"constant", "step", "cosine"},
            "How the learning rate goes down (constant)")
      ->group(group);
  AddInteger(app, "--warmup", flags.warmup, kFromZero, "STEPS",
             "Steps in which the learning rate grows to --lr (0)")
      ->group(group);
  AddNumber(app, "--clip-norm", flags.clip_norm, {.minimum = 0, .minimum_allowed = false}, "X",
            "Largest norm of all gradients together (none)")
      ->group(group);
  AddInteger(app, "--seed", flags.seed, kFromZero, "N", "Governs all random numbers (0)")
      ->group(group);
}

void AddKeepingFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Run folder";
  AddText(app, "--out", flags.out, "DIR", "The run folder (runs/MODEL-N)")->group(group);
  AddInteger(app, "--checkpoint-every", flags.checkpoint_every, kFromOne, "STEPS",
             "Steps between checkpoints (one each epoch)")
      ->group(group);
  AddInteger(app, "--keep", flags.keep, kFromOne, "N", "Checkpoints to keep (3)")->group(group);
  AddInteger(app, "--eval-every", flags.eval_every, kFromOne, "STEPS",
             "Steps between evaluations (one each epoch)")
      ->group(group);
  AddSwitch(app, "--trace", flags.trace, "Write trace.json, for Perfetto or chrome://tracing")
      ->group(group);
}

template <typename T>
void Take(const std::optional<T>& flag, T& to) {
  if (flag) to = *flag;
}

void TakeTexts(const std::vector<std::string>& flags, std::vector<std::string>& to) {
  if (!flags.empty()) to = flags;
}

void TakeTraining(const TrainFlags& flags, TrainOptions& options) {
  if (flags.epochs) options.epochs = flags.epochs;
  if (flags.steps) options.steps = flags.steps;
  Take(flags.batch, options.batch);
  Take(flags.accumulate, options.accumulate);
  Take(flags.slices, options.slices);
  Take(flags.recompute, options.recompute);
  Take(flags.optimizer, options.optimizer.name);
  Take(flags.momentum, options.optimizer.momentum);
  if (flags.weight_decay) options.optimizer.weight_decay = flags.weight_decay;
  Take(flags.lr, options.lr);
  Take(flags.schedule, options.schedule);
  Take(flags.warmup, options.warmup);
  Take(flags.clip_norm, options.clip_norm);
  if (flags.seed) options.seed = static_cast<uint64_t>(*flags.seed);
}

void TakeModel(const TrainFlags& flags, TrainOptions& options) {
  Take(flags.model, options.model);
  Take(flags.loss, options.loss);
  Take(flags.batch_norm, options.batch_norm);
  Take(flags.weights, options.weights);
  TakeTexts(flags.weights_skip, options.weights_skip);
  TakeTexts(flags.dims, options.dims);
  TakeTexts(flags.freeze, options.freeze);
  TakeTexts(flags.trainable, options.trainable);
}

}  // namespace

CLI::Option* AddSlicesFlag(CLI::App& app, std::optional<std::string>& to) {
  return AddText(app, "--slices", to, "auto|N",
                 "Parts of a batch that run one after the other, for caches and memory (auto)");
}

CLI::Option* AddRecomputeFlag(CLI::App& app, std::optional<std::string>& to) {
  return AddText(app, "--recompute", to, "auto|off|all|N",
                 "Activations that are cheap to compute again are not kept for the backward pass: "
                 "none, all, the best N, or those that free much for little time (auto)");
}

void AddCheckpointFlag(CLI::App& app, std::optional<std::string>& to) {
  AddText(app, "--checkpoint", to, "newest|best|N",
          "Of a run: the checkpoint to use, N by its step (newest)")
      ->group("Model");
}

Result<std::string> CheckpointOf(const std::optional<std::string>& flag, const std::string& model) {
  if (!flag) return std::string(kNewestCheckpoint);
  RIDGE_RETURN_IF_ERROR(CheckCheckpointName(*flag));
  if (RunFolder::HoldsRun(model)) return *flag;
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("--checkpoint is for a run; {} is none. hint: leave it out", model));
}

void AddDimFlag(CLI::App& app, std::vector<std::string>& to) {
  AddTexts(app, "--dim", to, "NAME=N", "Extent of a named dimension of the model")->group("Model");
}

void AddWeightsFlags(CLI::App& app, std::optional<std::string>& file,
                     std::vector<std::string>& skip) {
  const std::string group = "Model";
  AddText(app, "--weights", file, "FILE",
          "Starting values: a .safetensors file, under our names or those of torchvision, timm or "
          "Hugging Face")
      ->group(group);
  AddTexts(app, "--weights-skip", skip, "PATTERN",
           "Tensors that are not taken from --weights, such as 'fc.*'")
      ->group(group);
}

void AddModelFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Model";
  AddText(app, "--loss", flags.loss, "LOSS",
          "cross_entropy:OUTPUT, mse:OUTPUT, bce:OUTPUT, or an output that is the loss (loss)")
      ->group(group);
  AddDimFlag(app, flags.dims);
  AddWeightsFlags(app, flags.weights, flags.weights_skip);
  AddTexts(app, "--freeze", flags.freeze, "PATTERN",
           "ONNX: parameters that are not trained, such as 'encoder.*'")
      ->group(group);
  AddTexts(app, "--trainable", flags.trainable, "PATTERN",
           "ONNX: parameters that are trained although --freeze or the file says no")
      ->group(group);
  AddChoice(app, "--batch-norm", flags.batch_norm, {"train", "frozen"},
            "ONNX: normalize with the batch's statistics or with the file's (train)")
      ->group(group);
}

void AddOptimizerFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Training";
  AddChoice(app, "--optimizer", flags.optimizer, {"sgd", "adam", "adamw"},
            "What updates the parameters (adam)")
      ->group(group);
  AddNumber(app, "--lr", flags.lr, {.minimum = 0, .minimum_allowed = false}, "X",
            "Learning rate (0.001)")
      ->group(group);
  AddNumber(app, "--momentum", flags.momentum, {.minimum = 0}, "X", "Momentum of sgd (0)")
      ->group(group);
  AddNumber(app, "--weight-decay", flags.weight_decay, {.minimum = 0}, "X",
            "Weight decay (0; adamw 0.01)")
      ->group(group);
}

void AddPlaceFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Machine";
  AddText(app, "--device", flags.device, "cpu|cuda", "Where to run (cpu)")->group(group);
  AddChoice(app, "--backend", flags.backend, {"cpu", "reference"},
            "Kernels: fast, or the slow and plain ones that judge them (cpu)")
      ->group(group);
  AddInteger(app, "--threads", flags.threads, {.minimum = 1, .maximum = kMostThreads}, "N",
             "Threads of the kernels (all cores that may be used)")
      ->group(group);
  AddChoice(app, "--conv", flags.conv, {"auto", "direct"},
            "Convolutions: Winograd where it is faster, or as the formula adds (auto where "
            "models train and in what they trained, else direct)")
      ->group(group);
}

void AddMachineFlags(CLI::App& app, TrainFlags& flags) {
  const std::string group = "Machine";
  AddPlaceFlags(app, flags);
  AddInteger(app, "--intra-op", flags.intra_op, {.minimum = 1, .maximum = kMostThreads}, "N",
             "Threads that share the work of one node (--threads)")
      ->group(group);
  AddText(app, "--inter-op", flags.inter_op, "auto|N",
          "Small nodes that do not wait for each other run side by side, a thread each: so many at "
          "most, or as many as there are threads where that is foreseen to be faster (1)")
      ->group(group);
  AddChoice(app, "--precision", flags.precision, {"f32", "bf16", "f16", "auto"},
            "What products read, and what is stored between them (f32); sums, losses and "
            "parameters are f32. auto: bf16 where the device has it")
      ->group(group);
  AddChoice(app, "--kernels", flags.kernels, {"default", "tuned"},
            "What chooses between kernels: graph, CPU type and threads alone, or what `ridge bench "
            "device --tune` measured here (default)")
      ->group(group);
  AddText(app, "--passes", flags.passes, "SPEC",
          "Rewrites of the graph: -NAME,-NAME leaves some out, only:NAME,NAME, or none")
      ->group(group);
}

void AddTrainFlags(CLI::App& app, TrainFlags& flags) {
  AddArgument(app, "MODEL", flags.model, kModelDoc);
  AddModelFlags(app, flags);
  AddDataFlags(app, flags);
  AddLengthFlags(app, flags);
  AddOptimizerFlags(app, flags);
  AddScheduleFlags(app, flags);
  AddMachineFlags(app, flags);
  AddSize(app, "--fit", flags.fit, "Memory that the run may use: 24GB, 512MiB, or bytes")
      ->group("Machine");
  AddKeepingFlags(app, flags);
}

void AddColorFlag(CLI::App& app, OutputFlags& flags) {
  AddChoice(app, "--color", flags.color, {"auto", "always", "never"}, "Colour (auto: on terminals)")
      ->group(kOutputGroup);
}

void AddQuietFlags(CLI::App& app, OutputFlags& flags) {
  CLI::Option* quiet = AddSwitch(app, "-q,--quiet", flags.quiet, "Say errors and warnings only");
  CLI::Option* verbose = AddSwitch(app, "-v,--verbose", flags.verbose, "Say more");
  Exclude(quiet, verbose);
  quiet->group(kOutputGroup);
  verbose->group(kOutputGroup);
}

TrainOptions ToTrainOptions(const TrainFlags& flags, TrainOptions base) {
  TrainOptions options = std::move(base);
  TakeTraining(flags, options);
  TakeModel(flags, options);
  Take(flags.data, options.data);
  Take(flags.validation, options.validation);
  Take(flags.precision, options.precision);
  Take(flags.device, options.device);
  Take(flags.threads, options.threads);
  Take(flags.intra_op, options.intra_op);
  Take(flags.inter_op, options.inter_op);
  Take(flags.conv, options.conv);
  Take(flags.kernels, options.kernels);
  Take(flags.fit, options.fit_bytes);
  Take(flags.out, options.out);
  Take(flags.checkpoint_every, options.checkpoint_every);
  Take(flags.keep, options.keep);
  Take(flags.eval_every, options.eval_every);
  Take(flags.passes, options.passes);
  options.trace = options.trace || flags.trace;
  return options;
}

std::set<std::string> GivenKeys(const CLI::App& app) {
  std::set<std::string> keys;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    if (option->get_positional()) keys.insert("model");
    for (const std::string& name : option->get_lnames()) keys.insert(name);
  }
  return keys;
}

Result<Terminal> TerminalFor(std::FILE* stream, const OutputFlags& flags) {
  RIDGE_ASSIGN_OR_RETURN(const ColourChoice choice,
                         ParseColourChoice(flags.color.value_or("auto")));
  return DetectTerminal(stream, choice);
}

}  // namespace ridge::cli
