#include "ridge/data/source.h"

#include <set>

#include "ridge/data/cache.h"
#include "ridge/data/synthetic.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

int64_t FirstPixel(const Source& source, int64_t index) {
  uint8_t image[4];
  EXPECT_TRUE(source.ReadOne(index, 0, image).ok());
  return image[0];
}

std::vector<int64_t> Originals(const Source& source) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < source.size(); ++i) samples.push_back(FirstPixel(source, i) / 4);
  return samples;
}

TEST(OpenData, RefusesUnknownSpecs) {
  const auto splits = OpenData("cifar");
  EXPECT_EQ(splits.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Message(splits),
            "data 'cifar': is not a known kind of data; known are fashion-mnist, synthetic, "
            "images:DIR, masks:DIR, idx:DIR, npz:FILE, csv:FILE, tfrecord:FILES, tar:FILES, "
            "text:FILES, jsonl:FILES, parquet:FILES, audio:DIR, transcripts:FILE, video:DIR, "
            "points:DIR, yolo:DIR, coco:FILE");
  EXPECT_EQ(Message(OpenData("idx:")), "data 'idx:': names no folder; write idx:DIR");
  EXPECT_EQ(Message(OpenData("csv")), "data 'csv': names no file; write csv:FILE");
  EXPECT_EQ(OpenData("").status().code(), ErrorCode::kInvalidArgument);
}

TEST(SplitValidation, SharesEverySampleOutOnce) {
  const SourcePtr source = CountingSource(50);
  const auto split = SplitValidation(source, 0.2, /*seed=*/7);
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->train->size(), 40);
  EXPECT_EQ(split->validation->size(), 10);
  std::multiset<int64_t> all;
  for (int64_t sample : Originals(*split->train)) all.insert(sample);
  for (int64_t sample : Originals(*split->validation)) all.insert(sample);
  EXPECT_EQ(all.size(), 50U);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 50U);
}

TEST(SplitValidation, IsAFunctionOfTheSeed) {
  const SourcePtr source = CountingSource(50);
  const auto first = SplitValidation(source, 0.2, 7);
  EXPECT_EQ(Originals(*first->validation), Originals(*SplitValidation(source, 0.2, 7)->validation));
  EXPECT_NE(Originals(*first->validation), Originals(*SplitValidation(source, 0.2, 8)->validation));
}

TEST(SplitValidation, CopiesNothing) {
  const SourcePtr source = CountingSource(50);
  const auto split = SplitValidation(source, 0.2, 7);
  EXPECT_EQ(ResidentBytes({split->train, split->validation, nullptr}), source->resident_bytes());
  EXPECT_EQ(split->train->View(3, 0), source->View(Originals(*split->train)[3], 0));
}

TEST(SplitValidation, RefusesFractionsThatLeaveNothing) {
  EXPECT_EQ(Message(SplitValidation(CountingSource(4), 0, 0)),
            "counting: the validation fraction is 0, it must lie between 0 and 1");
  EXPECT_EQ(Message(SplitValidation(CountingSource(4), 0.9, 0)),
            "counting: a validation fraction of 0.9 takes 4 of 4 samples and leaves none to train "
            "on");
  EXPECT_EQ(SplitValidation(CountingSource(4), 0.01, 0)->validation->size(), 1);
}

TEST(Take, GivesTheFirstOrLastSamples) {
  const SourcePtr source = CountingSource(9);
  EXPECT_EQ(Originals(**TakeFirst(source, 2)), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(Originals(**TakeLast(source, 2)), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(Message(TakeFirst(source, 10)), "counting: cannot take 10 samples, it has 9");
  EXPECT_FALSE(TakeLast(source, 0).ok());
}

TEST(Cache, HoldsTheSameSamplesWithoutItsSource) {
  SourcePtr source = CountingSource(9);
  const SourcePtr part = *TakeLast(source, 4);
  const auto cached = CacheInMemory(*part);
  ASSERT_TRUE(cached.ok());
  EXPECT_EQ(Originals(**cached), Originals(*part));
  EXPECT_EQ((*cached)->resident_bytes(), 4 * 5);
  EXPECT_EQ((*cached)->resident_bytes(), CachedBytes(*part));
}

class SyntheticTest : public testing::Test {
 protected:
  SourcePtr Open(uint64_t seed) {
    DataOptions options;
    options.model_inputs = {{"image", {DType::kF32, {3, 5}}},
                            {"label", {DType::kI64, {}}, 10},
                            {"pixels", {DType::kU8, {7}}}};
    options.synthetic_samples = 100;
    options.seed = seed;
    return OpenData("synthetic", options)->train;
  }
  static std::vector<double> Read(const Source& source, int64_t index, int field) {
    const TensorType& type = source.fields()[static_cast<size_t>(field)].type;
    Tensor tensor(type);
    EXPECT_TRUE(source.ReadOne(index, field, tensor.mutable_data()).ok());
    std::vector<double> values;
    for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.at(i));
    return values;
  }
};

TEST_F(SyntheticTest, IsAFunctionOfSeedAndIndex) {
  EXPECT_EQ(Read(*Open(1), 42, 0), Read(*Open(1), 42, 0));
  EXPECT_NE(Read(*Open(1), 42, 0), Read(*Open(2), 42, 0));
  EXPECT_NE(Read(*Open(1), 42, 0), Read(*Open(1), 43, 0));
}

TEST_F(SyntheticTest, StaysInRange) {
  const SourcePtr source = Open(1);
  std::set<double> labels;
  for (int64_t i = 0; i < source->size(); ++i) {
    for (double value : Read(*source, i, 0)) EXPECT_TRUE(value >= 0 && value < 1) << value;
    labels.insert(Read(*source, i, 1)[0]);
  }
  EXPECT_EQ(labels.size(), 10U);
  EXPECT_EQ(*labels.begin(), 0);
  EXPECT_EQ(*labels.rbegin(), 9);
}

TEST_F(SyntheticTest, NeedsFields) {
  EXPECT_EQ(Message(OpenData("synthetic")),
            "data 'synthetic': no fields are given; the model's inputs decide them");
}

}  // namespace
}  // namespace ridge
