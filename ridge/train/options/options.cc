#include "ridge/train/options/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>
#include <type_traits>

#include "ridge/core/split.h"
#include "ridge/core/units.h"
#include "ridge/data/bad_records.h"
#include "ridge/data/image/transforms/augmentation.h"
#include "ridge/data/points/point_transforms.h"
#include "ridge/data/sound/sound_transforms.h"
#include "ridge/learn/frozen_weights.h"
#include "ridge/learn/host_placement.h"
#include "ridge/learn/lora.h"
#include "ridge/learn/loss.h"
#include "ridge/learn/optimizers/rates.h"
#include "ridge/learn/precision_for.h"
#include "ridge/partition/layouts.h"
#include "ridge/pipeline/schedule.h"
#include "ridge/train/options/option_table.h"

namespace ridge {
namespace {

// A default may be out of range: it stands for what no flag says, as all threads.
template <typename T>
Status CheckNumber(const OptionInfo& option, T value, std::optional<T> by_default) {
  const OptionValues& v = option.values;
  const auto number = static_cast<double>(value);
  const bool inside = number <= v.most && (v.above ? number > v.least : number >= v.least);
  if (inside || value == by_default) return Status();
  const bool large = number > v.most;
  return InvalidArgument(fmt::format("--{} is {}; it must be {} {}", option.key, value,
                                     large     ? "at most"
                                     : v.above ? "above"
                                               : "at least",
                                     large ? v.most : v.least));
}

Status CheckText(const OptionInfo& option, const std::string& value) {
  if (!option.values.choices) return Status();
  std::vector<std::string_view> choices = SplitAt(option.values.name, '|');
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return Status();
  return InvalidArgument(fmt::format("--{} is '{}'; it must be one of {}", option.key, value,
                                     fmt::join(choices, ", ")));
}

template <typename T>
Status CheckValue(const OptionInfo& option, const T& value, const T& by_default) {
  if constexpr (std::is_same_v<T, std::string>)
    return value == by_default ? Status() : CheckText(option, value);
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
    return CheckNumber<T>(option, value, by_default);
  if constexpr (std::is_same_v<T, std::optional<int64_t>> ||
                std::is_same_v<T, std::optional<double>>) {
    if (value) return CheckNumber<typename T::value_type>(option, *value, by_default);
  }
  return Status();
}

Status CheckValues(const TrainOptions& options) {
  const TrainOptions defaults;
  Status status;
  ForEachOption([&](const OptionInfo& option, auto get) {
    if (status.ok()) status = CheckValue(option, get(options), get(defaults));
  });
  return status;
}

bool IsGpu(const TrainOptions& o) { return o.device == "cuda" || o.device.starts_with("cuda:"); }

// Devices that are not here may have more.
Status CheckPrecision(const TrainOptions& o) {
  const bool is_here = o.device == "cpu" || IsGpu(o);
  if (!is_here) return Status();
  if (o.precision == "fp8") {
    return Status(
        ErrorCode::kUnsupported,
        "--precision fp8: a run multiplies in f32, tf32, bf16 or f16; fp8 is only planned, "
        "for devices that are not here. hint: --precision bf16, or ridge plan MODEL --on "
        "h100-sxm --precision fp8");
  }
  if (o.precision == "f16" && !o.mesh.empty()) {
    return Status(ErrorCode::kUnsupported,
                  "--precision f16: all gradients together decide on the loss scale, and a --mesh "
                  "has parts of them. hint: --precision bf16");
  }
  if (o.precision != "tf32" || IsGpu(o)) return Status();
  return Status(ErrorCode::kUnsupported,
                "--precision tf32: tf32 is of NVIDIA GPUs; the CPU trains in f32, bf16 or f16. "
                "hint: --precision auto");
}

Status CheckPrecisionFor(const TrainOptions& o) {
  if (o.precision_for.empty()) return Status();
  if (o.precision == "f32" || o.precision == "tf32") {
    return InvalidArgument(
        fmt::format("--precision-for is '{}'; it is of --precision bf16 and f16, and --precision "
                    "is {}. hint: leave it out",
                    fmt::join(o.precision_for, ","), o.precision));
  }
  return ParsePrecisionFor(o.precision_for, o.precision).status();
}

Status CheckPlace(const TrainOptions& o) {
  if (o.place.empty()) return Status();
  return ParsePlace(o.place).status();
}

Status CheckLossScale(const TrainOptions& o) {
  RIDGE_RETURN_IF_ERROR(ParseLossScale(o.loss_scale).status());
  if (o.loss_scale.empty() || o.precision == "f16") return Status();
  return InvalidArgument(
      fmt::format("--loss-scale is '{}'; it is of --precision f16, and --precision is {}. hint: "
                  "leave it out",
                  o.loss_scale, o.precision));
}

Status CheckGpuOptions(const TrainOptions& o) {
  RIDGE_RETURN_IF_ERROR(ParseDeviceMemory(o.device_memory).status());
  if (o.device != "cpu") return Status();
  const TrainOptions defaults;
  Status status;
  ForEachOption([&](const OptionInfo& option, auto get) {
    if (option.group != OptionGroup::kGpu || get(o) == get(defaults)) return;
    if (status.ok()) status = OfAnotherDevice(option, o.device);
  });
  return status;
}

Status CheckSlices(const TrainOptions& o) {
  const Result<int64_t> slices = ParseSlices(o.slices);
  if (!slices.ok()) return slices.status();
  if (o.sums == "tree" && o.accumulate > 1) {
    return InvalidArgument(
        fmt::format("--accumulate is {0}; --sums tree adds the slices of one batch. hint: --batch "
                    "{1} --slices N, which needs no more memory than {0} batches of {2}",
                    o.accumulate, o.batch * o.accumulate, o.batch));
  }
  if (*slices == kAutoSlices || o.batch % *slices == 0) return Status();
  return InvalidArgument(
      fmt::format("--slices is {}; it must divide --batch, {}", *slices, o.batch));
}

// The stages of a pipeline.
Status CheckPipeline(const TrainOptions& o, const Mesh& mesh) {
  if (mesh.Find(kPipelineAxis) < 0) {
    return InvalidArgument(fmt::format(
        "--pipeline orders the stages of --mesh p=N; the mesh is {}. hint: leave --pipeline out",
        MeshText(mesh)));
  }
  const int64_t stages = mesh.size(mesh.Find(kPipelineAxis));
  if (mesh.axes.size() > 1) {
    return InvalidArgument(
        fmt::format("--mesh {}: axis p trains alone, one device a stage. hint: --mesh p={}",
                    MeshText(mesh), stages));
  }
  if (stages < 2)
    return InvalidArgument("--mesh p=1: one stage is no pipeline. hint: leave --mesh out");
  RIDGE_RETURN_IF_ERROR(ParseScheduleKind(o.pipeline.empty() ? "1f1b" : o.pipeline).status());
  if (!o.shard.empty())
    return InvalidArgument("--shard is of the axes d and t. hint: leave it out beside --mesh p=N");
  if (o.accumulate >= 2) return Status();
  return InvalidArgument(
      fmt::format("--accumulate is {}; a pipeline needs 2 micro batches or more. hint: "
                  "--accumulate {}",
                  o.accumulate, 2 * stages));
}

Status CheckMesh(const TrainOptions& o) {
  if (o.mesh.empty() && !o.pipeline.empty())
    return InvalidArgument("--pipeline needs the axis p of --mesh. hint: --mesh p=2");
  if (o.mesh.empty()) {
    if (o.shard.empty()) return Status();
    return InvalidArgument("--shard needs the axes of --mesh. hint: --mesh d=2,t=2");
  }
  RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(o.mesh));
  if (!o.pipeline.empty() || mesh.Find(kPipelineAxis) >= 0)
    RIDGE_RETURN_IF_ERROR(CheckPipeline(o, mesh));
  RIDGE_RETURN_IF_ERROR(ParseSharding(o.shard).status());
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, ParseDevices(o.devices));
  if (devices > 1 && devices != mesh.devices()) {
    return InvalidArgument(
        fmt::format("--devices is {}; --mesh {} is of {}. hint: leave --devices out", devices,
                    MeshText(mesh), mesh.devices()));
  }
  if (o.sums == "tree")
    return InvalidArgument(
        "--sums tree adds slices; on a --mesh sums are in the order of its axes. hint: leave "
        "--sums "
        "out");
  if (o.wire != "f32")
    return InvalidArgument(fmt::format(
        "--wire {}: the collectives of a --mesh send f32. hint: leave --wire out", o.wire));
  if (o.shares != "equal")
    return InvalidArgument(fmt::format(
        "--shares {}: the parts of a --mesh are equal. hint: leave --shares out", o.shares));
  if (o.overlap == "on")
    return InvalidArgument(
        "--overlap on: the collectives of a --mesh run in line. hint: leave --overlap out");
  return Status();
}

