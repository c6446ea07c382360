#include "ridge/data/length_classes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ridge/data/batch_loader.h"
#include "ridge/data/length_batches.h"
#include "ridge/data/shortened.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

constexpr int64_t kWhole = 8;

// Sample i has lengths[i] tokens 100 i + 1, 100 i + 2, ...; the rest is 0.
SourcePtr Texts(const std::vector<int64_t>& lengths, bool in_front = false) {
  const auto count = static_cast<int64_t>(lengths.size());
  Tensor ids(TensorType{DType::kI64, {count, kWhole}});
  Tensor mask(TensorType{DType::kI64, {count, kWhole}});
  Tensor labels(TensorType{DType::kI64, {count}});
  for (int64_t i = 0; i < count; ++i) {
    labels.as_mutable<int64_t>()[i] = i;
    const int64_t length = lengths[static_cast<size_t>(i)];
    const int64_t begin = in_front ? kWhole - length : 0;
    for (int64_t t = 0; t < kWhole; ++t) {
      const bool shown = t >= begin && t < begin + length;
      mask.as_mutable<int64_t>()[i * kWhole + t] = shown ? 1 : 0;
      ids.as_mutable<int64_t>()[i * kWhole + t] = shown ? 100 * i + t - begin + 1 : 0;
    }
  }
  std::vector<NamedTensor> fields;
  fields.emplace_back("input_ids", std::move(ids));
  fields.emplace_back("attention_mask", std::move(mask));
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create("texts", std::move(fields));
}

const std::vector<BatchLength> kLengths = {{2, 8}, {4, 4}, {kWhole, 2}};

std::vector<int64_t> MixedLengths() {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 101; ++i) lengths.push_back(1 + (i * i) % kWhole);
  return lengths;
}

LengthClassesPtr Find(const SourcePtr& source, const std::vector<BatchLength>& lengths = kLengths) {
  auto found = FindLengthClasses(*source, lengths);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return *found;
}

TEST(LengthClasses, EachSampleIsInOneClassThatHoldsIt) {
  const std::vector<int64_t> lengths = MixedLengths();
  const LengthClassesPtr found = Find(Texts(lengths));
  std::set<uint32_t> seen;
  for (const LengthClass& of : found->classes) {
    EXPECT_TRUE(std::is_sorted(of.samples.begin(), of.samples.end()));
    for (const uint32_t sample : of.samples) {
      EXPECT_TRUE(seen.insert(sample).second);
      EXPECT_LE(lengths[sample], of.of.length);
    }
  }
  EXPECT_EQ(seen.size(), lengths.size());
  for (size_t c = 0; c + 1 < found->classes.size(); ++c)
    EXPECT_EQ(found->classes[c].samples.size() % static_cast<size_t>(kLengths[c].batch), 0u);
  EXPECT_LT(found->dropped(), kLengths.back().batch);
}

TEST(LengthClasses, MostSamplesAreInTheShortestClassThatHoldsThem) {
  const LengthClassesPtr found = Find(Texts({1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 7, 8}));
  EXPECT_EQ(found->classes[0].samples.size(), 8u);
  EXPECT_EQ(found->classes[1].samples.size(), 4u);
  EXPECT_EQ(found->classes[2].samples.size(), 2u);
}

TEST(LengthClasses, TheLongestHasABatchEvenOfShortSamples) {
  const LengthClassesPtr found = Find(Texts(std::vector<int64_t>(16, 1)));
  EXPECT_EQ(found->classes[0].batches(), 1);
  EXPECT_EQ(found->classes[2].batches(), 4);
}

TEST(LengthClasses, ASampleWithoutTokensIsShort) {
  std::vector<int64_t> lengths(8, 0);
  lengths.insert(lengths.end(), {8, 8});
  EXPECT_EQ(Find(Texts(lengths))->classes[0].samples.size(), 8u);
}

TEST(LengthClasses, ASourceWithoutMasksIsRefused) {
  EXPECT_EQ(FindLengthClasses(*CountingSource(8), kLengths).status().message(),
            "counting: the field attention_mask of a sample is 0 tokens long; batches by length "
            "need one of 8. hint: leave --bucket out");
}

TEST(LengthBatches, AnEpochHasEachSampleOnceButThoseThatAreDropped) {
  const LengthClassesPtr found = Find(Texts(MixedLengths()));
  LengthBatches order(found, /*shuffle=*/true, /*seed=*/5);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    order.Seek(epoch, 0);
    std::set<int64_t> seen;
    Element element;
    int64_t batches = 0, samples = 0;
    while (order.Next(element)) {
      EXPECT_EQ(element.index, batches++);
      samples += static_cast<int64_t>(element.samples.size());
      EXPECT_EQ(static_cast<int64_t>(element.samples.size()),
                kLengths[static_cast<size_t>(element.form)].batch);
      seen.insert(element.samples.begin(), element.samples.end());
    }
    EXPECT_EQ(batches, order.size());
    EXPECT_EQ(static_cast<int64_t>(seen.size()), samples);
    EXPECT_EQ(samples + found->dropped(), 101);
  }
}

