// TrainFlags: the options that train, plan and bench share, as they were given.
#pragma once
#include <CLI/App.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/report/progress.h"
#include "ridge/report/terminal.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

// What to train and how.  Empty: not given, so TrainOptions' default.
struct TrainFlags {
  std::optional<std::string> model, data, validation, optimizer, schedule, precision, device, out;
  std::optional<std::string> passes, backend, conv, loss, batch_norm, weights, slices, recompute,
      kernels, inter_op;
  std::vector<std::string> weights_skip, dims, freeze, trainable;
  std::optional<int64_t> epochs, steps, batch, accumulate, warmup, threads, intra_op, seed, fit;
  std::optional<int64_t> checkpoint_every, keep, eval_every;
  std::optional<double> lr, momentum, weight_decay, clip_norm;
  bool trace = false;
};

// How a verb talks.
struct OutputFlags {
  std::optional<std::string> color, progress;
  bool quiet = false, verbose = false;
};

// --checkpoint, for verbs whose MODEL may be a run: newest, best, or a step's number.
void AddCheckpointFlag(CLI::App& app, std::optional<std::string>& to);
// "newest" where none is given.  Fails with kInvalidArgument for another word, and when one is
// given and `model` is no run.
Result<std::string> CheckpointOf(const std::optional<std::string>& flag, const std::string& model);

// MODEL and all of TrainFlags.
void AddTrainFlags(CLI::App& app, TrainFlags& flags);
// The parts that `bench step` takes as well.
void AddModelFlags(CLI::App& app, TrainFlags& flags);
void AddOptimizerFlags(CLI::App& app, TrainFlags& flags);
void AddMachineFlags(CLI::App& app, TrainFlags& flags);
// Of these only where to run: --device, --backend, --threads, --conv.
void AddPlaceFlags(CLI::App& app, TrainFlags& flags);
// --dim NAME=N, as often as wanted.
void AddDimFlag(CLI::App& app, std::vector<std::string>& to);
CLI::Option* AddSlicesFlag(CLI::App& app, std::optional<std::string>& to);
CLI::Option* AddRecomputeFlag(CLI::App& app, std::optional<std::string>& to);
// --weights FILE and --weights-skip PATTERN.
void AddWeightsFlags(CLI::App& app, std::optional<std::string>& file,
                     std::vector<std::string>& skip);
void AddColorFlag(CLI::App& app, OutputFlags& flags);
void AddQuietFlags(CLI::App& app, OutputFlags& flags);

// `base` with what was given.
TrainOptions ToTrainOptions(const TrainFlags& flags, TrainOptions base = {});

// The flags of the command line, by their JSON keys: "weight-decay".  With --resume the environment
// gives none of them (see flags.h).
std::set<std::string> GivenKeys(const CLI::App& app);

// Fails with kInvalidArgument.
Result<Terminal> TerminalFor(std::FILE* stream, const OutputFlags& flags);

}  // namespace ridge::cli