// Of ranks with a GPU each, exchanges of another kind than the tree's in f32 are the host's.
Status CheckGpuRanks(const TrainOptions& o) {
  if (!IsGpu(o)) return Status();
  const auto refuse = [](const std::string& text) { return Status(ErrorCode::kUnsupported, text); };
  if (!o.mesh.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(o.mesh));
    return refuse(
        fmt::format("--mesh {}: a mesh exchanges on the host, which does not reach the memory of "
                    "'{}'. hint: --devices {} without --mesh",
                    MeshText(mesh), o.device, mesh.devices()));
  }
  if (o.wire != "f32") {
    return refuse(
        fmt::format("--wire {} is for memory that the host reaches, and --device is '{}'. hint: "
                    "--wire f32",
                    o.wire, o.device));
  }
  if (o.overlap != "on") return Status();
  return refuse(
      fmt::format("--overlap on exchanges on the host, which does not reach the memory of '{}'. "
                  "hint: --overlap off",
                  o.device));
}

Status CheckAugment(const TrainOptions& o) {
  if (o.augment.empty()) return Status();
  const auto parsed = Augmentation::Parse(o.augment, o.seed);
  const bool shaped = o.focal > 0 || o.dice > 0 || !o.class_weights.empty();
  if (parsed.ok() && shaped && parsed->mixing().any()) {
    return InvalidArgument(
        "--augment mixup and cutmix mix the plain cross entropy, without --class-weights, --focal "
        "and --dice. hint: leave one of both out");
  }
  if (parsed.ok() && parsed->crops() && !o.cache.empty()) {
    return InvalidArgument(
        fmt::format("--augment rrc reads parts of the original pictures, which --cache {} does not "
                    "keep. hint: leave one of both out",
                    o.cache));
  }
  if (parsed.ok() || SoundAugmentation::Parse(o.augment, o.seed).ok() ||
      PointAugmentation::Parse(o.augment, o.seed).ok())
    return Status();
  return InvalidArgument(
      fmt::format("--augment is '{}': {}", o.augment, parsed.status().message()));
}

