#include "ridge/train/job/job_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/process.h"
#include "ridge/core/threads.h"
#include "ridge/data/augment_source.h"
#include "ridge/learn/index_extent.h"
#include "ridge/observe/average_precision.h"
#include "ridge/observe/class_counts.h"
#include "ridge/train/job/class_sampler.h"
#include "ridge/train/job/decoded_cache.h"
#include "ridge/train/job/read_cost.h"
#include "ridge/train/job/scalar_inputs.h"

namespace ridge {
namespace {

SourcePtr EvalPart(const DataSplits& splits) {
  if (splits.test) return splits.test;
  return splits.validation ? splits.validation : splits.train;
}

Status OpenValidation(const TrainOptions& options, DataOptions data_options,
                      const DataSplits& splits, JobData& data) {
  data.validation = splits.validation;
  if (options.validation.empty() || splits.held_out) return Status();
  if (const std::optional<double> fraction = HeldOutFraction(options.validation)) {
    RIDGE_ASSIGN_OR_RETURN(const ValidationSplit split,
                           SplitValidation(data.train, *fraction, options.seed));
    data.train = split.train;
    data.validation = split.validation;
    return Status();
  }
  data_options.preprocessing = splits.preprocessing;
  RIDGE_ASSIGN_OR_RETURN(const DataSplits other, OpenData(options.validation, data_options));
  data.validation = EvalPart(other);
  data.notes.insert(data.notes.end(), other.notes.begin(), other.notes.end());
  return Status();
}

// Of the training part alone.
Status Augment(const TrainOptions& options, JobData& data) {
  if (options.augment.empty()) return Status();
  RIDGE_ASSIGN_OR_RETURN(data.train, AugmentTraining(data.train, options.augment, options.seed));
  return Status();
}

Result<BadRecordsPtr> MakeBadRecords(const TrainOptions& options,
                                     const std::optional<DataSplits>& opened) {
  if (opened && opened->bad_records != nullptr) return opened->bad_records;
  RIDGE_ASSIGN_OR_RETURN(const BadRecordsPolicy policy,
                         BadRecordsPolicy::Parse(options.bad_records));
  return std::make_shared<BadRecords>(policy);
}

Status CheckSize(const TrainOptions& options, const JobData& data) {
  const int64_t group = options.batch * options.accumulate;
  const int64_t size = data.train->size();
  if (options.batch > size || options.accumulate > size / options.batch) {
    const std::string batch = options.accumulate == 1
                                  ? fmt::format("--batch is {}", options.batch)
                                  : fmt::format("--batch {} times --accumulate {} is {}",
                                                options.batch, options.accumulate, group);
    return Status(
        ErrorCode::kInvalidArgument,
        fmt::format("{}; {} has {} samples to train on. hint: --batch {}", batch,
                    data.train->name(), size, std::max<int64_t>(1, size / options.accumulate)));
  }
  return Status();
}

void CountSteps(const TrainOptions& options, JobData& data) {
  const int64_t group = options.batch * options.accumulate;
  const int64_t size = data.train->size();
  data.steps_per_epoch = data.lengths != nullptr ? data.lengths->batches() : size / group;
  data.dropped_per_epoch =
      data.lengths != nullptr ? data.lengths->dropped() : size - data.steps_per_epoch * group;
  data.total_steps =
      options.steps ? *options.steps : options.epochs.value_or(1) * data.steps_per_epoch;
}

// The inputs of a shorter form come from the fields of the whole form's.
Result<BatchSpec> ShorterSpec(const LengthForm& form, const JobData& data) {
  BatchSpec spec = MakeBatchSpec(form.graph, form.facts, /*with_weight=*/false);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<FieldMap> maps,
                         MatchFields(data.train_spec, *data.train));
  for (size_t i = 0; i < maps.size(); ++i)
    spec.inputs[i].field = data.train->fields()[static_cast<size_t>(maps[i].field)].name;
  return spec;
}

// `whole`: the batches of the whole length.
Status TakeLengths(const std::vector<LengthForm>& forms, const BatchLength& whole, JobData& data) {
  std::vector<BatchLength> lengths;
  for (const LengthForm& form : forms) {
    lengths.push_back({form.length, form.batch});
    RIDGE_ASSIGN_OR_RETURN(BatchSpec spec, ShorterSpec(form, data));
    data.length_specs.push_back(std::move(spec));
  }
  lengths.push_back(whole);
  RIDGE_ASSIGN_OR_RETURN(data.lengths, FindLengthClasses(*data.train, lengths));
  return Status();
}

// A label beyond the classes indexes no logit: the loss would be NaN.
Status CheckLabels(const Graph& forward, const ForwardInfo& facts, const BatchSpec& spec,
                   const SourcePtr& source) {
  if (facts.logits == kNoValue || source == nullptr) return Status();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<FieldMap> maps, MatchFields(spec, *source));
  const int64_t classes = forward.type(facts.logits).dims.back();
  for (size_t i = 0; i < maps.size(); ++i) {
    const Field& field = source->fields()[static_cast<size_t>(maps[i].field)];
    if (spec.inputs[i].name != forward.value(facts.label).name || field.classes <= classes)
      continue;
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: field '{}' has label {}; the model has {} classes, 0 to {}",
                              source->name(), field.name, field.classes - 1, classes, classes - 1));
  }
  return Status();
}

