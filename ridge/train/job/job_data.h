// JobData: the data sets of a run, and its steps per epoch.
#pragma once
#include <optional>
#include <string>

#include "ridge/data/batch_loader.h"
#include "ridge/data/image/crop.h"
#include "ridge/data/spelling.h"
#include "ridge/data/transcript_tokens.h"
#include "ridge/graph/graph.h"
#include "ridge/learn/length_form.h"
#include "ridge/learn/training_graph.h"
#include "ridge/plan/program.h"
#include "ridge/train/options/options.h"

namespace ridge {

// What the metrics of an evaluation are counted from, beside its sums.
struct EvalSubject {
  std::string label;  // input of a classifier with one label a sample, or one a pixel; else ""
  bool pixels = false;
  std::string target;  // input of a regression; else ""
  int64_t classes = 0;
  std::optional<int64_t> ignored_label;
  bool perplexity =
      false;  // of words: several labels a sample, and the loss is their cross entropy
  // Of ctc_loss: the inputs; else "".
  std::string spelled, spelled_length;
  int64_t blank = 0;
  std::string written;  // label of a model that writes the words it hears, else ""
  // Of a detector: the inputs, else ""; `classes` of them, boxes in pixels of `picture`.
  std::string boxes, box_classes;
  int64_t answers = 0;                   // places of a picture
  ImageSize picture;                     // 0 x 0 where no input is one
  std::optional<Spelling> spelling;      // none: its classes are no letters
  TranscriptTokensPtr tokens;            // of what is written
  std::vector<std::string> class_names;  // empty: they have none

  std::string ClassName(int64_t c) const;
  int64_t count_bytes(int64_t samples) const;  // host memory of the counts
};
EvalSubject SubjectOf(const Graph& forward, const ForwardInfo& facts,
                      const Preprocessing* preprocessing);

struct JobData {
  SourcePtr train;
  SourcePtr validation;  // requested, else the data's own; null when there is none
  SourcePtr test;        // null when the data has none
  std::shared_ptr<const Preprocessing> preprocessing;  // DataSplits::preprocessing
  BatchSpec train_spec;
  BatchSpec eval_spec;                  // with the weight
  LengthClassesPtr lengths;             // of the training samples, with --bucket; else null
  std::vector<BatchSpec> length_specs;  // of the shorter forms, as the classes before the last
  EvalSubject eval_subject;
  std::vector<std::string> notes;  // DataSplits::notes of all opened data

  int workers = 1;          // threads that read slow samples
  double train_read_s = 0;  // of one core for a sample (MeasureReadSeconds)
  double eval_read_s = 0;
  // What the pipelines may take beside the data, to which the number of workers was fitted; 0: they
  // were given, or read what is in memory.
  int64_t pipeline_cap_bytes = 0;
  int64_t held_bytes = 0;  // of the data and what was made of them, measured
  BadRecordsPtr bad_records;

  int64_t steps_per_epoch = 0;    // updates
  int64_t dropped_per_epoch = 0;  // samples that do not fill a group of `accumulate` batches
  int64_t total_steps = 0;

  // Evaluated while training: the validation set, else the test set; null when there is neither.
  const SourcePtr& eval_set() const { return validation ? validation : test; }
  const char* during_name() const { return validation ? "validation" : "test"; }
  // Evaluated at the end: the test set, else the validation set.
  const SourcePtr& report_set() const { return test ? test : validation; }
};

// One sample of each data input of the graph.
BatchSpec MakeBatchSpec(const Graph& forward, const ForwardInfo& facts, bool with_weight);

// Whether --augment mixes samples of two classes.
bool MixesLabels(const TrainOptions& options);

// The model's inputs, with labels and indices within their extents, for data that adapt to them.
DataOptions DataOptionsOf(const Graph& forward, const ForwardInfo& facts, uint64_t seed);

// Threads that read samples which are slow to read: `--workers`, or the cores that may be used.
int ReadWorkers(const TrainOptions& options);

// Opens the data, augments the training part, holds out the validation part, counts steps.  Fails
// as OpenData does, and with kInvalidArgument when batch * accumulate is larger than the training
// data. `opened`: options.data if it is already open; `preprocessing`: that of the run, for data
// that are opened now; `lengths`: the shorter forms of the graph.
Result<JobData> OpenJobData(const TrainOptions& options, const Graph& forward,
                            const ForwardInfo& facts,
                            const std::optional<DataSplits>& opened = std::nullopt,
                            std::shared_ptr<const Preprocessing> preprocessing = nullptr,
                            const std::vector<LengthForm>& lengths = {});

struct EvalData {
  SourcePtr source;
  BadRecordsPtr bad_records;
};

// Data for an evaluation (options.data): the test part, else the validation part, else all of it.
Result<EvalData> OpenEvalData(const TrainOptions& options, const Graph& forward,
                              const ForwardInfo& facts,
                              const std::optional<DataSplits>& opened = std::nullopt,
                              std::shared_ptr<const Preprocessing> preprocessing = nullptr);

// Host memory of the data and of the input pipelines of a run; without its program of inputs in the
// model's types.
int64_t PlannedDataBytes(const JobData& data, int64_t batch, const Program* program = nullptr);

}  // namespace ridge
