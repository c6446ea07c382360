#include "ridge/data/batch_loader.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include "ridge/data/test_files.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Counted for AllocatesNothingAfterTheFirstBatches.
void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ridge {
namespace {

// Two slots for a spec, and a loader on them.
class Rig {
 public:
  Rig(SourcePtr source, const BatchSpec& spec, const LoaderOptions& options, int slots = 2)
      : spec_(spec), batch_(options.batch) {
    for (int i = 0; i < slots; ++i) {
      BatchSlot slot;
      for (const InputSpec& input : spec.inputs) {
        Dims dims = input.type.dims;
        dims.insert(dims.begin(), options.batch);
        memory_.push_back(Tensor(TensorType{input.type.dtype, dims}));
        std::memset(memory_.back().mutable_data(), 0x7F,
                    static_cast<size_t>(memory_.back().bytes()));
        slot.inputs.push_back(memory_.back().mutable_data());
      }
      slots_.push_back(slot);
    }
    auto made = BatchLoader::Create(std::move(source), spec, options, slots_);
    status_ = made.status();
    if (made.ok()) loader_ = std::move(*made);
  }

  const Status& status() const { return status_; }
  BatchLoader& loader() { return *loader_; }

  double Value(int slot, int input, int64_t index) const {
    const auto i = static_cast<size_t>(input);
    return LoadAsDouble(spec_.inputs[i].type.dtype, slots_[static_cast<size_t>(slot)].inputs[i],
                        index);
  }

  // Everything of the next batch as numbers: epoch, index, valid samples, then the inputs.  Empty
  // at the end.
  std::vector<double> Take() {
    const auto batch = loader_->Next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || batch->end()) return {};
    std::vector<double> all = {static_cast<double>(batch->epoch),
                               static_cast<double>(batch->batch_index),
                               static_cast<double>(batch->valid_samples)};
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      for (int64_t j = 0; j < batch_ * spec_.inputs[i].type.elements(); ++j)
        all.push_back(Value(batch->slot, static_cast<int>(i), j));
    }
    loader_->Release(batch->slot);
    return all;
  }
  std::vector<std::vector<double>> TakeAll() {
    std::vector<std::vector<double>> batches;
    for (auto batch = Take(); !batch.empty(); batch = Take()) batches.push_back(batch);
    return batches;
  }

 private:
  BatchSpec spec_;
  int64_t batch_;
  std::vector<Tensor> memory_;
  std::vector<BatchSlot> slots_;
  Status status_;
  std::unique_ptr<BatchLoader> loader_;
};

BatchSpec Spec() { return {{{"image", {DType::kF32, {1, 2, 2}}}, {"label", {DType::kI64, {}}}}}; }
BatchSpec WeightedSpec() {
  return {{{"image", {DType::kF32, {4}}},
           {"ridge.weight", {DType::kF32, {}}},
           {"label", {DType::kI64, {}}}}};
}

LoaderOptions Options(int64_t batch, int64_t epochs) {
  LoaderOptions options;
  options.batch = batch;
  options.epochs = epochs;
  options.seed = 3;
  return options;
}

TEST(BatchLoader, FillsInputsInOrderWithoutShuffling) {
  LoaderOptions options = Options(3, 1);
  options.shuffle = false;
  Rig rig(CountingSource(7), Spec(), options);
  const auto batches = rig.TakeAll();
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[1][2], 3);                   // valid samples
  EXPECT_EQ(batches[1][3 + 4], 4 * 4 / 255.0F);  // first pixel of sample 4
  EXPECT_EQ(batches[1][3 + 12 + 2], 5);          // label of sample 5
}

// Another source's samples, as if decoded: through the scratch, nothing in place.
class SlowSource : public Source {
 public:
  explicit SlowSource(SourcePtr source)
      : Source(source->name(), source->fields(), source->size()), source_(std::move(source)) {}
  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    RIDGE_RETURN_IF_ERROR(source_->Read(at, field, {}, scratch.data()));
    std::this_thread::yield();
    const int64_t bytes = fields()[static_cast<size_t>(field)].type.bytes();
    std::memcpy(out, scratch.data(), static_cast<size_t>(bytes));
    return Status();
  }
  int64_t scratch_bytes() const override { return 5; }
  bool reads_slowly() const override { return true; }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }

 private:
  SourcePtr source_;
};

SourcePtr Slowly(SourcePtr source) { return std::make_shared<SlowSource>(std::move(source)); }

