// One table ties each option to its JSON key; reading, writing and comparing walk it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/train/options/options.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Json& value) { return value; }
template <typename T>
Json ToJson(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename T>
void FromJson(const Json& json, T& value) {
  value = json.get<T>();
}
template <typename T>
void FromJson(const Json& json, std::optional<T>& value) {
  if (!json.is_null()) value = json.get<T>();
}

// Calls f(key, member) for every option.
template <typename Options, typename F>
void ForEachOption(Options& o, const F& f) {
  f("model", o.model);
  f("data", o.data);
  f("validation", o.validation);
  f("loss", o.loss);
  f("dim", o.dims);
  f("data-dim", o.data_dims);
  f("start", o.start);
  f("weights", o.weights);
  f("weights-skip", o.weights_skip);
  f("freeze", o.freeze);
  f("trainable", o.trainable);
  f("batch-norm", o.batch_norm);
  f("epochs", o.epochs);
  f("steps", o.steps);
  f("batch", o.batch);
  f("accumulate", o.accumulate);
  f("slices", o.slices);
  f("recompute", o.recompute);
  f("optimizer", o.optimizer.name);
  f("lr", o.lr);
  f("momentum", o.optimizer.momentum);
  f("weight-decay", o.optimizer.weight_decay);
  f("schedule", o.schedule);
  f("warmup", o.warmup);
  f("clip-norm", o.clip_norm);
  f("precision", o.precision);
  f("device", o.device);
  f("threads", o.threads);
  f("intra-op", o.intra_op);
  f("inter-op", o.inter_op);
  f("conv", o.conv);
  f("kernels", o.kernels);
  f("seed", o.seed);
  f("fit", o.fit_bytes);
  f("out", o.out);
  f("checkpoint-every", o.checkpoint_every);
  f("keep", o.keep);
  f("eval-every", o.eval_every);
  f("passes", o.passes);
  f("trace", o.trace);
}

Json OptionsJson(const TrainOptions& options) {
  Json json = Json::object();
  ForEachOption(options, [&](const char* key, const auto& value) { json[key] = ToJson(value); });
  return json;
}

// Runs of older versions do not have these.
bool MayLack(std::string_view key) {
  static const std::set<std::string_view> kKeys = {
      "loss",         "dim",    "data-dim",  "start",      "weights",
      "weights-skip", "freeze", "trainable", "batch-norm", "conv",
      "kernels",      "slices", "recompute", "intra-op",   "inter-op"};
  return kKeys.contains(key);
}

const std::set<std::string>& MayDiffer() {
  static const std::set<std::string> kNames = {"keep",    "trace", "fit", "checkpoint-every",
                                               "threads", "out"};
  return kNames;
}

}  // namespace

std::string OptionsToJson(const TrainOptions& options) {
  return OptionsJson(options).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TrainOptions> OptionsFromJson(const std::string& text, const std::string& file) {
  TrainOptions options;
  options.conv = "direct";  // what runs had before there was a choice
  options.slices = "1";     // of runs that could not be sliced yet
  options.recompute = "off";
  options.inter_op = "1";  // of runs that had one node after the other
  try {
    const Json json = Json::parse(text);
    ForEachOption(options, [&](const char* key, auto& value) {
      if (json.contains(key) || !MayLack(key)) FromJson(json.at(key), value);
    });
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: not the options of a run: {}", file, error.what()));
  }
  return options;
}

Result<TrainOptions> MergeResumed(const TrainOptions& stored, const TrainOptions& given,
                                  const std::set<std::string>& names) {
  const Json before = OptionsJson(stored), now = OptionsJson(given);
  for (const std::string& name : names) {
    if (!before.contains(name) || MayDiffer().contains(name) || before[name] == now[name]) continue;
    // The run that it began with.
    if (name == "model" && stored.start.starts_with(given.model + "/checkpoints/")) continue;
    // As it was chosen then.
    if (name == "slices" && given.slices == "auto") continue;
    if (name == "recompute" && given.recompute == "auto") continue;
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("--{} is {}; the run was started with {}. hint: leave it out, or "
                              "start a new run with another --out",
                              name, now[name].dump(), before[name].dump()));
  }
  TrainOptions merged = stored;
  if (names.contains("keep")) merged.keep = given.keep;
  if (names.contains("trace")) merged.trace = given.trace;
  if (names.contains("fit")) merged.fit_bytes = given.fit_bytes;
  if (names.contains("checkpoint-every")) merged.checkpoint_every = given.checkpoint_every;
  if (names.contains("threads")) merged.threads = given.threads;
  return merged;
}

}  // namespace ridge