// As many workers as there are cores, fewer where their buffers exceed an eighth of the memory that
// the run may use; bits do not depend on it.
void FitWorkers(const TrainOptions& options, JobData& data) {
  constexpr int64_t kPart = 8;
  const bool slow =
      data.train->reads_slowly() || (data.eval_set() != nullptr && data.eval_set()->reads_slowly());
  if (!slow || *ParseWorkers(options.workers) > 0) return;
  const int64_t limit = options.fit_bytes > 0 ? options.fit_bytes : AvailableMemoryBytes();
  data.pipeline_cap_bytes = limit / kPart;
  const int64_t resident = ResidentBytes({data.train, data.validation, data.test});
  while (data.workers > 1 &&
         PlannedDataBytes(data, options.batch) - resident > data.pipeline_cap_bytes)
    --data.workers;
}

// What training graphs of TrainingGraphOptions::mixes_labels read beside the model's inputs.
void AddMixedLabels(const Graph& forward, const ForwardInfo& facts, BatchSpec& spec) {
  if (facts.label == kNoValue) return;  // planning refuses it
  spec.inputs.push_back({kOtherLabelInput, {forward.type(facts.label).dtype, {}}});
  spec.inputs.push_back({kLabelWeightInput, {DType::kF32, {}}});
}

constexpr size_t kPictureRank = 4;  // [batch, C, H, W]

void TakeDetection(const Graph& forward, const ForwardInfo& facts, EvalSubject& subject) {
  const Dims& answers = forward.type(facts.detection->detections).dims;
  subject.boxes = forward.value(facts.detection->boxes).name;
  subject.box_classes = forward.value(facts.detection->classes).name;
  subject.answers = answers[1];
  subject.classes = answers[2] - 4;
  for (const ValueId id : facts.data_inputs) {
    const Dims& dims = forward.type(id).dims;
    if (dims.size() == kPictureRank) subject.picture = {dims[2], dims[3]};
  }
}

// A tokenizer that cannot be read again leaves the words uncounted.
void TakeWritten(const Graph& forward, const ForwardInfo& facts, const Preprocessing& preprocessing,
                 EvalSubject& subject) {
  Result<TranscriptTokensPtr> tokens = TranscriptTokensOf(preprocessing);
  if (!tokens.ok() || *tokens == nullptr) return;
  subject.tokens = std::move(*tokens);
  subject.written = forward.value(facts.label).name;
}

}  // namespace