Status CheckBucket(const TrainOptions& o) {
  RIDGE_RETURN_IF_ERROR(ParseBucket(o.bucket).status());
  if (o.bucket.empty()) return Status();
  const char* other = o.accumulate > 1     ? "--accumulate"
                      : !o.sampler.empty() ? "--sampler"
                                           : nullptr;
  if (other == nullptr) return Status();
  return InvalidArgument(
      fmt::format("--bucket makes an update of one batch of texts of one length, each text once an "
                  "epoch; {} does not. hint: leave one of both out",
                  other));
}

Status CheckModelOptions(const TrainOptions& o) {
  if (!o.loss.empty()) {
    if (const Result<LossSpec> loss = ParseLoss(o.loss); !loss.ok()) return loss.status();
  }
  if (!(o.dice <= 1))
    return InvalidArgument(fmt::format("--dice is {}; it must be at most 1", o.dice));
  if (!(o.label_smoothing < 1)) {
    return InvalidArgument(
        fmt::format("--label-smoothing is {}; it must be below 1", o.label_smoothing));
  }
  if (const auto dims = ParseDims(o.dims); !dims.ok()) return dims.status();
  if (!o.lora.empty()) RIDGE_RETURN_IF_ERROR(ParseLora(o.lora).status());
  RIDGE_RETURN_IF_ERROR(ParseFrozenWeights(o.frozen_weights).status());
  RIDGE_RETURN_IF_ERROR(CheckSlices(o));
  RIDGE_RETURN_IF_ERROR(CheckBucket(o));
  RIDGE_RETURN_IF_ERROR(ParseCache(o.cache).status());
  RIDGE_RETURN_IF_ERROR(CheckAugment(o));
  if (const auto policy = BadRecordsPolicy::Parse(o.bad_records); !policy.ok()) {
    return InvalidArgument(
        fmt::format("--bad-records is '{}'; {}", o.bad_records, policy.status().message()));
  }
  RIDGE_RETURN_IF_ERROR(ParseLossChunks(o.loss_chunks).status());
  return ParseRecompute(o.recompute).status();
}

}  // namespace

Status OfAnotherDevice(const OptionInfo& option, const std::string& device) {
  const bool of_cpu = option.group == OptionGroup::kCpu;
  const char* hint = of_cpu                          ? "leave it out"
                     : option.key == "device-memory" ? "--fit SIZE"
                                                     : "--device cuda";
  return InvalidArgument(fmt::format("--{} is of {}, and --device is '{}'. hint: {}", option.key,
                                     of_cpu ? "the CPU" : "a GPU", device, hint));
}

