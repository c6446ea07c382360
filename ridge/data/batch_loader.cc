#include "ridge/data/batch_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ridge/core/process.h"
#include "ridge/core/rounding.h"
#include "ridge/data/batch.h"
#include "ridge/data/cache.h"
#include "ridge/data/length_batches.h"
#include "ridge/data/map.h"
#include "ridge/data/sequence.h"
#include "ridge/data/shortened.h"
#include "ridge/data/shuffle.h"

namespace ridge {
namespace {

constexpr const char* kWeightName = "ridge.weight";

// The index of the input that the loader itself fills with weights, or -1.
int FindWeightInput(const BatchSpec& spec, const Source& source) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const InputSpec& input = spec.inputs[i];
    const bool from_field = !input.field.empty() || source.FindField(kWeightName) >= 0;
    if (input.name == kWeightName && input.type.elements() == 1 && !from_field)
      return static_cast<int>(i);
  }
  return -1;
}

BatchSpec WithoutInput(BatchSpec spec, int input) {
  if (input >= 0) spec.inputs.erase(spec.inputs.begin() + input);
  return spec;
}

// Workers beyond the first have nothing to do where a task is a batch.
int UsefulWorkers(const Source& source, const LoaderOptions& options) {
  return source.reads_slowly() ? options.workers : std::min(options.workers, 1);
}

// Of one worker, before the source is mapped to the inputs.
int64_t PlannedScratchBytes(const Source& source, const BatchSpec& inputs,
                            const LoaderOptions& options) {
  const int64_t cut = options.lengths == nullptr
                          ? 0
                          : ShortenedSource::ScratchBytes(source) - source.scratch_bytes();
  return source.scratch_bytes() + source.heap_bytes() + cut +
         MapSource::ConversionBytes(source, inputs);
}

// Specs and sources of a further form: 3.6 KiB were measured.
constexpr int64_t kFormBytes = int64_t{7} << 9;

int64_t LargestBatch(const LoaderOptions& options) {
  int64_t largest = options.batch;
  if (options.lengths == nullptr) return largest;
  for (const LengthClass& of : options.lengths->classes) largest = std::max(largest, of.of.batch);
  return largest;
}

// What one worker takes beside its scratch: its stack with thread-local data, and what a decoder
// keeps for its thread.  12 to 16 KiB were measured for tables and texts, 13 to 50 for files.
int64_t ThreadBytes(const Source& source) { return source.reads_slowly() ? 32 << 10 : 16 << 10; }

// Of one worker: whole cache lines, so that workers write none together.
int64_t WorkerScratchBytes(const Source& samples) {
  constexpr int64_t kCacheLine = 64;
  return RoundUp(samples.scratch_bytes(), kCacheLine);
}

Status CheckBatch(const Source& source, const LoaderOptions& options) {
  if (options.batch < 1) {
    return InvalidArgument(fmt::format("batch: is {}, must be at least 1", options.batch));
  }
  if (!options.drop_last || options.batch <= source.size()) return Status();
  return InvalidArgument(
      fmt::format("batch: is {}, but {} has {} samples. hint: --batch {} at most", options.batch,
                  source.name(), source.size(), source.size()));
}

void CheckForms(const std::vector<BatchForm>& forms, const LoaderOptions& options) {
  RIDGE_CHECK(forms.size() == (options.lengths == nullptr ? 1 : options.lengths->classes.size()),
              "there is a form for each length");
  RIDGE_CHECK(!forms.front().slots.empty(), "there is a slot to fill");
  for (const BatchForm& form : forms) {
    RIDGE_CHECK(form.slots.size() == forms.front().slots.size(), "forms have the same slots");
    for (const BatchSlot& slot : form.slots)
      RIDGE_CHECK(slot.inputs.size() == form.spec.inputs.size(),
                  "a slot has a pointer for each input");
  }
}

