#include "ridge/cli/train_flags.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "ridge/cli/flags.h"
#include "ridge/core/split.h"
#include "ridge/train/options/option_table.h"
#include "ridge/train/store/checkpoint.h"
#include "ridge/train/store/run.h"

namespace ridge::cli {
namespace {

const char* GroupName(OptionGroup group) {
  switch (group) {
    case OptionGroup::kNone:
      return "";
    case OptionGroup::kModel:
      return "Model";
    case OptionGroup::kData:
      return "Data";
    case OptionGroup::kTraining:
      return "Training";
    case OptionGroup::kMachine:
      return "Machine";
    case OptionGroup::kCpu:
      return "CPU";
    case OptionGroup::kGpu:
      return "GPU of this machine";
    case OptionGroup::kDevices:
      return "Devices";
    case OptionGroup::kRunFolder:
      return "Run folder";
  }
  return "";
}

struct FlagText {
  std::string name, value_name, doc;
};

// The flag that sets a member, by its type.
template <typename T>
CLI::Option* AddFlag(CLI::App& app, const OptionValues& v, const FlagText& text, T& to) {
  const auto set = [&to](const auto& value) { to = static_cast<T>(value); };
  if constexpr (std::is_same_v<T, bool>) {
    return AddSwitch(app, text.name, to, text.doc);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return AddTexts(app, text.name, to, text.value_name, text.doc);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!v.choices) return AddText(app, text.name, set, text.value_name, text.doc);
    std::vector<std::string> choices;
    for (const std::string_view choice : SplitAt(v.name, '|')) choices.emplace_back(choice);
    return AddChoice(app, text.name, set, choices, text.doc);
  } else if constexpr (std::is_same_v<T, Interval>) {
    const auto set_interval = [&to, name = text.name](const std::string& given) {
      const Result<Interval> interval = ParseInterval(name, given);
      if (!interval.ok()) RefuseFlag(interval.status().message());
      to = *interval;
    };
    return AddText(app, text.name, set_interval, text.value_name, text.doc);
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>) {
    const NumberRange range{v.least, !v.above, v.most};
    return AddNumber(app, text.name, set, range, text.value_name, text.doc);
  } else {
    if (v.size) return AddSize(app, text.name, set, text.doc);
    const bool limited = v.most < static_cast<double>(INT64_MAX);
    const IntegerRange range{static_cast<int64_t>(v.least),
                             limited ? static_cast<int64_t>(v.most) : INT64_MAX};
    return AddInteger(app, text.name, set, range, text.value_name, text.doc);
  }
}

void AddBackendFlag(CLI::App& app, TrainFlags& flags) {
  AddChoice(app, "--backend", flags.backend, {"cpu", "reference"},
            "Kernels: fast, or the slow reference kernels (cpu)")
      ->group(GroupName(OptionGroup::kMachine));
}

// The flag of a row; `doc` replaces the row's unless it is empty.
template <typename T>
CLI::Option* AddRow(CLI::App& app, const OptionInfo& option, const std::string& doc, T& to) {
  const FlagText text{fmt::format("--{}", option.key), std::string(option.values.name),
                      doc.empty() ? std::string(option.doc) : doc};
  return AddFlag(app, option.values, text, to)->group(GroupName(option.group));
}

}  // namespace

CLI::Option* FindFlag(CLI::App& app, std::string_view key) {
  return app.get_option_no_throw(key == "model" ? "MODEL" : fmt::format("--{}", key));
}

bool TrainFlags::Has(std::string_view key) const {
  const CLI::Option* flag = app == nullptr ? nullptr : FindFlag(*app, key);
  return flag != nullptr && flag->count() > 0;
}

CLI::Option* AddOption(CLI::App& app, TrainFlags& flags, std::string_view key,
                       const std::string& doc) {
  flags.app = &app;
  CLI::Option* added = nullptr;
  ForEachOption([&](const OptionInfo& option, auto get) {
    if (option.key == key && option.group != OptionGroup::kNone)
      added = AddRow(app, option, doc, get(flags.options));
  });
  RIDGE_CHECK(added != nullptr, std::string(key));
  return added;
}

void AddOptions(CLI::App& app, TrainFlags& flags, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) AddOption(app, flags, key);
}

void AddGroup(CLI::App& app, TrainFlags& flags, OptionGroup group) {
  flags.app = &app;
  ForEachOption([&](const OptionInfo& option, auto get) {
    if (option.group != group) return;
    AddRow(app, option, /*doc=*/"", get(flags.options));
    if (option.key == "device") AddBackendFlag(app, flags);
  });
}

void AddMachineFlags(CLI::App& app, TrainFlags& flags) {
  for (const OptionGroup group : {OptionGroup::kMachine, OptionGroup::kCpu, OptionGroup::kGpu})
    AddGroup(app, flags, group);
}

