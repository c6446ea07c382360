#include "ridge/data/mix_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "ridge/data/augment_source.h"
#include "ridge/data/batch_loader.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

using Pixels = std::vector<uint8_t>;

constexpr int64_t kSamples = 40, kHeight = 11, kWidth = 16, kChannels = 3;
constexpr PictureShape kShape{kHeight, kWidth, kChannels, {}};

// Sample i has class i, and pixels of the level 5 * i + 10.
SourcePtr Flat() {
  Tensor images(TensorType{DType::kU8, {kSamples, kHeight, kWidth, kChannels}});
  Tensor labels(TensorType{DType::kI64, {kSamples}});
  for (int64_t i = 0; i < images.type().elements(); ++i)
    images.as_mutable<uint8_t>()[i] = static_cast<uint8_t>(5 * (i / kShape.bytes()) + 10);
  for (int64_t i = 0; i < kSamples; ++i) labels.as_mutable<int64_t>()[i] = i;
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create("flat", std::move(fields));
}

SourcePtr Mixed(const std::string& list, uint64_t seed = 7) {
  auto made = AugmentTraining(Flat(), list, seed);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

struct Sample {
  Pixels pixels = Pixels(static_cast<size_t>(kShape.bytes()));
  int64_t label = -1, other = -1;
  float weight = -1;
  bool operator==(const Sample&) const = default;
};

Sample Read(const Source& source, int64_t index, int64_t epoch) {
  Sample sample;
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  void* const fields[] = {sample.pixels.data(), &sample.label, &sample.other, &sample.weight};
  for (int field = 0; field < 4; ++field) {
    const Status status = source.Read({index, epoch}, field, scratch, fields[field]);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return sample;
}

double LevelOf(int64_t label) { return static_cast<double>(5 * label + 10); }

TEST(MixSource, PixelsAndLabelsAreMixedByTheSameWeights) {
  const SourcePtr source = Mixed("mixup:0.4");
  EXPECT_EQ(source->fields()[2].name, kOtherLabelField);
  EXPECT_EQ(source->fields()[2].classes, kSamples);
  for (int64_t i = 0; i < kSamples; ++i) {
    const Sample sample = Read(*source, i, 3);
    EXPECT_TRUE(sample.label == i || sample.other == i);
    EXPECT_GE(sample.weight, 0.5);
    EXPECT_LE(sample.weight, 1);
    const double level =
        sample.weight * LevelOf(sample.label) + (1 - sample.weight) * LevelOf(sample.other);
    for (const uint8_t pixel : sample.pixels) EXPECT_NEAR(pixel, level, 0.501) << i;
  }
}

TEST(MixSource, ABoxOfThePartnerIsThePartOfItsLabel) {
  const SourcePtr source = Mixed("cutmix:1");
  int boxes = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const Sample sample = Read(*source, i, 0);
    const auto heavier = static_cast<uint8_t>(LevelOf(sample.label));
    const auto lighter = static_cast<uint8_t>(LevelOf(sample.other));
    const auto count = std::count(sample.pixels.begin(), sample.pixels.end(), heavier);
    const auto rest = std::count(sample.pixels.begin(), sample.pixels.end(), lighter);
    if (heavier != lighter) {
      EXPECT_EQ(count + rest, kShape.bytes());
      EXPECT_NEAR(sample.weight, static_cast<double>(count) / static_cast<double>(kShape.bytes()),
                  1e-6);
    }
    boxes += rest > 0 && heavier != lighter;
  }
  EXPECT_GT(boxes, kSamples / 2);
}

TEST(MixSource, EachSampleIsThePartnerOfOneInEachEpoch) {
  const SourcePtr source = Mixed("mixup:1,cutmix:1");
  std::vector<std::set<int64_t>> partners(2);
  std::vector<int64_t> order[2];
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t i = 0; i < kSamples; ++i) {
      const Sample sample = Read(*source, i, epoch);
      const int64_t partner = sample.label == i ? sample.other : sample.label;
      partners[static_cast<size_t>(epoch)].insert(partner);
      order[epoch].push_back(partner);
    }
    EXPECT_EQ(partners[static_cast<size_t>(epoch)].size(), static_cast<size_t>(kSamples));
  }
  EXPECT_NE(order[0], order[1]);
}

TEST(MixSource, BothAreDrawnByChance) {
  const PictureShape shape = kShape;
  int cut = 0;
  for (int64_t i = 0; i < 1000; ++i) cut += DrawMix({1, 1, 5}, 0, i, shape).cuts;
  EXPECT_NEAR(cut, 500, 70);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(DrawMix({1, 0, 5}, 0, i, shape).cuts);
    EXPECT_TRUE(DrawMix({0, 1, 5}, 0, i, shape).cuts);
  }
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (8 a + 4).
TEST(MixSource, WeightsHaveTheMomentsOfTheirDistribution) {
  for (const double alpha : {0.01, 0.2, 1.0, 4.0}) {
    constexpr int kCount = 20'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kCount; ++i) {
      TransformDraws draws({3, 1, 0}, i);
      const double weight = DrawBeta(alpha, draws);
      ASSERT_TRUE(weight >= 0 && weight <= 1) << weight;
      sum += weight;
      squares += (weight - 0.5) * (weight - 0.5);
    }
    EXPECT_NEAR(sum / kCount, 0.5, 0.02) << alpha;
    EXPECT_NEAR(squares / kCount * (8 * alpha + 4), 1, 0.03) << alpha;
  }
}