// The samples as long as the length of this number has them.
SourcePtr OfLength(const SourcePtr& source, const LengthClasses& lengths, size_t number) {
  const int64_t whole = lengths.classes.back().of.length;
  const int64_t length = lengths.classes[number].of.length;
  if (length == whole) return source;
  return std::make_shared<ShortenedSource>(source, whole, length, lengths.padded_in_front);
}

Result<SourcePtr> MakeSamples(SourcePtr source, const BatchSpec& spec, bool cache_mapped) {
  RIDGE_ASSIGN_OR_RETURN(SourcePtr mapped, MapSource::Create(std::move(source), spec));
  if (!cache_mapped) return mapped;
  return CacheInMemory(*mapped);
}

}  // namespace

Result<BatchLoader::Form> BatchLoader::MakeForm(const SourcePtr& source, BatchForm given,
                                                size_t number, const LoaderOptions& options) {
  Form form;
  form.weight_input = FindWeightInput(given.spec, *source);
  const SourcePtr cut =
      options.lengths == nullptr ? source : OfLength(source, *options.lengths, number);
  RIDGE_ASSIGN_OR_RETURN(form.samples, MakeSamples(cut, WithoutInput(given.spec, form.weight_input),
                                                   options.cache_mapped));
  form.rows = {0, given.batch};
  if (options.share) {
    const SliceRange owned = options.share->OwnedSamples(given.batch);
    form.rows = {owned.first, owned.end};
  }
  form.given = std::move(given);
  return form;
}

Result<std::unique_ptr<BatchLoader>> BatchLoader::Create(SourcePtr source, const BatchSpec& spec,
                                                         const LoaderOptions& options,
                                                         std::vector<BatchSlot> slots) {
  return Create(std::move(source), {{spec, options.batch, std::move(slots)}}, options);
}

Result<std::unique_ptr<BatchLoader>> BatchLoader::Create(SourcePtr source,
                                                         std::vector<BatchForm> given,
                                                         const LoaderOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckBatch(*source, options));
  CheckForms(given, options);
  const int64_t before = AllocatedBytes();
  std::vector<Form> forms;
  for (size_t f = 0; f < given.size(); ++f) {
    RIDGE_ASSIGN_OR_RETURN(Form form, MakeForm(source, std::move(given[f]), f, options));
    forms.push_back(std::move(form));
  }
  source.reset();
  std::unique_ptr<BatchLoader> loader(new BatchLoader(std::move(forms), options));
  loader->created_bytes_ = AllocatedBytes() - before;
  RIDGE_RETURN_IF_ERROR(loader->Restart(options.start));
  return loader;
}

BatchLoader::BatchLoader(std::vector<Form> forms, const LoaderOptions& options)
    : forms_(std::move(forms)),
      options_(options),
      scratch_bytes_(LargestScratch()),
      scratch_({DType::kU8, {std::max(1, UsefulWorkers(samples(), options)), scratch_bytes_}}),
      order_(std::make_unique<RepeatStage>(MakeOrder(), options.epochs)),
      elements_(forms_.front().given.slots.size()),
      batches_(elements_.size()),
      loaded_(elements_.size()) {
  SlotFiller filler;
  filler.begin = [this](int slot) { return Begin(slot); };
  filler.run = [this](int slot, int task, int worker) { return RunTask(slot, task, worker); };
  filler.filled = [this](int slot) {
    FormOf(slot).given.slots[static_cast<size_t>(slot)].filled();
  };
  prefetch_ = std::make_unique<Prefetch>(static_cast<int>(elements_.size()), std::move(filler),
                                         UsefulWorkers(samples(), options));
}

// Of one worker.
int64_t BatchLoader::LargestScratch() const {
  int64_t largest = 0;
  for (const Form& form : forms_) largest = std::max(largest, WorkerScratchBytes(*form.samples));
  return largest;
}

