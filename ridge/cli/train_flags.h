// TrainFlags: the options of a training (options.def) that a verb takes, as they were given.
#pragma once
#include <CLI/App.hpp>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>

#include "ridge/core/status.h"
#include "ridge/report/progress.h"
#include "ridge/report/terminal.h"
#include "ridge/train/options/option_table.h"

namespace ridge::cli {

struct TrainFlags {
  TrainOptions options;  // defaults where nothing was given
  std::optional<std::string> backend;
  std::optional<int64_t> batch_per_device;
  CLI::App* app = nullptr;  // that has the flags

  // Whether the command line, the environment or --config gave the option of this key.
  bool Has(std::string_view key) const;
  // Its value, or nothing where it was not given.
  template <typename T>
  std::optional<T> Given(std::string_view key, const T& value) const {
    return Has(key) ? std::optional<T>(value) : std::nullopt;
  }
};

// Flags of a verb's output.
struct OutputFlags {
  std::optional<std::string> color, progress, receipts;
  bool quiet = false, verbose = false;
};

// --receipts, for verbs that read or write them (train/store/receipts.h).
void AddReceiptsFlag(CLI::App& app, OutputFlags& flags);
inline bool WantsReceipts(const OutputFlags& flags) {
  return flags.receipts.value_or("on") == "on";
}

// --checkpoint, for verbs whose MODEL may be a run: last, best, a step's number or a folder.
void AddCheckpointFlag(CLI::App& app, std::optional<std::string>& to);
// The newest where none is given.  Fails with kInvalidArgument for another word, and when one is
// given and `model` is no run.
Result<std::string> CheckpointOf(const std::optional<std::string>& flag, const std::string& model);

// The flag or argument of an option's key, nullptr where the verb has none.
CLI::Option* FindFlag(CLI::App& app, std::string_view key);

// The flag of an option; `doc` where a verb says more of it than options.def.  REQUIRES: the key of
// a row that has a group.
CLI::Option* AddOption(CLI::App& app, TrainFlags& flags, std::string_view key,
                       const std::string& doc = "");
void AddOptions(CLI::App& app, TrainFlags& flags, std::initializer_list<std::string_view> keys);

// MODEL and every option.
void AddTrainFlags(CLI::App& app, TrainFlags& flags);
// --devices, with a verb's own `doc` or the option's, and --batch-per-device.
void AddDevicesFlags(CLI::App& app, TrainFlags& flags, const std::string& doc = "");
// The batch of so many devices: --batch, or --batch-per-device times them.
int64_t BatchOf(const TrainFlags& flags, int64_t devices);
// Every option of a group.
void AddGroup(CLI::App& app, TrainFlags& flags, OptionGroup group);
// Every option of the machine, of its CPU and its GPU.
void AddMachineFlags(CLI::App& app, TrainFlags& flags);
// MODEL alone.
void AddModelArgument(CLI::App& app, TrainFlags& flags, const std::string& doc);
// Where to run: --device, --backend, --threads, --conv.
void AddPlaceFlags(CLI::App& app, TrainFlags& flags);
// --optimizer, --lr, --momentum, --weight-decay.
void AddOptimizerFlags(CLI::App& app, TrainFlags& flags);
// --dim, --weights and --weights-skip.
void AddWeightsFlags(CLI::App& app, TrainFlags& flags);
void AddColorFlag(CLI::App& app, OutputFlags& flags);
void AddQuietFlags(CLI::App& app, OutputFlags& flags);

// `base` with what was given.
TrainOptions ToTrainOptions(const TrainFlags& flags, TrainOptions base = {});

// The keys of the options that were given.
std::set<std::string> GivenKeys(const TrainFlags& flags);

// Fails with kInvalidArgument.
Result<Terminal> TerminalFor(std::FILE* stream, const OutputFlags& flags);

}  // namespace ridge::cli
