// TrainOptions: all options of `ridge train`, and their JSON form (options.json).
//
// JSON keys are the long option names without dashes in front ("weight-decay"), so a stored run and
// a command line can be compared name by name.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/learn/loss_scale.h"
#include "ridge/learn/optimizers/optimizer.h"
#include "ridge/train/options/schedules/schedule.h"

namespace ridge {

// How often: after so many steps, or after so much time when `seconds` is above 0.
struct Interval {
  Interval(int64_t a_steps = 0) : steps(a_steps) {}
  int64_t steps = 0;
  double seconds = 0;
  bool operator==(const Interval&) const = default;
};
// "100", "30s", "10min", "1.5h".  Fails with kInvalidArgument; `name` begins the message.
Result<Interval> ParseInterval(const std::string& name, const std::string& text);
std::string IntervalText(const Interval& interval);  // "100", "600s"

struct TrainOptions {
  std::string model;
  std::string data;
  std::string augment;                    // empty, or random transforms: "flip,crop:4"
  std::string cache;                      // see ParseCache; empty: none
  std::string sampler;                    // empty, "balanced", or shares of the classes: "1,2.5"
  std::string bucket;                     // empty, or lengths of texts: "64,128"
  std::string bad_records = "fail";       // or "skip:N", "skip:P%"
  std::string validation;                 // empty, a data spec, "auto", or a fraction such as "0.1"
  std::string loss;                       // see loss.h; empty: the model's own
  double label_smoothing = 0;             // see loss_shape.h, as the next five
  std::string class_weights;              // empty, "auto", numbers, or a file of numbers
  std::vector<std::string> class_weight;  // of a run: their numbers; no option
  double focal = 0;
  double dice = 0;
  std::vector<std::string> dims;       // "NAME=N": named dimensions beside the batch
  std::vector<std::string> data_dims;  // of a run: dimensions that its data determined; no option
  std::string start;                   // of a run: the checkpoint of its initial weights; no option
  std::string weights;                 // safetensors file of initial values
  std::vector<std::string> weights_skip;  // patterns of tensors to skip
  // Patterns of parameter names with * and ?.
  std::vector<std::string> freeze, trainable;
  std::string lora;                  // see lora.h; empty: none
  std::string frozen_weights;        // see frozen_weights.h; empty: as the model has them
  std::string batch_norm = "train";  // or "frozen"
  std::optional<int64_t> epochs;     // neither: 1 epoch; both: refused
  std::optional<int64_t> steps;
  int64_t patience = 0;  // 0: no early stop
  int64_t batch = 32;
  int64_t accumulate = 1;
  std::string slices = "auto";   // or the number of slices that a batch is run in
  std::string sums = "running";  // of slices; or "tree": the same bits on any number of devices
  std::string recompute =
      "auto";  // cheap values for backward: recomputed ("all", "8") or kept ("off")
  std::string loss_chunks = "auto";  // or the number of chunks of logits
  OptimizerOptions optimizer;
  double lr = 1e-3;
  std::string lr_for;  // see optimizers/rates.h
  double ema = 0;      // decay of averages.h; 0: none
  std::string schedule = "constant";
  int64_t warmup = 0;
  double clip_norm = 0;  // 0: no clipping
  std::string precision = "f32";
  std::vector<std::string> precision_for;  // see learn/precision_for.h
  std::string loss_scale;                  // of f16: see learn/loss_scale.h; empty: dynamic
  std::string device = "cpu";
  std::string device_memory;            // "": the share of DeviceMemory
  std::string kernel_launch = "graph";  // of a GPU's kernels: graph, single, sync
  std::string copy_stream = "on";       // batches cross to a GPU on a stream of their own; or "off"
  int64_t threads = 0;                  // 0: all that may be used
  int64_t intra_op = 0;                 // threads of one node; 0: all of them
  std::string inter_op = "1";           // most small nodes that run at the same time; or "auto"
  std::string workers = "auto";         // threads that read slow samples; or their number
  std::string conv = "auto";            // Winograd where it is faster; or "direct"
  std::string kernels = "default";      // or "tuned": by times measured on this machine
  uint64_t seed = 0;
  int64_t fit_bytes = 0;           // 0: the memory of the machine
  std::string offload = "none";    // see plan/hardware/offload.h
  std::vector<std::string> place;  // see learn/host_placement.h
  std::string devices = "1";       // see ParseDevices
  std::string mesh, shard;         // see partition/mesh.h, partition/layouts.h; empty: none
  std::string pipeline;            // see pipeline/schedule.h; empty: 1f1b, or no axis p
  std::string shares = "equal";    // see ParseShares
  std::string wire = "f32";        // what gradients travel as between devices; or "bf16"
  std::string overlap = "auto";    // of exchanges and the step: or "on", "off"
  std::string out;                 // empty: runs/MODEL-N
  Interval checkpoint_every;       // 0 steps: each epoch
  std::string checkpoint_writers = "auto";  // or a number of devices
  int64_t keep = 3;
  int64_t eval_every = 0;  // 0: each epoch
  std::string passes;
  bool trace = false;
};

// Whether the model is a graph in text form or an ONNX file, of which a run keeps a copy.
bool IsGraphFile(const std::string& model);
bool IsOnnxFile(const std::string& model);

// Ranges, and what excludes what.  Fails with kInvalidArgument ("--batch is 0; ..."), or
// kUnsupported for a precision that is not built in yet.
Status CheckOptions(const TrainOptions& options);
// The same for a plan, which needs no data.
Status CheckPlanOptions(TrainOptions options);

// The part of the training data that --validation holds out: "0.1" -> 0.1, "auto" -> a fifth; none
// for a data spec.  Not checked.
std::optional<double> HeldOutFraction(const std::string& validation);

// {"sequence=128"} -> {sequence: 128}.  Fails with kInvalidArgument.
Result<std::map<std::string, int64_t>> ParseDims(const std::vector<std::string>& texts);

// The loss scale of --precision f16; none for others.  Fails with kInvalidArgument.
Result<std::optional<LossScaleOptions>> LossScaleOf(const TrainOptions& options);

// "64,128" -> {64, 128}; none for "".  Fails with kInvalidArgument unless they ascend from 1.
Result<std::vector<int64_t>> ParseBucket(const std::string& text);

// Of --cache: "disk", "memory", "memory:2GiB", or empty.  Fails with kInvalidArgument.
struct CacheChoice {
  bool disk = false, memory = false;
  int64_t memory_bytes = 0;  // 0: none is named
};
// What a plan may take of a GPU's memory: so many bytes, or with 0 a part of what is free.
struct DeviceMemory {
  int64_t bytes = 0;
  double fraction = 0.9;  // other programs may come
};
Result<DeviceMemory> ParseDeviceMemory(const std::string& text);

Result<CacheChoice> ParseCache(const std::string& text);

// How many devices: "2" -> 2, "0,1" -> 2.  Fails with kInvalidArgument.
Result<int64_t> ParseDevices(const std::string& text);
// Those of a list, in its order; none of a number.
std::vector<int64_t> ListedDevices(const std::string& text);
// Those of the mesh, where there is one.  Fails as ParseDevices and ParseMesh do.
Result<int64_t> DevicesOf(const TrainOptions& options);

// How a batch's slices are shared out to devices: "3,1" -> three to one.  Fails with
// kInvalidArgument.
struct SharesOption {
  bool automatic = false;      // "auto": by what they were measured to take
  std::vector<int64_t> parts;  // by rank; empty: "equal", or "auto"
};
Result<SharesOption> ParseShares(const std::string& text);
// Fails with kInvalidArgument unless --shares is for so many devices.
Status CheckShares(const TrainOptions& options, int64_t devices);

// "8" -> 8, "auto" -> kAutoSlices.  Fails with kInvalidArgument.
inline constexpr int64_t kAutoSlices = 0;
Result<int64_t> ParseSlices(const std::string& text);

// "4" -> 4, "auto" -> nullopt.  Fails with kInvalidArgument.
Result<std::optional<int64_t>> ParseLossChunks(const std::string& text);

// "2" -> 2, "auto" -> 0.  Fails with kInvalidArgument.
Result<int64_t> ParseWorkers(const std::string& text);

// "2" -> 2, "auto" -> kAutoInterOp.  Fails with kInvalidArgument.
inline constexpr int64_t kAutoInterOp = 0;
Result<int64_t> ParseInterOp(const std::string& text);

// What is recomputed: "auto", "off", "all", "8" (the best ones), "full", "full:2GiB" (until the
// step takes so many bytes less), "40%", "2GiB" (of the step's scratch).
struct RecomputeOption {
  enum class Kind : uint8_t { kAuto, kOff, kAll, kFirst, kFull, kBudget };
  Kind kind = Kind::kAuto;
  int64_t values = INT64_MAX;  // kFirst: at most so many
  double share = 1;            // kBudget: of the step's scratch
  int64_t bytes = INT64_MAX;   // kBudget: of the step's scratch; kFull: enough to free
};
// Fails with kInvalidArgument.
Result<RecomputeOption> ParseRecompute(const std::string& text);

// What the plan of these options chose for "auto"; stored, so that a resumed run on other memory
// does not choose differently.
void TakeChoices(const TrainOptions& planned, TrainOptions& options);

// Copies a run's model options into those of a new run that starts from its weights, except the
// ones in `given` (JSON keys).
void TakeModelOptions(const TrainOptions& run, const std::set<std::string>& given,
                      TrainOptions& options);

std::string OptionsToJson(const TrainOptions& options);
// `file` is for messages.  Fails with kInvalidData.
Result<TrainOptions> OptionsFromJson(const std::string& text, const std::string& file);

// `--resume`: options that the user repeats must equal those of the run, since others would change
// its result; those that options.def marks kTaken or kTotal are taken from `given`, and --epochs
// and
// --steps replace each other.  `names` are the keys of the options that the user gave.
// Fails with kInvalidArgument and names the first option that differs.
Result<TrainOptions> MergeResumed(const TrainOptions& stored, const TrainOptions& given,
                                  const std::set<std::string>& names);

}  // namespace ridge