// Of an epoch; sets what it leaves out.
std::unique_ptr<Stage> BatchLoader::MakeOrder() {
  if (options_.lengths != nullptr) {
    dropped_per_epoch_ = options_.lengths->dropped();
    return std::make_unique<LengthBatches>(options_.lengths, options_.shuffle, options_.seed);
  }
  std::unique_ptr<Stage> order = std::make_unique<SequenceStage>(samples().size());
  if (options_.shuffle) order = std::make_unique<ShuffleStage>(std::move(order), options_.seed);
  auto batches = std::make_unique<BatchStage>(std::move(order), options_.batch, options_.drop_last);
  dropped_per_epoch_ = batches->dropped();
  return batches;
}

Status BatchLoader::CheckPosition(const Position& position) const {
  const bool inside =
      position.epoch >= 0 && position.next_batch >= 0 && position.next_batch <= batches_per_epoch();
  if (inside) return Status();
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: cannot go on at batch {} of epoch {}, an epoch has {} batches of "
                            "{}. hint: the data or the batch is not that of the run",
                            samples().name(), position.next_batch, position.epoch,
                            batches_per_epoch(), options_.batch));
}

Status BatchLoader::Restart(const Position& position) {
  RIDGE_RETURN_IF_ERROR(CheckPosition(position));
  Stop();
  const bool at_end = position.next_batch == batches_per_epoch();
  position_ = at_end ? Position{position.epoch + 1, 0} : position;
  order_->Seek(position_.epoch, position_.next_batch);
  return prefetch_->Start();
}

void BatchLoader::Stop() { prefetch_->Stop(); }

Result<LoadedBatch> BatchLoader::Next() {
  RIDGE_ASSIGN_OR_RETURN(const Prefetch::Taken taken, prefetch_->Next());
  if (taken.slot < 0) return LoadedBatch{};
  LoadedBatch batch = loaded_[static_cast<size_t>(taken.slot)];
  batch.wait_seconds = taken.wait_seconds;
  return batch;
}

void BatchLoader::Release(int slot) {
  position_ = loaded_[static_cast<size_t>(slot)].after;
  prefetch_->Release(slot);
}

Result<int> BatchLoader::Begin(int slot) {
  StageSeconds sums;
  {
    const StageTimer timer(times_stages() ? &sums : nullptr, InputStage::kCollate);
    if (!order_->Next(elements_[static_cast<size_t>(slot)])) return 0;
    KeepRows(slot);
    loaded_[static_cast<size_t>(slot)] = Describe(slot);
  }
  if (times_stages()) totals_.Add(sums);
  const Form& form = FormOf(slot);
  return static_cast<int>(form.rows.count() / RowsOfTask(form));
}

void BatchLoader::KeepRows(int slot) {
  const Rows& rows = FormOf(slot).rows;
  std::vector<int64_t>& samples = elements_[static_cast<size_t>(slot)].samples;
  const auto valid = static_cast<int64_t>(samples.size());
  const std::vector<InputSpec>& inputs = FormOf(slot).given.spec.inputs;
  if (std::any_of(inputs.begin(), inputs.end(), [](const InputSpec& of) { return of.whole; }))
    batches_[static_cast<size_t>(slot)] = samples;
  samples.resize(static_cast<size_t>(std::min(rows.end, valid)));
  samples.erase(samples.begin(), samples.begin() + std::min(rows.begin, valid));
}

const std::vector<int64_t>& BatchLoader::SamplesOf(size_t input, int slot) const {
  const auto s = static_cast<size_t>(slot);
  return IsWhole(input, slot) ? batches_[s] : elements_[s].samples;
}

// Tasks share the rows of a whole input, too.
BatchLoader::Rows BatchLoader::RowsOf(size_t input, int slot, Rows task) const {
  if (!IsWhole(input, slot)) return task;
  const Form& form = FormOf(slot);
  const int64_t count = form.rows.count();
  return {task.begin * form.given.batch / count, task.end * form.given.batch / count};
}

// A sample where reading is slow, else a batch.
int64_t BatchLoader::RowsOfTask(const Form& form) const {
  return samples().reads_slowly() ? 1 : form.rows.count();
}

