// From a forward Graph with a loss to the graphs that a run plans and executes.
//
//   train   forward, gradients, clipping, optimizer: one update from one batch; the graph itself
//           if it has its own training step
//   micro   forward, gradients added to accumulators;   with accumulate > 1, instead of `train`
//   update  mean of the accumulators, clipping, optimizer, accumulators back to zero
//   eval    inference form with a weight per sample: sums over the samples
//   infer   inference form of the graph's own outputs
//
// With slices, `train` sums the slices' gradients before clipping and optimizer, and `train`,
// `micro` and `eval` sum their outputs that are one number (NamedGraph::slices).
//
// Inputs beyond the graph's own: `ridge.lr` f32[] (f64[] for a f64 loss), `ridge.step` i64[] (1 at
// the first update; with a loss scale the graph counts itself), `ridge.rounding` i64[2] = {seed,
// step} (where moments are rounded at random), `ridge.weight` f32[batch] (eval: 1, or 0 for
// padding).  A graph that draws random numbers has an input `rng` i64[3] = {seed, step, first
// sample}.  Outputs: train and micro `loss` and, for a classifier, `correct` (f32[], samples whose
// largest logit is the label's); train and update `grad_norm` with clipping; eval `loss_sum`,
// `correct_sum` and `weight_sum`, and, with ignored labels, `loss_weight_sum` and `label_sum`,
// which replace it; also, where these do not couple samples or the step has one slice, what metrics
// are counted from, by sample, with the rows of all slices (NamedGraph::stacked_outputs): `logits`
// [batch, classes] where a sample has one label, `said` [batch, H, W], the class of the largest
// logit, where a pixel has one, `prediction`, `detections` of a detector, with ctc_loss `spelled`
// i64[batch, frames] (BestClasses of ctc.h), or, where tokens are written of floats, `written`
// i64[batch, length], those of the largest logits.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/learn/loss_scale.h"
#include "ridge/learn/optimizers/optimizer.h"
#include "ridge/learn/optimizers/rates.h"

namespace ridge {

inline constexpr int kPixelLabelRank = 3;  // labels [batch, H, W]

inline constexpr char kLrInput[] = "ridge.lr";
inline constexpr char kStepInput[] = "ridge.step";
inline constexpr char kRoundingInput[] = "ridge.rounding";
inline constexpr char kRngInput[] = "rng";
inline constexpr char kWeightInput[] = "ridge.weight";
inline constexpr char kOtherLabelInput[] = "ridge.other_label";
inline constexpr char kLabelWeightInput[] = "ridge.label_weight";

struct TrainingGraphOptions {
  OptimizerOptions optimizer;
  std::vector<RateFactor> rates = {};  // factors on the learning rate, by parameter
  double average_decay = 0;            // of averages.h; 0: none
  double clip_norm = 0;                // 0: no clipping
  int64_t accumulate = 1;              // micro-batches an update
  std::optional<LossScaleOptions> loss_scale = std::nullopt;

  // `forward` computes one of `slices` parts of the batch; the batch's loss is the mean of theirs,
  // or their sum.
  int64_t slices = 1;
  bool mean_of_slices = true;
  std::optional<SliceShare> share = std::nullopt;  // that is computed here; the sums are a tree's
  DType wire = DType::kF32;                        // of these sums: as of a NamedGraph

  // Each sample has two classes: the label with the input `ridge.label_weight` f32[batch], and
  // `ridge.other_label`, typed as the label, with the rest.  The loss is the mean of the two cross
  // entropies by these weights.
  bool mixes_labels = false;
  double label_smoothing = 0;  // of each of the two: this share is spread over all classes
};

// Of connectionist temporal classification: the operands of a graph's only ctc_loss.
struct CtcInfo {
  ValueId logits = kNoValue;                              // [batch, frames, classes]
  ValueId lengths = kNoValue;                             // of logits, integers [batch]
  ValueId targets = kNoValue, target_lengths = kNoValue;  // inputs
  int64_t blank = 0;
};

// The facts of a forward graph that training needs.
// Of a detector: its output `detections` [batch, A, 4 + classes] (boxes, probabilities), and the
// inputs with the true boxes [batch, N, 4] and their classes [batch, N].
struct DetectionInfo {
  ValueId detections = kNoValue, boxes = kNoValue, classes = kNoValue;
};

struct ForwardInfo {
  ValueId loss = kNoValue;
  ValueId eval_loss = kNoValue;  // what an evaluation reads: the loss, or kEvalLossOutput
  ValueId logits = kNoValue;     // kNoValue unless a classifier: logits [batch, ..., classes]
  ValueId label = kNoValue;      // ... and input label i64|i32 [batch, ...]
  std::optional<int64_t> ignored_label;  // ... the label that loss and accuracy ignore
  // The evaluation's loss is the mean of the cross entropy and nothing else, so its exponential is
  // the perplexity.
  bool loss_is_cross_entropy = false;
  // Of a regression, whose loss is the mean of (prediction - target)^2; both [batch, ...].
  ValueId prediction = kNoValue;
  ValueId target = kNoValue;  // an input
  std::optional<CtcInfo> ctc;
  std::optional<DetectionInfo> detection;
  std::vector<ValueId> data_inputs;  // filled by a batch: all but `rng` and the step's own
  int64_t batch = 0;                 // first extent of the data inputs
  // The graph updates parameters, so it is a whole training step; it may have inputs `ridge.lr` and
  // `ridge.step`.
  bool has_optimizer = false;
};

// Fails with kInvalidModel: no output `loss` or not one float; inputs without a common first
// extent; a reserved name taken; unbound dimensions.
Result<ForwardInfo> InspectForward(const Graph& forward);

// The parameters that an update changes, in order of creation.
std::vector<ValueId> TrainableParameters(const Graph& graph);

// `train`, or `micro` and `update`.  Fails with kInvalidModel when nothing is trainable, with
// kUnsupported when an operator on the way has no gradient, and with kInvalidArgument for options
// that a graph with its own step cannot follow, or mixes_labels unless the loss is the mean cross
// entropy of one label a sample.
Result<std::vector<NamedGraph>> BuildTrainingGraphs(const Graph& forward,
                                                    const TrainingGraphOptions& options);

// In `slices` slices; in one when the graph couples samples.  Of a `share`, which must not couple
// them, the sums are those of the whole batch: fails with kUnsupported.
Result<NamedGraph> BuildEvalGraph(const Graph& forward, int64_t slices = 1,
                                  const std::optional<SliceShare>& share = std::nullopt);

// Only the outputs that depend on none of the inputs in `missing` (such as a label).
Result<NamedGraph> BuildInferenceGraph(const Graph& forward,
                                       const std::vector<std::string>& missing = {});

}  // namespace ridge