TEST(BatchLoader, GivesTheSameBatchesWithAnyNumberOfWorkers) {
  for (bool drop_last : {true, false}) {
    LoaderOptions options = Options(4, 5);
    options.drop_last = drop_last;
    options.workers = 0;
    Rig plain(CountingSource(23), WeightedSpec(), options);
    options.cache_mapped = true;
    Rig cached(Slowly(CountingSource(23)), WeightedSpec(), options, /*slots=*/3);
    const auto expected = plain.TakeAll();
    EXPECT_EQ(expected.size(), drop_last ? 25U : 30U);
    EXPECT_EQ(cached.TakeAll(), expected);
    options.cache_mapped = false;
    for (int workers : {0, 1, 2, 7}) {
      options.workers = workers;
      Rig whole(CountingSource(23), WeightedSpec(), options);
      EXPECT_EQ(whole.TakeAll(), expected) << workers;
      Rig by_sample(Slowly(CountingSource(23)), WeightedSpec(), options, /*slots=*/3);
      EXPECT_EQ(by_sample.TakeAll(), expected) << workers;
    }
  }
}

TEST(BatchLoader, ResumesAfterEveryBatchWithTheSameRest) {
  for (int workers : {0, 1, 3}) {
    LoaderOptions options = Options(4, 3);
    options.workers = workers;
    Rig whole(CountingSource(23), Spec(), options);
    const auto all = whole.TakeAll();
    ASSERT_EQ(all.size(), 15U);
    Rig first(Slowly(CountingSource(23)), Spec(), options);
    for (size_t taken = 0; taken <= all.size(); ++taken) {
      if (taken > 0) first.Take();
      options.start = first.loader().position();  // not that of the batches loaded ahead
      Rig rest(Slowly(CountingSource(23)), Spec(), options);
      EXPECT_EQ(rest.TakeAll(), decltype(all)(all.begin() + static_cast<int64_t>(taken), all.end()))
          << taken;
    }
  }
}

TEST(BatchLoader, SavesThePositionOfConsumedBatchesOnly) {
  Rig rig(CountingSource(20), Spec(), Options(4, RepeatStage::kForever));
  BatchLoader& loader = rig.loader();
  EXPECT_EQ(loader.position(), (Position{0, 0}));
  const auto first = loader.Next();
  EXPECT_EQ(loader.position(), (Position{0, 0}));  // taken, not yet consumed
  EXPECT_EQ(first->after, (Position{0, 1}));
  loader.Release(first->slot);
  EXPECT_EQ(loader.position(), (Position{0, 1}));
  for (int i = 0; i < 4; ++i) rig.Take();
  EXPECT_EQ(loader.position(), (Position{1, 0}));
}

TEST(BatchLoader, GoesOnAfterAStopAsIfThereWereNone) {
  Rig whole(CountingSource(23), Spec(), Options(4, 3));
  Rig stopped(CountingSource(23), Spec(), Options(4, 3));
  for (const auto& batch : whole.TakeAll()) {
    stopped.loader().Stop();
    ASSERT_TRUE(stopped.loader().Restart(stopped.loader().position()).ok());
    EXPECT_EQ(stopped.Take(), batch);
  }
  EXPECT_TRUE(stopped.Take().empty());
}

TEST(BatchLoader, TellsWhatAnEpochDrops) {
  Rig rig(CountingSource(23), Spec(), Options(4, 1));
  EXPECT_EQ(rig.loader().batches_per_epoch(), 5);
  EXPECT_EQ(rig.loader().dropped_per_epoch(), 3);
  for (int i = 0; i < 5; ++i) {
    const auto batch = rig.loader().Next();
    EXPECT_EQ(batch->last_of_epoch, i == 4);
    EXPECT_EQ(batch->dropped_samples, i == 4 ? 3 : 0);
    rig.loader().Release(batch->slot);
  }
  EXPECT_TRUE(rig.loader().Next()->end());
}

TEST(BatchLoader, PadsWithZerosOfWeightZero) {
  LoaderOptions options = Options(4, 1);
  options.drop_last = false;
  options.shuffle = false;
  Rig rig(CountingSource(6), WeightedSpec(), options);
  rig.Take();
  const auto batch = rig.loader().Next();
  EXPECT_EQ(batch->valid_samples, 2);
  EXPECT_EQ(batch->dropped_samples, 0);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rig.Value(batch->slot, 1, i), i < 2 ? 1 : 0);
    EXPECT_EQ(rig.Value(batch->slot, 2, i), i < 2 ? 4 + static_cast<double>(i) : 0);
    EXPECT_EQ(rig.Value(batch->slot, 0, 4 * i),
              i < 2 ? (16 + 4 * static_cast<float>(i)) / 255.0F : 0);
  }
}