Status BatchLoader::RunTask(int slot, int task, int worker) {
  const int64_t rows = RowsOfTask(FormOf(slot));
  char* scratch = scratch_.as_mutable<char>() + worker * scratch_bytes_;
  return FillTimed(slot, {task * rows, (task + 1) * rows},
                   {scratch, static_cast<size_t>(scratch_bytes_)});
}

Status BatchLoader::FillTimed(int slot, Rows rows, std::span<char> scratch) {
  if (!times_stages()) return Fill(slot, rows, scratch, /*stages=*/nullptr);
  StageSeconds sums;
  const double begin = MonotonicSeconds();
  const Status status = Fill(slot, rows, scratch, &sums);
  sums.At(InputStage::kCollate) = MonotonicSeconds() - begin - sums.total();
  const auto valid = static_cast<int64_t>(elements_[static_cast<size_t>(slot)].samples.size());
  sums.samples = std::max<int64_t>(0, std::min(rows.end, valid) - rows.begin);
  totals_.Add(sums);
  return status;
}

SampleAt BatchLoader::At(int slot, int64_t sample, StageSeconds* stages) const {
  return {sample, elements_[static_cast<size_t>(slot)].epoch, /*crop=*/nullptr, stages};
}

Status BatchLoader::Fill(int slot, Rows rows, std::span<char> scratch, StageSeconds* stages) {
  const bool skips = options_.bad_records != nullptr && options_.bad_records->skips();
  if (skips) RIDGE_RETURN_IF_ERROR(FillSkipping(slot, rows, scratch, stages));
  const Form& form = FormOf(slot);
  for (size_t input = 0; input < form.given.spec.inputs.size(); ++input) {
    if (static_cast<int>(input) == form.weight_input) {
      FillWeights(input, slot, rows);
      continue;
    }
    const Rows own = RowsOf(input, slot, rows);
    if (!skips || IsWhole(input, slot))
      RIDGE_RETURN_IF_ERROR(FillInput(input, slot, own, scratch, stages));
    FillPadding(input, slot, own);
  }
  return Status();
}

Status BatchLoader::ReadInto(size_t input, int slot, int64_t row, SampleAt at,
                             std::span<char> scratch) {
  const Form& form = FormOf(slot);
  const bool after_weight = form.weight_input >= 0 && static_cast<int>(input) > form.weight_input;
  const int field = static_cast<int>(input) - (after_weight ? 1 : 0);
  const int64_t sample_bytes = form.given.spec.inputs[input].type.bytes();
  return form.samples->Read(at, field, scratch, InputOf(slot, input) + row * sample_bytes);
}

Status BatchLoader::FillInput(size_t input, int slot, Rows rows, std::span<char> scratch,
                              StageSeconds* stages) {
  const std::vector<int64_t>& samples = SamplesOf(input, slot);
  const int64_t end = std::min(rows.end, static_cast<int64_t>(samples.size()));
  for (int64_t row = rows.begin; row < end; ++row) {
    const SampleAt at = At(slot, samples[static_cast<size_t>(row)], stages);
    RIDGE_RETURN_IF_ERROR(ReadInto(input, slot, row, at, scratch));
  }
  return Status();
}

// Row by row: all inputs of a row are of one sample.
Status BatchLoader::FillSkipping(int slot, Rows rows, std::span<char> scratch,
                                 StageSeconds* stages) {
  const std::vector<int64_t>& samples = elements_[static_cast<size_t>(slot)].samples;
  const int64_t end = std::min(rows.end, static_cast<int64_t>(samples.size()));
  for (int64_t row = rows.begin; row < end; ++row) {
    const SampleAt at = At(slot, samples[static_cast<size_t>(row)], stages);
    RIDGE_RETURN_IF_ERROR(FillReadable(slot, row, at, scratch));
  }
  return Status();
}

