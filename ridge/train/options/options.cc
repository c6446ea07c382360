#include "ridge/train/options/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "ridge/learn/loss.h"

namespace ridge {
namespace {

Status Usage(std::string text) { return Status(ErrorCode::kInvalidArgument, std::move(text)); }

Status CheckAtLeast(const char* name, int64_t value, int64_t least) {
  if (value >= least) return Status();
  return Usage(fmt::format("--{} is {}; it must be at least {}", name, value, least));
}

Status CheckCounts(const TrainOptions& o) {
  if (o.epochs && o.steps) return Usage("--epochs and --steps exclude each other; give one");
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("epochs", o.epochs.value_or(1), 1));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("steps", o.steps.value_or(1), 1));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("batch", o.batch, 1));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("accumulate", o.accumulate, 1));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("threads", o.threads, 0));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("intra-op", o.intra_op, 0));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("fit", o.fit_bytes, 0));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("checkpoint-every", o.checkpoint_every, 0));
  RIDGE_RETURN_IF_ERROR(CheckAtLeast("keep", o.keep, 1));
  return CheckAtLeast("eval-every", o.eval_every, 0);
}

Status CheckPrecision(const std::string& precision) {
  if (precision == "f32" || precision == "bf16" || precision == "auto") return Status();
  if (precision == "f16") {
    return Status(ErrorCode::kUnsupported,
                  "--precision f16: the CPU trains in f32 or bf16. hint: --precision auto");
  }
  return Usage(fmt::format("--precision is '{}'; it must be f32, bf16, f16 or auto", precision));
}

Status CheckConv(const std::string& conv) {
  if (conv == "auto" || conv == "direct") return Status();
  return Usage(fmt::format("--conv is '{}'; it must be auto or direct", conv));
}

Status CheckKernels(const std::string& kernels) {
  if (kernels == "default" || kernels == "tuned") return Status();
  return Usage(fmt::format("--kernels is '{}'; it must be default or tuned", kernels));
}

Status CheckSlices(const TrainOptions& o) {
  const Result<int64_t> slices = ParseSlices(o.slices);
  if (!slices.ok()) return slices.status();
  if (*slices == kAutoSlices || o.batch % *slices == 0) return Status();
  return Usage(fmt::format("--slices is {}; it must divide --batch, {}", *slices, o.batch));
}

Status CheckModelOptions(const TrainOptions& o) {
  if (!o.loss.empty()) {
    if (const Result<LossSpec> loss = ParseLoss(o.loss); !loss.ok()) return loss.status();
  }
  if (const auto dims = ParseDims(o.dims); !dims.ok()) return dims.status();
  RIDGE_RETURN_IF_ERROR(CheckSlices(o));
  if (const auto values = ParseRecompute(o.recompute); !values.ok()) return values.status();
  if (o.batch_norm == "train" || o.batch_norm == "frozen") return Status();
  return Usage(fmt::format("--batch-norm is '{}'; it must be train or frozen", o.batch_norm));
}

}  // namespace

Result<std::map<std::string, int64_t>> ParseDims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), extent);
    if (equals == 0 || error != std::errc() || *end != '\0' || extent < 1)
      return Usage(fmt::format("--dim is '{}'; it must be NAME=N with N at least 1", text));
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
  return Usage(fmt::format("{} is '{}'; it must be auto or a number from 1", flag, text));
}

}  // namespace

Result<int64_t> ParseSlices(const std::string& text) { return ParseCount("--slices", text); }
Result<int64_t> ParseInterOp(const std::string& text) { return ParseCount("--inter-op", text); }

Result<int64_t> ParseRecompute(const std::string& text) {
  if (text == "auto") return kAutoRecompute;
  if (text == "off") return int64_t{0};
  if (text == "all") return kRecomputeAll;
  int64_t values = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), values);
  if (error == std::errc() && *end == '\0' && values >= 1) return values;
  return Usage(
      fmt::format("--recompute is '{}'; it must be auto, off, all or a number from 1", text));
}

void TakeModelOptions(const TrainOptions& run, const std::set<std::string>& given,
                      TrainOptions& options) {
  options.model = run.model;
  if (!given.contains("loss")) options.loss = run.loss;
  if (!given.contains("dim")) options.dims = run.dims;
  if (!given.contains("freeze")) options.freeze = run.freeze;
  if (!given.contains("trainable")) options.trainable = run.trainable;
  if (!given.contains("batch-norm")) options.batch_norm = run.batch_norm;
}

Status CheckOptions(const TrainOptions& options) {
  if (options.model.empty()) return Usage("no model given");
  if (options.data.empty()) return Usage("no data given; hint: --data fashion-mnist");
  RIDGE_RETURN_IF_ERROR(CheckCounts(options));
  RIDGE_RETURN_IF_ERROR(CheckPrecision(options.precision));
  RIDGE_RETURN_IF_ERROR(CheckConv(options.conv));
  RIDGE_RETURN_IF_ERROR(CheckKernels(options.kernels));
  if (const auto inter_op = ParseInterOp(options.inter_op); !inter_op.ok())
    return inter_op.status();
  RIDGE_RETURN_IF_ERROR(CheckModelOptions(options));
  if (!(options.clip_norm >= 0) || !std::isfinite(options.clip_norm))
    return Usage(fmt::format("--clip-norm is {}; it must be 0 or more", options.clip_norm));
  const Result<const Optimizer*> optimizer = FindOptimizer(options.optimizer);
  if (!optimizer.ok()) return optimizer.status();
  return CheckSchedule(
      {.name = options.schedule, .lr = options.lr, .warmup_steps = options.warmup});
}

}  // namespace ridge