EvalSubject SubjectOf(const Graph& forward, const ForwardInfo& facts,
                      const Preprocessing* preprocessing) {
  EvalSubject subject;
  if (facts.prediction != kNoValue) subject.target = forward.value(facts.target).name;
  if (facts.ctc) {
    subject.spelled = forward.value(facts.ctc->targets).name;
    subject.spelled_length = forward.value(facts.ctc->target_lengths).name;
    subject.blank = facts.ctc->blank;
    if (preprocessing != nullptr && preprocessing->spelling)
      subject.spelling.emplace(*preprocessing->spelling);
  }
  if (preprocessing != nullptr) subject.class_names = preprocessing->classes;
  if (facts.detection) TakeDetection(forward, facts, subject);
  if (facts.logits == kNoValue) return subject;
  const int rank = forward.type(facts.label).rank();
  subject.pixels = rank == kPixelLabelRank;
  if (rank == 1 || subject.pixels) subject.label = forward.value(facts.label).name;
  subject.classes = forward.type(facts.logits).dims.back();
  subject.ignored_label = facts.ignored_label;
  subject.perplexity = rank == 2 && facts.loss_is_cross_entropy;
  if (rank == 2 && preprocessing != nullptr) TakeWritten(forward, facts, *preprocessing, subject);
  return subject;
}

std::string EvalSubject::ClassName(int64_t c) const {
  const auto at = static_cast<size_t>(c);
  return at < class_names.size() ? class_names[at] : std::to_string(c);
}

int64_t EvalSubject::count_bytes(int64_t samples) const {
  const int64_t of_boxes = boxes.empty() ? 0
                                         : DetectionBytes(answers, classes) +
                                               AveragePrecision::Bytes(samples, kMostDetected);
  return of_boxes + (label.empty() ? 0 : ClassCounts::Bytes(classes));
}

BatchSpec MakeBatchSpec(const Graph& forward, const ForwardInfo& facts, bool with_weight) {
  BatchSpec spec;
  for (ValueId id : facts.data_inputs) {
    TensorType type = forward.type(id);
    type.dims.erase(type.dims.begin());
    spec.inputs.push_back({forward.value(id).name, std::move(type)});
  }
  if (with_weight) spec.inputs.push_back({kWeightInput, {DType::kF32, {}}});
  return spec;
}

bool MixesLabels(const TrainOptions& options) {
  if (options.augment.empty()) return false;
  const Result<Augmentation> augmentation = Augmentation::Parse(options.augment, options.seed);
  return augmentation.ok() && augmentation->mixing().any();
}

DataOptions DataOptionsOf(const Graph& forward, const ForwardInfo& facts, uint64_t seed) {
  DataOptions options;
  options.seed = seed;
  const int64_t classes = facts.logits == kNoValue ? 0 : forward.type(facts.logits).dims.back();
  const std::string label_name = facts.label == kNoValue ? "" : forward.value(facts.label).name;
  const std::vector<int64_t> extents = IndexExtents(forward);
  for (const InputSpec& input : MakeBatchSpec(forward, facts, /*with_weight=*/false).inputs) {
    int64_t extent = 0;
    if (IsInteger(input.type.dtype))
      extent = extents[static_cast<size_t>(forward.FindValue(input.name))];
    // Else an integer scalar is a label.
    const bool label =
        input.name == label_name || (IsInteger(input.type.dtype) && input.type.dims.empty());
    if (extent == 0 && label) extent = classes;
    options.model_inputs.push_back({input.name, input.type, extent});
  }
  return options;
}

int ReadWorkers(const TrainOptions& options) {
  const Result<int64_t> workers = ParseWorkers(options.workers);
  RIDGE_CHECK(workers.ok(), "the options are checked");
  return *workers > 0 ? static_cast<int>(*workers) : AvailableThreads();
}