// ---- batches

// Rows of two epochs from a position on, each by what it holds.
std::vector<Sample> Load(const SourcePtr& source, LoaderOptions options) {
  options.epochs = 2;
  options.seed = 3;
  const BatchSpec spec = {{{"image", {DType::kU8, {kHeight, kWidth, kChannels}}},
                           {"label", {DType::kI64, {}}},
                           {kOtherLabelField, {DType::kI64, {}}},
                           {kLabelWeightField, {DType::kF32, {}}}}};
  const auto batch = static_cast<size_t>(options.batch);
  Pixels images(batch * static_cast<size_t>(kShape.bytes()));
  std::vector<int64_t> labels(batch), others(batch);
  std::vector<float> weights(batch);
  const auto loader = BatchLoader::Create(
      source, spec, options, {{{images.data(), labels.data(), others.data(), weights.data()}}});
  EXPECT_TRUE(loader.ok()) << loader.status().message();
  std::vector<Sample> rows;
  for (auto loaded = (*loader)->Next(); loaded.ok() && !loaded->end(); loaded = (*loader)->Next()) {
    for (size_t row = 0; row < batch; ++row) {
      Sample sample;
      std::memcpy(sample.pixels.data(), images.data() + row * sample.pixels.size(),
                  sample.pixels.size());
      sample.label = labels[row];
      sample.other = others[row];
      sample.weight = weights[row];
      rows.push_back(std::move(sample));
    }
    (*loader)->Release(loaded->slot);
  }
  return rows;
}

TEST(MixSource, WorkersBatchesAndResumingChangeNoBit) {
  const SourcePtr source = Mixed("flip,crop:2,mixup:0.4,cutmix:1");
  LoaderOptions options;
  options.batch = 4;
  options.workers = 0;
  const std::vector<Sample> whole = Load(source, options);
  ASSERT_EQ(whole.size(), 2U * kSamples);
  for (const int workers : {1, 2, 4}) {
    options.workers = workers;
    EXPECT_TRUE(Load(source, options) == whole) << workers;
  }
  for (const int64_t batch : {1, 2, 10, 40}) {
    options.batch = batch;
    EXPECT_TRUE(Load(source, options) == whole) << batch;
  }
  options.batch = 4;
  for (int64_t next = 0; next <= 10; ++next) {
    options.start = {0, next};
    const std::vector<Sample> rest = Load(source, options);
    EXPECT_TRUE(
        std::equal(rest.begin(), rest.end(), whole.end() - static_cast<int64_t>(rest.size())));
    EXPECT_EQ(rest.size(), static_cast<size_t>(2 * kSamples - 4 * next));
  }
}

// ---- what is refused

TEST(MixSource, RefusesTargetsThatAreNoClasses) {
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", Tensor(TensorType{DType::kU8, {2, 4, 4}}));
  fields.emplace_back("label", Tensor(TensorType{DType::kF32, {2}}));
  EXPECT_EQ(Message(AugmentTraining(*MemorySource::Create("r", std::move(fields)), "mixup:1", 0)),
            "r: has no classes to mix: mixup and cutmix need a 'label' that is one class a sample");
}

TEST(MixSource, RefusesNumbersThatAreNone) {
  EXPECT_EQ(Message(AugmentTraining(Flat(), "mixup", 0)),
            "--augment is 'mixup': mixup has 0 numbers; its form is mixup:ALPHA");
  EXPECT_EQ(Message(AugmentTraining(Flat(), "flip,mixup:0", 0)),
            "--augment is 'flip,mixup:0': '0' in mixup:ALPHA must be a number from 0.01 to 4");
  EXPECT_EQ(Message(AugmentTraining(Flat(), "cutmix:1,mixup:1,cutmix:1", 0)),
            "--augment is 'cutmix:1,mixup:1,cutmix:1': cutmix comes twice");
}

// The bad sample is told when it is read itself, not by those that it would be mixed with.
class OneBad : public Source {
 public:
  explicit OneBad(SourcePtr source)
      : Source("one bad", source->fields(), source->size()), source_(std::move(source)) {}
  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (at.index == 5 && field == 0) return Status(ErrorCode::kInvalidData, "is bad");
    return source_->Read(at, field, scratch, out);
  }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }

 private:
  SourcePtr source_;
};

TEST(MixSource, ABadPartnerLeavesAPictureAsItIs) {
  const auto source = AugmentTraining(std::make_shared<OneBad>(Flat()), "mixup:4", 7);
  ASSERT_TRUE(source.ok());
  int bad = 0, plain = 0;
  std::vector<char> scratch(static_cast<size_t>((*source)->scratch_bytes()));
  Pixels pixels(static_cast<size_t>(kShape.bytes()));
  for (int64_t i = 0; i < kSamples; ++i) {
    const Status status = (*source)->Read({i, 0}, 0, scratch, pixels.data());
    bad += !status.ok();
    EXPECT_EQ(status.ok(), i != 5);
    const Sample sample = status.ok() ? Read(**source, i, 0) : Sample();
    if (sample.other == 5 || sample.label == 5) plain += pixels[0] == LevelOf(i);
  }
  EXPECT_EQ(bad, 1);
  EXPECT_EQ(plain, 1);
}

}  // namespace
}  // namespace ridge