bool IsGraphFile(const std::string& model) { return model.ends_with(".ridge"); }
bool IsOnnxFile(const std::string& model) { return model.ends_with(".onnx"); }

std::optional<double> HeldOutFraction(const std::string& validation) {
  constexpr double kAutomatic = 0.2;
  if (validation == "auto") return kAutomatic;
  char* end = nullptr;
  const double value = std::strtod(validation.c_str(), &end);
  if (validation.empty() || *end != '\0') return std::nullopt;
  return value;
}

Result<std::optional<LossScaleOptions>> LossScaleOf(const TrainOptions& options) {
  if (options.precision != "f16") return {std::nullopt};
  RIDGE_ASSIGN_OR_RETURN(const LossScaleOptions scale, ParseLossScale(options.loss_scale));
  return {scale};
}

Result<std::map<std::string, int64_t>> ParseDims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), extent);
    if (equals == 0 || error != std::errc() || *end != '\0' || extent < 1)
      return InvalidArgument(
          fmt::format("--dim is '{}'; it must be NAME=N with N at least 1", text));
    dims[text.substr(0, equals)] = extent;
  }
  return dims;
}

namespace {

// 0 for "auto".
Result<int64_t> ParseCount(const char* flag, const std::string& text) {
  if (text == "auto") return int64_t{0};
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && *end == '\0' && count >= 1) return count;
  return InvalidArgument(fmt::format("{} is '{}'; it must be auto or a number from 1", flag, text));
}

}  // namespace

Result<Interval> ParseInterval(const std::string& name, const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
  const char* const last = text.data() + text.size();
  Interval interval;
  const auto [rest, error] = std::from_chars(text.data(), last, interval.steps);
  if (error == std::errc() && rest == last && interval.steps >= 1) return interval;
  interval.steps = 0;
  double number = 0;
  const auto [unit, wrong] = std::from_chars(text.data(), last, number);
  for (const auto& [unit_name, seconds] : kUnits) {
    if (std::string_view(unit, last) == unit_name && wrong == std::errc())
      interval.seconds = number * seconds;
  }
  if (interval.seconds > 0 && std::isfinite(interval.seconds)) return interval;
  return InvalidArgument(fmt::format(
      "{} is '{}'; it must be a number of steps from 1, or a time: 30s, 10min, 2h", name, text));
}

std::string IntervalText(const Interval& interval) {
  return interval.seconds > 0 ? fmt::format("{}s", interval.seconds)
                              : fmt::format("{}", interval.steps);
}

Result<std::vector<int64_t>> ParseBucket(const std::string& text) {
  std::vector<int64_t> lengths;
  if (text.empty()) return lengths;
  for (const std::string_view part : SplitAt(text, ',')) {
    int64_t length = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), length);
    const bool whole = error == std::errc() && end == part.data() + part.size();
    if (!whole || length <= (lengths.empty() ? 0 : lengths.back())) {
      return InvalidArgument(
          fmt::format("--bucket is '{}'; it must be ascending lengths, such as 64,128", text));
    }
    lengths.push_back(length);
  }
  return lengths;
}

Result<DeviceMemory> ParseDeviceMemory(const std::string& text) {
  if (text.empty()) return DeviceMemory{};
  const Status wrong = InvalidArgument(fmt::format(
      "--device-memory is '{}'; it must be a size such as 20GiB, or a part of what is free such as "
      "0.9",
      text));
  double fraction = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, fraction);
  const bool is_number = error == std::errc() && rest == end;
  if (is_number && fraction <= 1)
    return fraction > 0 ? Result<DeviceMemory>(DeviceMemory{0, fraction}) : wrong;
  if (is_number && text.find('.') != std::string::npos) return wrong;
  const Result<int64_t> size = ParseSize(text);
  if (!size.ok() || *size < 1) return wrong;
  return DeviceMemory{*size, 0};
}

Result<CacheChoice> ParseCache(const std::string& text) {
  constexpr std::string_view kSized = "memory:";
  CacheChoice choice;
  choice.memory = text == "memory" || text.starts_with(kSized);
  choice.disk = text == "disk";
  if (text.empty() || choice.disk || text == "memory") return choice;
  const Status wrong = InvalidArgument(fmt::format(
      "--cache is '{}'; it must be disk, memory or memory:SIZE, such as memory:2GiB", text));
  if (!choice.memory) return wrong;
  const Result<int64_t> size = ParseSize(std::string_view(text).substr(kSized.size()));
  if (!size.ok() || *size < 1) return wrong;
  choice.memory_bytes = *size;
  return choice;
}