Result<JobData> OpenJobData(const TrainOptions& options, const Graph& forward,
                            const ForwardInfo& facts, const std::optional<DataSplits>& opened,
                            std::shared_ptr<const Preprocessing> preprocessing,
                            const std::vector<LengthForm>& lengths) {
  DataOptions data_options = DataOptionsOf(forward, facts, options.seed);
  data_options.preprocessing = std::move(preprocessing);
  data_options.hold_out = HeldOutFraction(options.validation).value_or(0);
  RIDGE_ASSIGN_OR_RETURN(data_options.bad_records, MakeBadRecords(options, opened));
  const int64_t before = AllocatedBytes();
  DataSplits splits;
  if (opened) splits = *opened;
  if (!opened) {
    RIDGE_ASSIGN_OR_RETURN(splits, OpenData(options.data, data_options));
  }
  JobData data;
  data.workers = ReadWorkers(options);
  RIDGE_RETURN_IF_ERROR(CacheDecoded(options, data.workers, splits));
  data.train = splits.train;
  data.test = splits.test;
  data.notes = splits.notes;
  data.bad_records = data_options.bad_records;
  data.preprocessing = splits.preprocessing;
  RIDGE_RETURN_IF_ERROR(OpenValidation(options, data_options, splits, data));
  data.train_spec = MakeBatchSpec(forward, facts, /*with_weight=*/false);
  RIDGE_RETURN_IF_ERROR(SampleTraining(options, forward, facts, data));
  RIDGE_RETURN_IF_ERROR(Augment(options, data));
  RIDGE_RETURN_IF_ERROR(data.bad_records->SetSamples(data.train->size()));
  data.eval_spec = MakeBatchSpec(forward, facts, /*with_weight=*/true);
  data.eval_subject = SubjectOf(forward, facts, data.preprocessing.get());
  for (const SourcePtr& source : {data.train, data.validation, data.test})
    RIDGE_RETURN_IF_ERROR(CheckLabels(forward, facts, data.train_spec, source));
  data.eval_read_s = MeasureReadSeconds(data.eval_set(), data.train_spec);
  if (MixesLabels(options)) AddMixedLabels(forward, facts, data.train_spec);
  FitWorkers(options, data);
  data.train_read_s = MeasureReadSeconds(data.train, data.train_spec);
  RIDGE_RETURN_IF_ERROR(CheckSize(options, data));
  if (!lengths.empty()) {
    const BatchLength whole = {WholeLength(forward, facts, lengths.front()), options.batch};
    RIDGE_RETURN_IF_ERROR(TakeLengths(lengths, whole, data));
  }
  CountSteps(options, data);
  data.held_bytes = AllocatedBytes() - before + (opened ? splits.held_bytes : 0);
  return data;
}

Result<EvalData> OpenEvalData(const TrainOptions& options, const Graph& forward,
                              const ForwardInfo& facts, const std::optional<DataSplits>& opened,
                              std::shared_ptr<const Preprocessing> preprocessing) {
  EvalData data;
  RIDGE_ASSIGN_OR_RETURN(data.bad_records, MakeBadRecords(options, opened));
  DataSplits splits;
  if (opened) splits = *opened;
  if (!opened) {
    DataOptions data_options = DataOptionsOf(forward, facts, options.seed);
    data_options.preprocessing = std::move(preprocessing);
    data_options.bad_records = data.bad_records;
    RIDGE_ASSIGN_OR_RETURN(splits, OpenData(options.data, data_options));
  }
  data.source = EvalPart(splits);
  RIDGE_RETURN_IF_ERROR(data.bad_records->SetSamples(data.source->size()));
  const BatchSpec spec = MakeBatchSpec(forward, facts, /*with_weight=*/false);
  RIDGE_RETURN_IF_ERROR(CheckLabels(forward, facts, spec, data.source));
  return data;
}

int64_t PlannedDataBytes(const JobData& data, int64_t batch, const Program* program) {
  const auto planned = [&](const BatchSpec& spec) {
    return program == nullptr ? spec : AsPlanned(*program, spec);
  };
  LoaderOptions options;
  options.batch = batch;
  options.workers = data.workers;
  options.lengths = data.lengths;
  int64_t bytes = ResidentBytes({data.train, data.validation, data.test});
  const auto train = BatchLoader::Plan(*data.train, planned(data.train_spec), options);
  bytes += train.own_bytes;
  options.drop_last = false;
  options.lengths = nullptr;
  for (const SourcePtr& set : {data.validation, data.test})  // each is counted by its evaluator
    bytes += set != nullptr ? data.eval_subject.count_bytes(set->size()) : 0;
  if (data.eval_set() != nullptr) {  // its threads run while those of training do not
    const auto eval = BatchLoader::Plan(*data.eval_set(), planned(data.eval_spec), options);
    bytes += eval.own_bytes - std::min(train.thread_bytes, eval.thread_bytes);
  }
  return bytes;
}

}  // namespace ridge