TEST(BatchLoader, CountsEverySampleOnceWhenItPads) {
  LoaderOptions options = Options(4, 1);
  options.drop_last = false;
  Rig rig(CountingSource(23), WeightedSpec(), options);
  double weight = 0;
  for (const auto& batch : rig.TakeAll()) {
    for (size_t i = 0; i < 4; ++i) weight += batch[3 + 16 + i];
  }
  EXPECT_EQ(weight, 23);
}

TEST(BatchLoader, TakesWeightsOfTheDataWhenThereAreAny) {
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", Tensor(TensorType{DType::kU8, {3, 2, 2}}));
  fields.emplace_back("label", Tensor(TensorType{DType::kU8, {3}}));
  fields.emplace_back("ridge.weight", Tensor::FromFloats({3}, std::vector<float>{0.5F, 2, 4}));
  LoaderOptions options = Options(2, 1);
  options.shuffle = false;
  options.drop_last = false;
  Rig rig(*MemorySource::Create("weighted", std::move(fields)), WeightedSpec(), options);
  const auto batches = rig.TakeAll();
  EXPECT_EQ(batches[0][3 + 8], 0.5);
  EXPECT_EQ(batches[1][3 + 8], 4);
  EXPECT_EQ(batches[1][3 + 9], 0);
}

TEST(BatchLoader, RefusesBatchesThatTheDataCannotFill) {
  Rig large(CountingSource(10), Spec(), Options(11, 1));
  EXPECT_EQ(large.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(large.status().message(),
            "batch: is 11, but counting has 10 samples. hint: --batch 10 at most");
  Rig none(CountingSource(10), Spec(), Options(0, 1));
  EXPECT_EQ(none.status().message(), "batch: is 0, must be at least 1");
  LoaderOptions padded = Options(16, 1);
  padded.drop_last = false;
  Rig evaluation(CountingSource(10), Spec(), padded);
  EXPECT_EQ(evaluation.TakeAll().size(), 1U);
}

TEST(BatchLoader, RefusesAPositionOutsideTheData) {
  LoaderOptions options = Options(4, 3);
  options.start = {2, 6};
  Rig rig(CountingSource(20), Spec(), options);
  EXPECT_EQ(rig.status().code(), ErrorCode::kInvalidData);
  EXPECT_EQ(rig.status().message(),
            "counting: cannot go on at batch 6 of epoch 2, an epoch has 5 batches of 4. hint: the "
            "data or the batch is not that of the run");
  options.start = {1, 5};  // the end of an epoch is the start of the next
  Rig at_end(CountingSource(20), Spec(), options);
  EXPECT_EQ(at_end.loader().position(), (Position{2, 0}));
}

TEST(BatchLoader, RefusesInputsThatTheDataLacks) {
  Rig rig(CountingSource(10), {{{"image", {DType::kF32, {5}}}}}, Options(2, 1));
  EXPECT_EQ(rig.status().code(), ErrorCode::kInvalidData);
}

// A source whose samples from the fifth on cannot be read.
class BrokenSource : public Source {
 public:
  explicit BrokenSource(bool throws)
      : Source("broken", {{"label", {DType::kI64, {}}}}, 10), throws_(throws) {}
  Status Read(SampleAt at, int, std::span<char>, void* out) const override {
    if (at.index == 4 && throws_) throw std::runtime_error("boom");
    if (at.index >= 4)
      return Status(ErrorCode::kInvalidData, fmt::format("broken: sample {} is damaged", at.index));
    std::memcpy(out, &at.index, sizeof(at.index));
    return Status();
  }
  bool reads_slowly() const override { return true; }
  int64_t resident_bytes() const override { return 0; }

 private:
  bool throws_;
};

TEST(BatchLoader, ReportsErrorsOfReadingAfterTheBatchesBefore) {
  for (int workers : {0, 1, 3}) {
    LoaderOptions options = Options(2, 1);
    options.shuffle = false;
    options.workers = workers;
    const BatchSpec spec{{{"label", {DType::kI64, {}}}}};
    Rig failing(std::make_shared<BrokenSource>(/*throws=*/false), spec, options);
    failing.Take();
    failing.Take();
    EXPECT_EQ(failing.loader().Next().status().message(), "broken: sample 4 is damaged");
    Rig throwing(std::make_shared<BrokenSource>(/*throws=*/true), spec, options);
    throwing.Take();
    throwing.Take();
    EXPECT_EQ(throwing.loader().Next().status().message(), "data: while reading samples: boom");
  }
}

TEST(BatchLoader, EndsInTheMiddleAtAnyTime) {
  for (int taken = 0; taken < 4; ++taken) {
    for (int round = 0; round < 20; ++round) {
      Rig rig(CountingSource(23), Spec(), Options(4, RepeatStage::kForever));
      for (int i = 0; i < taken; ++i) rig.Take();
      if (round % 2 == 1) continue;
      EXPECT_TRUE(rig.loader().Next().ok());  // this slot is still held
    }
  }
}

TEST(BatchLoader, AllocatesNothingAfterTheFirstBatches) {
  for (int workers : {0, 1, 3}) {
    LoaderOptions options = Options(8, RepeatStage::kForever);
    options.workers = workers;
    Rig rig(workers == 3 ? Slowly(CountingSource(50)) : CountingSource(50), WeightedSpec(),
            options);
    const auto step = [&] {
      const auto batch = rig.loader().Next();
      EXPECT_TRUE(batch.ok());
      rig.loader().Release(batch->slot);
    };
    for (int i = 0; i < 4; ++i) step();
    const int64_t before = allocations;
    for (int i = 0; i < 100; ++i) step();
    EXPECT_EQ(allocations, before);
  }
}

TEST(BatchLoader, PlansItsBytes) {
  const SourcePtr source = CountingSource(50);
  LoaderOptions options = Options(8, 1);
  const auto plain = BatchLoader::Plan(*source, WeightedSpec(), options);
  EXPECT_EQ(plain.source_bytes, 50 * 5);
  options.cache_mapped = true;
  const auto cached = BatchLoader::Plan(*source, WeightedSpec(), options);
  EXPECT_EQ(cached.own_bytes - plain.own_bytes, 50 * (4 * 4 + 8));
}

// The rows of all shares of each batch, one behind the other: what a loader of all rows fills.
void ExpectSharesOfTheBatches(const SourcePtr& source, const LoaderOptions& options, int ranks,
                              int64_t slices) {
  Rig whole(source, WeightedSpec(), options);
  std::vector<std::unique_ptr<Rig>> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    LoaderOptions own = options;
    own.share = SliceShare{slices, rank, ranks};
    shares.push_back(std::make_unique<Rig>(source, WeightedSpec(), own));
  }
  const int64_t slice = options.batch / slices;
  for (std::vector<double> batch = whole.Take(); !batch.empty(); batch = whole.Take()) {
    int64_t valid = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const SliceRange owned = SliceShare{slices, rank, ranks}.owned();
      const std::vector<double> part = shares[static_cast<size_t>(rank)]->Take();
      ASSERT_EQ(part.size(), batch.size());
      valid += static_cast<int64_t>(part[2]);
      size_t input_at = 3;
      for (const int64_t width : {4, 1, 1}) {
        for (int64_t i = 0; i < owned.count() * slice * width; ++i) {
          EXPECT_EQ(part[input_at + static_cast<size_t>(i)],
                    batch[input_at + static_cast<size_t>(owned.first * slice * width + i)]);
        }
        input_at += static_cast<size_t>(options.batch * width);
      }
    }
    EXPECT_EQ(valid, static_cast<int64_t>(batch[2]));
  }
}

