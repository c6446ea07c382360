#include "ridge/data/batch_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ridge/data/batch.h"
#include "ridge/data/cache.h"
#include "ridge/data/map.h"
#include "ridge/data/sequence.h"
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

int64_t LargestFieldBytes(const Source& source) {
  int64_t largest = 0;
  for (const Field& field : source.fields()) largest = std::max(largest, field.type.bytes());
  return largest;
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

Status CheckSlots(const BatchSpec& spec, const std::vector<BatchSlot>& slots) {
  RIDGE_CHECK(!slots.empty(), "there is a slot to fill");
  for (const BatchSlot& slot : slots)
    RIDGE_CHECK(slot.inputs.size() == spec.inputs.size(), "a slot has a pointer for each input");
  return Status();
}

Result<SourcePtr> MakeSamples(SourcePtr source, const BatchSpec& spec, bool cache_mapped) {
  RIDGE_ASSIGN_OR_RETURN(SourcePtr mapped, MapSource::Create(std::move(source), spec));
  if (!cache_mapped) return mapped;
  return CacheInMemory(*mapped);
}

}  // namespace

Result<std::unique_ptr<BatchLoader>> BatchLoader::Create(SourcePtr source, const BatchSpec& spec,
                                                         const LoaderOptions& options,
                                                         std::vector<BatchSlot> slots) {
  RIDGE_RETURN_IF_ERROR(CheckBatch(*source, options));
  RIDGE_RETURN_IF_ERROR(CheckSlots(spec, slots));
  const int weight_input = FindWeightInput(spec, *source);
  RIDGE_ASSIGN_OR_RETURN(
      SourcePtr samples,
      MakeSamples(std::move(source), WithoutInput(spec, weight_input), options.cache_mapped));
  std::unique_ptr<BatchLoader> loader(
      new BatchLoader(std::move(samples), spec, options, std::move(slots), weight_input));
  RIDGE_RETURN_IF_ERROR(loader->Restart(options.start));
  return loader;
}

BatchLoader::BatchLoader(SourcePtr samples, BatchSpec spec, const LoaderOptions& options,
                         std::vector<BatchSlot> slots, int weight_input)
    : samples_(std::move(samples)),
      spec_(std::move(spec)),
      options_(options),
      slots_(std::move(slots)),
      weight_input_(weight_input),
      loaded_(slots_.size()) {
  std::unique_ptr<Stage> order = std::make_unique<SequenceStage>(samples_->size());
  if (options.shuffle) order = std::make_unique<ShuffleStage>(std::move(order), options.seed);
  auto batches = std::make_unique<BatchStage>(std::move(order), options.batch, options.drop_last);
  dropped_per_epoch_ = batches->dropped();
  order_ = std::make_unique<RepeatStage>(std::move(batches), options.epochs);
  prefetch_ = std::make_unique<Prefetch>(
      static_cast<int>(slots_.size()), [this](int slot) { return Fill(slot); }, options.background);
}

Status BatchLoader::CheckPosition(const Position& position) const {
  const bool inside =
      position.epoch >= 0 && position.next_batch >= 0 && position.next_batch <= batches_per_epoch();
  if (inside) return Status();
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: cannot go on at batch {} of epoch {}, an epoch has {} batches of "
                            "{}. hint: the data or the batch is not that of the run",
                            samples_->name(), position.next_batch, position.epoch,
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

Result<bool> BatchLoader::Fill(int slot) {
  if (!order_->Next(element_)) return false;
  const auto s = static_cast<size_t>(slot);
  for (size_t input = 0; input < spec_.inputs.size(); ++input) {
    if (static_cast<int>(input) == weight_input_)
      FillWeights(input, slots_[s]);
    else
      RIDGE_RETURN_IF_ERROR(FillInput(input, slots_[s]));
  }
  loaded_[s] = Describe(slot);
  return true;
}

Status BatchLoader::FillInput(size_t input, const BatchSlot& slot) {
  const bool after_weight = weight_input_ >= 0 && static_cast<int>(input) > weight_input_;
  const int field = static_cast<int>(input) - (after_weight ? 1 : 0);
  const int64_t sample_bytes = spec_.inputs[input].type.bytes();
  auto* to = static_cast<char*>(slot.inputs[input]);
  for (int64_t sample : element_.samples) {
    RIDGE_RETURN_IF_ERROR(samples_->Read(sample, field, to));
    to += sample_bytes;
  }
  const int64_t padding = options_.batch - static_cast<int64_t>(element_.samples.size());
  std::memset(to, 0, static_cast<size_t>(padding * sample_bytes));
  return Status();
}

void BatchLoader::FillWeights(size_t input, const BatchSlot& slot) {
  const auto valid = static_cast<int64_t>(element_.samples.size());
  for (int64_t i = 0; i < options_.batch; ++i)
    StoreFromDouble(spec_.inputs[input].type.dtype, slot.inputs[input], i, i < valid ? 1 : 0);
}

LoadedBatch BatchLoader::Describe(int slot) const {
  LoadedBatch batch;
  batch.slot = slot;
  batch.epoch = element_.epoch;
  batch.batch_index = element_.index;
  batch.valid_samples = static_cast<int64_t>(element_.samples.size());
  batch.last_of_epoch = element_.index + 1 == batches_per_epoch();
  batch.dropped_samples = batch.last_of_epoch ? dropped_per_epoch_ : 0;
  batch.after = batch.last_of_epoch ? Position{element_.epoch + 1, 0}
                                    : Position{element_.epoch, element_.index + 1};
  return batch;
}

BatchLoader::PlannedBytes BatchLoader::Plan(const Source& source, const BatchSpec& spec,
                                            const LoaderOptions& options) {
  // The pages that the thread touches, stack and thread-local data; 16 to 80 KiB were measured.
  constexpr int64_t kThreadBytes = 96 << 10;
  PlannedBytes planned;
  planned.source_bytes = source.resident_bytes();
  planned.own_bytes = static_cast<int64_t>(sizeof(BatchLoader) + sizeof(Prefetch)) +
                      options.batch * static_cast<int64_t>(sizeof(int64_t));
  if (options.background) planned.own_bytes += kThreadBytes;
  if (source.View(0, 0) == nullptr) planned.own_bytes += LargestFieldBytes(source);  // scratch
  if (options.cache_mapped) {
    const int weight_input = FindWeightInput(spec, source);
    for (const InputSpec& input : WithoutInput(spec, weight_input).inputs)
      planned.own_bytes += source.size() * input.type.bytes();
  }
  return planned;
}

}  // namespace ridge