Result<int64_t> ParseSlices(const std::string& text) { return ParseCount("--slices", text); }

Result<std::optional<int64_t>> ParseLossChunks(const std::string& text) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t chunks, ParseCount("--loss-chunks", text));
  return chunks == 0 ? std::nullopt : std::optional(chunks);
}

namespace {

// 0: auto.
Result<int64_t> ParseFewer(const char* option, const std::string& text) {
  constexpr int64_t kMost = 1024;
  const Result<int64_t> count = ParseCount(option, text);
  if (count.ok() && *count <= kMost) return count;
  return InvalidArgument(
      fmt::format("{} is '{}'; it must be auto or a number from 1 to {}", option, text, kMost));
}

}  // namespace

Result<int64_t> ParseWorkers(const std::string& text) { return ParseFewer("--workers", text); }

Result<int64_t> ParseInterOp(const std::string& text) { return ParseCount("--inter-op", text); }

namespace {

// A whole number; nothing for other texts.
std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Whether these are the numbers of different devices.
bool AreDevices(const std::vector<std::string_view>& parts) {
  std::set<int64_t> numbers;
  for (const std::string_view part : parts) {
    const std::optional<int64_t> number = WholeNumber(part);
    if (!number || *number < 0 || !numbers.insert(*number).second) return false;
  }
  return true;
}

}  // namespace

Result<int64_t> DevicesOf(const TrainOptions& options) {
  if (options.mesh.empty()) return ParseDevices(options.devices);
  RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(options.mesh));
  return mesh.devices();
}

Result<int64_t> ParseDevices(const std::string& text) {
  constexpr int64_t kMost = 65536;
  const std::vector<std::string_view> parts = SplitAt(text, ',');
  if (parts.size() > 1 && AreDevices(parts)) return static_cast<int64_t>(parts.size());
  const std::optional<int64_t> count = WholeNumber(text);
  if (count && *count >= 1 && *count <= kMost) return *count;
  return InvalidArgument(
      fmt::format("--devices is '{}'; it must be a number from 1 to {}, or a list of different "
                  "devices such as 0,1",
                  text, kMost));
}

std::vector<int64_t> ListedDevices(const std::string& text) {
  std::vector<int64_t> devices;
  const std::vector<std::string_view> parts = SplitAt(text, ',');
  if (parts.size() < 2 || !AreDevices(parts)) return devices;
  for (const std::string_view part : parts) devices.push_back(*WholeNumber(part));
  return devices;
}

Result<SharesOption> ParseShares(const std::string& text) {
  constexpr int64_t kMost = 1000000;
  if (text == "equal" || text == "auto") return SharesOption{text == "auto", {}};
  SharesOption shares;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::optional<int64_t> number = WholeNumber(part);
    if (number && *number >= 1 && *number <= kMost) {
      shares.parts.push_back(*number);
      continue;
    }
    return InvalidArgument(
        fmt::format("--shares is '{}'; it must be equal, auto, or a number from 1 to {} for each "
                    "device, such as 3,1",
                    text, kMost));
  }
  return shares;
}

Status CheckShares(const TrainOptions& options, int64_t devices) {
  RIDGE_ASSIGN_OR_RETURN(const SharesOption shares, ParseShares(options.shares));
  const auto given = static_cast<int64_t>(shares.parts.size());
  if (given == 0 || given == devices) return Status();
  return InvalidArgument(fmt::format(
      "--shares is '{}', for {}; there {} {}. hint: a number for each, or --shares equal",
      options.shares, FormatCountOf(given, "device"), devices == 1 ? "is" : "are", devices));
}