TEST(BatchLoader, SharesHaveTheRowsOfTheBatches) {
  LoaderOptions options = Options(8, 2);
  ExpectSharesOfTheBatches(CountingSource(21), options, /*ranks=*/3, /*slices=*/4);
  options.drop_last = false;  // the last batch has 5 samples
  ExpectSharesOfTheBatches(CountingSource(21), options, /*ranks=*/3, /*slices=*/8);
  options.workers = 3;
  ExpectSharesOfTheBatches(std::make_shared<SlowSource>(CountingSource(21)), options, 2, 4);
}

TEST(BatchLoader, AWholeInputHasAllRowsOfAShare) {
  for (const bool slow : {false, true}) {
    SourcePtr source = CountingSource(21);
    if (slow) source = std::make_shared<SlowSource>(source);
    LoaderOptions options = Options(8, 1);
    options.workers = 2;
    Rig whole(source, Spec(), options);
    options.share = SliceShare{4, 1, 3};  // rows 2 and 3
    BatchSpec spec = Spec();
    spec.inputs.push_back({"ridge.whole.label", {DType::kI64, {}}, "label", true});
    Rig share(source, spec, options);
    for (std::vector<double> batch = whole.Take(); !batch.empty(); batch = whole.Take()) {
      const std::vector<double> part = share.Take();
      const size_t label = 3 + 8 * 4, all = label + 8;
      for (size_t row = 0; row < 8; ++row) EXPECT_EQ(part[all + row], batch[label + row]);
      for (size_t row = 0; row < 2; ++row) EXPECT_EQ(part[label + row], batch[label + 2 + row]);
    }
  }
}

}  // namespace
}  // namespace ridge