void AddModelArgument(CLI::App& app, TrainFlags& flags, const std::string& doc) {
  flags.app = &app;
  AddArgument(
      app, "MODEL", [&flags](const auto& text) { flags.options.model = text; }, doc);
}

void AddTrainFlags(CLI::App& app, TrainFlags& flags) {
  ForEachOption([&](const OptionInfo& option, auto) {
    if (option.key == "model") AddModelArgument(app, flags, std::string(option.doc));
  });
  for (const OptionGroup group : {OptionGroup::kModel, OptionGroup::kData, OptionGroup::kTraining})
    AddGroup(app, flags, group);
  AddMachineFlags(app, flags);
  AddGroup(app, flags, OptionGroup::kRunFolder);
  Exclude(app.get_option("--epochs"), app.get_option("--steps"));
}

void AddDevicesFlags(CLI::App& app, TrainFlags& flags, const std::string& doc) {
  AddOption(app, flags, "devices", doc);
  CLI::Option* each = AddInteger(app, "--batch-per-device", flags.batch_per_device, {.minimum = 1},
                                 "N", "Samples of each device; instead of --batch");
  each->group(GroupName(OptionGroup::kDevices));
  Exclude(each, app.get_option("--batch"));
}

int64_t BatchOf(const TrainFlags& flags, int64_t devices) {
  return flags.batch_per_device ? *flags.batch_per_device * devices : flags.options.batch;
}

void AddPlaceFlags(CLI::App& app, TrainFlags& flags) {
  AddOption(app, flags, "device");
  AddBackendFlag(app, flags);
  AddOptions(app, flags, {"threads", "conv"});
}

void AddOptimizerFlags(CLI::App& app, TrainFlags& flags) {
  AddOptions(app, flags, {"optimizer", "lr", "momentum", "weight-decay", "optimizer-state"});
}

void AddWeightsFlags(CLI::App& app, TrainFlags& flags) {
  AddOptions(app, flags, {"dim", "weights", "weights-skip"});
}

void AddCheckpointFlag(CLI::App& app, std::optional<std::string>& to) {
  AddText(app, "--checkpoint", to, "last|best|N|DIR",
          "Of a run: the checkpoint to use, by its step N or its folder (last)")
      ->group("Model");
}

Result<std::string> CheckpointOf(const std::optional<std::string>& flag, const std::string& model) {
  if (!flag) return std::string(kNewestCheckpoint);
  const Status known = CheckCheckpointName(*flag);
  if (Run::Exists(model)) {
    if (known.ok()) return *flag;
    RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
    const std::string list = run.checkpoints().List();
    return InvalidArgument(known.message() + "; " + model + " has " +
                           (list.empty() ? "none" : list));
  }
  RIDGE_RETURN_IF_ERROR(known);
  return InvalidArgument(
      fmt::format("--checkpoint is for a run; {} is none. hint: leave it out", model));
}

void AddColorFlag(CLI::App& app, OutputFlags& flags) {
  AddChoice(app, "--color", flags.color, {"auto", "always", "never"}, "Colour (auto: on terminals)")
      ->group(kOutputGroup);
}

void AddReceiptsFlag(CLI::App& app, OutputFlags& flags) {
  AddChoice(app, "--receipts", flags.receipts, {"on", "off"},
            "Keep what runs were planned to take and took, on this machine only, and expect by it "
            "(on)")
      ->group(kOutputGroup);
}

void AddQuietFlags(CLI::App& app, OutputFlags& flags) {
  CLI::Option* quiet = AddSwitch(app, "-q,--quiet", flags.quiet, "Print errors and warnings only");
  CLI::Option* verbose = AddSwitch(app, "-v,--verbose", flags.verbose, "Print more");
  Exclude(quiet, verbose);
  quiet->group(kOutputGroup);
  verbose->group(kOutputGroup);
}

TrainOptions ToTrainOptions(const TrainFlags& flags, TrainOptions base) {
  ForEachOption([&](const OptionInfo& option, auto get) {
    if (flags.Has(option.key)) get(base) = get(flags.options);
  });
  return base;
}

std::set<std::string> GivenKeys(const TrainFlags& flags) {
  std::set<std::string> keys;
  ForEachOption([&](const OptionInfo& option, auto) {
    if (flags.Has(option.key)) keys.insert(std::string(option.key));
  });
  if (flags.batch_per_device) keys.insert("batch");
  return keys;
}

Result<Terminal> TerminalFor(std::FILE* stream, const OutputFlags& flags) {
  RIDGE_ASSIGN_OR_RETURN(const ColourChoice choice,
                         ParseColourChoice(flags.color.value_or("auto")));
  return DetectTerminal(stream, choice);
}

}  // namespace ridge::cli