namespace {

// The number before `unit`, which ends `text`; nothing for other texts.
template <typename T>
std::optional<T> NumberBefore(std::string_view unit, std::string_view text) {
  if (!text.ends_with(unit)) return std::nullopt;
  text.remove_suffix(unit.size());
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<RecomputeOption> ParseRecompute(const std::string& text) {
  using Kind = RecomputeOption::Kind;
  if (text == "auto") return RecomputeOption{};
  if (text == "off") return RecomputeOption{.kind = Kind::kOff};
  if (text == "all") return RecomputeOption{.kind = Kind::kAll};
  if (text == "full") return RecomputeOption{.kind = Kind::kFull};
  if (const auto values = NumberBefore<int64_t>("", text); values && *values >= 1)
    return RecomputeOption{.kind = Kind::kFirst, .values = *values};
  const auto percent = NumberBefore<double>("%", text);
  if (percent && *percent > 0 && *percent <= 100)
    return RecomputeOption{.kind = Kind::kBudget, .share = *percent / 100};
  constexpr std::string_view kFull = "full:";
  const bool full = text.starts_with(kFull);
  const Result<int64_t> bytes = ParseSize(std::string_view(text).substr(full ? kFull.size() : 0));
  if (bytes.ok() && *bytes > 0)
    return RecomputeOption{.kind = full ? Kind::kFull : Kind::kBudget, .bytes = *bytes};
  return InvalidArgument(fmt::format(
      "--recompute is '{}'; it must be auto, off, all, full, full:SIZE, a number from 1, a share "
      "such as 40% or a size such as 2GiB",
      text));
}

void TakeChoices(const TrainOptions& planned, TrainOptions& options) {
  if (options.slices == "auto") options.slices = planned.slices;
  if (options.recompute == "auto") options.recompute = planned.recompute;
  if (options.loss_chunks == "auto") options.loss_chunks = planned.loss_chunks;
  if (IsAutoPlace(options.place)) options.place = planned.place;
  if (options.precision != "auto") return;
  options.precision = planned.precision;
  options.precision_for = planned.precision_for;
}

void TakeModelOptions(const TrainOptions& run, const std::set<std::string>& given,
                      TrainOptions& options) {
  options.model = run.model;
  if (!given.contains("loss")) options.loss = run.loss;
  if (!given.contains("dim")) options.dims = run.dims;
  if (!given.contains("freeze")) options.freeze = run.freeze;
  if (!given.contains("trainable")) options.trainable = run.trainable;
  if (!given.contains("lora")) options.lora = run.lora;
  if (!given.contains("frozen-weights")) options.frozen_weights = run.frozen_weights;
  if (!given.contains("batch-norm")) options.batch_norm = run.batch_norm;
}

Status CheckOptions(const TrainOptions& options) {
  if (options.model.empty()) return InvalidArgument("no model given");
  if (options.data.empty()) return InvalidArgument("no data given; hint: --data fashion-mnist");
  if (options.epochs && options.steps)
    return InvalidArgument("--epochs and --steps exclude each other; give one");
  RIDGE_RETURN_IF_ERROR(CheckValues(options));
  RIDGE_RETURN_IF_ERROR(CheckPrecision(options));
  RIDGE_RETURN_IF_ERROR(CheckPrecisionFor(options));
  RIDGE_RETURN_IF_ERROR(CheckLossScale(options));
  RIDGE_RETURN_IF_ERROR(CheckPlace(options));
  RIDGE_RETURN_IF_ERROR(CheckGpuOptions(options));
  if (const auto inter_op = ParseInterOp(options.inter_op); !inter_op.ok())
    return inter_op.status();
  if (const auto workers = ParseWorkers(options.workers); !workers.ok()) return workers.status();
  RIDGE_RETURN_IF_ERROR(ParseFewer("--checkpoint-writers", options.checkpoint_writers).status());
  RIDGE_RETURN_IF_ERROR(ParseDevices(options.devices).status());
  RIDGE_RETURN_IF_ERROR(CheckMesh(options));
  RIDGE_RETURN_IF_ERROR(CheckGpuRanks(options));
  RIDGE_RETURN_IF_ERROR(ParseShares(options.shares).status());
  RIDGE_RETURN_IF_ERROR(CheckModelOptions(options));
  if (options.patience > 0 && options.validation.empty())
    return InvalidArgument("--patience needs validation data. hint: --validation 0.1");
  RIDGE_RETURN_IF_ERROR(ParseRateFactors(options.lr_for).status());
  if (!(options.ema < 1)) {
    return InvalidArgument(
        fmt::format("--ema is {}; it must be below 1, such as 0.999", options.ema));
  }
  const Result<const Optimizer*> optimizer = FindOptimizer(options.optimizer);
  if (!optimizer.ok()) return optimizer.status();
  return CheckSchedule(
      {.name = options.schedule, .lr = options.lr, .warmup_steps = options.warmup});
}

Status CheckPlanOptions(TrainOptions options) {
  if (options.data.empty()) options.data = "synthetic";
  return CheckOptions(options);
}

}  // namespace ridge