TEST(LengthBatches, GoesOnAtAnyBatchAndShufflesAnewEachEpoch) {
  LengthBatches order(Find(Texts(MixedLengths())), /*shuffle=*/true, /*seed=*/5);
  const auto rest = [&](int64_t epoch, int64_t index) {
    order.Seek(epoch, index);
    std::vector<std::vector<int64_t>> batches;
    for (Element element; order.Next(element);) batches.push_back(element.samples);
    return batches;
  };
  const auto whole = rest(1, 0);
  for (int64_t index = 0; index < order.size(); ++index) {
    const std::vector<std::vector<int64_t>> tail(whole.begin() + index, whole.end());
    EXPECT_EQ(rest(1, index), tail);
  }
  EXPECT_NE(rest(0, 0), whole);
}

// Slots for each length, and what a loader writes there.
class Rig {
 public:
  Rig(const SourcePtr& source, int workers, const Position& start = {}) : lengths_(Find(source)) {
    std::vector<BatchForm> forms;
    for (const BatchLength& of : kLengths) {
      BatchForm form;
      form.batch = of.batch;
      form.spec.inputs = {{"label", {DType::kI64, {}}}, {"input_ids", {DType::kI64, {of.length}}}};
      for (int slot = 0; slot < 2; ++slot) {
        BatchSlot to;
        for (const InputSpec& input : form.spec.inputs) {
          memory_.push_back(Tensor(TensorType{DType::kI64, {of.batch * input.type.elements()}}));
          to.inputs.push_back(memory_.back().mutable_data());
        }
        form.slots.push_back(to);
      }
      forms.push_back(form);
    }
    forms_ = forms;
    LoaderOptions options;
    options.batch = kLengths.back().batch;
    options.epochs = 2;
    options.workers = workers;
    options.lengths = lengths_;
    options.start = start;
    auto made = BatchLoader::Create(source, forms, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    loader_ = std::move(*made);
  }

  BatchLoader& loader() { return *loader_; }
  // Form, labels, tokens.
  std::vector<int64_t> Take() {
    const auto batch = loader_->Next();
    if (batch->end()) return {};
    const BatchForm& form = forms_[static_cast<size_t>(batch->form)];
    std::vector<int64_t> all = {batch->form};
    for (size_t i = 0; i < form.spec.inputs.size(); ++i) {
      const auto* values =
          static_cast<const int64_t*>(form.slots[static_cast<size_t>(batch->slot)].inputs[i]);
      all.insert(all.end(), values, values + form.batch * form.spec.inputs[i].type.elements());
    }
    loader_->Release(batch->slot);
    return all;
  }

 private:
  LengthClassesPtr lengths_;
  std::vector<BatchForm> forms_;
  std::vector<Tensor> memory_;
  std::unique_ptr<BatchLoader> loader_;
};

TEST(LengthBatches, ALoaderGivesWholeSamplesOfTheirLengthWithAnyWorkers) {
  const std::vector<int64_t> lengths = MixedLengths();
  for (const bool in_front : {false, true}) {
    const SourcePtr source = Texts(lengths, in_front);
    Rig rig(source, /*workers=*/0), threaded(source, /*workers=*/1);
    for (auto batch = rig.Take(); !batch.empty(); batch = rig.Take()) {
      EXPECT_EQ(threaded.Take(), batch);
      const BatchLength of = kLengths[static_cast<size_t>(batch[0])];
      for (int64_t row = 0; row < of.batch; ++row) {
        const int64_t sample = batch[static_cast<size_t>(1 + row)];
        const int64_t length = lengths[static_cast<size_t>(sample)];
        const int64_t begin = in_front ? of.length - length : 0;
        for (int64_t t = 0; t < of.length; ++t) {
          const bool shown = t >= begin && t < begin + length;
          EXPECT_EQ(batch[static_cast<size_t>(1 + of.batch + row * of.length + t)],
                    shown ? 100 * sample + t - begin + 1 : 0);
        }
      }
    }
    EXPECT_TRUE(threaded.Take().empty());
  }
}

TEST(LengthBatches, ALoaderGoesOnAtItsPosition) {
  const SourcePtr source = Texts(MixedLengths());
  Rig whole(source, /*workers=*/1);
  for (int i = 0; i < 7; ++i) whole.Take();
  Rig rest(source, /*workers=*/1, whole.loader().position());
  for (auto batch = whole.Take(); !batch.empty(); batch = whole.Take())
    EXPECT_EQ(rest.Take(), batch);
  EXPECT_TRUE(rest.Take().empty());
}

TEST(LengthClasses, ABadSampleIsFollowedByOneOfItsClass) {
  const LengthClass of = {{4, 2}, {3, 5, 9}};
  EXPECT_EQ(NextOfClass(of, 3), 5u);
  EXPECT_EQ(NextOfClass(of, 9), 3u);
}

}  // namespace
}  // namespace ridge