// The sample that is tried when this one cannot be read: of the same length.
int64_t BatchLoader::SampleAfter(int slot, int64_t sample) const {
  if (options_.lengths == nullptr) return (sample + 1) % samples().size();
  const auto form = static_cast<size_t>(elements_[static_cast<size_t>(slot)].form);
  return NextOfClass(options_.lengths->classes[form], static_cast<uint32_t>(sample));
}

// The sample, or the next one that can be read.
Status BatchLoader::FillReadable(int slot, int64_t row, SampleAt at, std::span<char> scratch) {
  const Form& form = FormOf(slot);
  for (int64_t tried = 0; tried < samples().size(); ++tried) {
    Status status;
    for (size_t input = 0; input < form.given.spec.inputs.size() && status.ok(); ++input) {
      if (static_cast<int>(input) != form.weight_input && !IsWhole(input, slot))
        status = ReadInto(input, slot, row, at, scratch);
    }
    if (status.ok() || !IsBadRecord(status)) return status;
    RIDGE_RETURN_IF_ERROR(options_.bad_records->Add(samples().OriginAt(at), status.message()));
    at.index = SampleAfter(slot, at.index);
  }
  return Status(ErrorCode::kInvalidData, samples().name() + ": no sample can be read");
}

void BatchLoader::FillPadding(size_t input, int slot, Rows rows) {
  const auto valid = static_cast<int64_t>(SamplesOf(input, slot).size());
  const int64_t sample_bytes = FormOf(slot).given.spec.inputs[input].type.bytes();
  const int64_t first = std::max(rows.begin, valid);
  if (first >= rows.end) return;
  std::memset(InputOf(slot, input) + first * sample_bytes, 0,
              static_cast<size_t>((rows.end - first) * sample_bytes));
}

void BatchLoader::FillWeights(size_t input, int slot, Rows rows) {
  const auto s = static_cast<size_t>(slot);
  const auto valid = static_cast<int64_t>(elements_[s].samples.size());
  for (int64_t row = rows.begin; row < rows.end; ++row)
    StoreFromDouble(FormOf(slot).given.spec.inputs[input].type.dtype, InputOf(slot, input), row,
                    row < valid ? 1 : 0);
}

LoadedBatch BatchLoader::Describe(int slot) const {
  const Element& element = elements_[static_cast<size_t>(slot)];
  LoadedBatch batch;
  batch.slot = slot;
  batch.form = element.form;
  batch.epoch = element.epoch;
  batch.batch_index = element.index;
  batch.valid_samples = static_cast<int64_t>(element.samples.size());
  batch.last_of_epoch = element.index + 1 == batches_per_epoch();
  batch.dropped_samples = batch.last_of_epoch ? dropped_per_epoch_ : 0;
  batch.after = batch.last_of_epoch ? Position{element.epoch + 1, 0}
                                    : Position{element.epoch, element.index + 1};
  return batch;
}

BatchLoader::PlannedBytes BatchLoader::Plan(const Source& source, const BatchSpec& spec,
                                            const LoaderOptions& options) {
  const BatchSpec inputs = WithoutInput(spec, FindWeightInput(spec, source));
  PlannedBytes planned;
  planned.source_bytes = source.resident_bytes();
  const int workers = UsefulWorkers(source, options);
  constexpr int64_t kSlots = 2;
  planned.thread_bytes = workers * (ThreadBytes(source) + source.heap_bytes());
  planned.own_bytes = static_cast<int64_t>(sizeof(BatchLoader) + sizeof(Prefetch)) +
                      kSlots * LargestBatch(options) * static_cast<int64_t>(sizeof(int64_t)) +
                      workers * ThreadBytes(source) +
                      std::max(1, workers) * PlannedScratchBytes(source, inputs, options);
  if (options.lengths != nullptr) {
    const auto further = static_cast<int64_t>(options.lengths->classes.size()) - 1;
    planned.own_bytes += options.lengths->bytes() + further * kFormBytes;
  }
  if (options.cache_mapped) {
    for (const InputSpec& input : inputs.inputs)
      planned.own_bytes += source.size() * input.type.bytes();
  }
  return planned;
}

}  // namespace ridge
