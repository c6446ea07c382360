#include "ridge/train/job/job_data.h"

#include <gtest/gtest.h>

#include "ridge/core/test_folder.h"
#include "ridge/core/threads.h"
#include "ridge/data/npz.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

TEST(JobDataTest, SyntheticTokensCoverTheVocabulary) {
  const Result<Graph> gpt = BuildModel("gpt:vocab=40,context=16,hidden=8,layers=1,heads=1");
  ASSERT_TRUE(gpt.ok());
  const Result<ForwardInfo> facts = InspectForward(*gpt);
  ASSERT_TRUE(facts.ok());
  const Result<DataSplits> data = OpenData("synthetic", DataOptionsOf(*gpt, *facts, /*seed=*/1));
  ASSERT_TRUE(data.ok());
  std::vector<int64_t> tokens(16);
  int64_t largest = 0;
  for (int64_t sample = 0; sample < 50; ++sample) {
    for (int field = 0; field < 2; ++field) {
      ASSERT_TRUE(data->train->ReadOne(sample, field, tokens.data()).ok());
      for (int64_t token : tokens) {
        ASSERT_GE(token, 0);
        ASSERT_LT(token, 40);
        largest = std::max(largest, token);
      }
    }
  }
  EXPECT_EQ(largest, 39);
}

// 40 pictures u8[28,28] and their test set.
std::string WritePictures(const TempFolder& folder) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const char* name : {"x_train", "x_test"}) {
    Tensor pixels(TensorType{DType::kU8, {40, 28, 28}});
    for (int64_t i = 0; i < pixels.type().elements(); ++i)
      pixels.as_mutable<uint8_t>()[i] = static_cast<uint8_t>(i * 31 % 251);
    arrays.emplace_back(name, std::move(pixels));
  }
  for (const char* name : {"y_train", "y_test"})
    arrays.emplace_back(name, Tensor(TensorType{DType::kI64, {40}}));
  EXPECT_TRUE(WriteNpz(folder.File("data.npz"), arrays).ok());
  return "npz:" + folder.File("data.npz");
}

std::vector<uint8_t> ImageOf(const Source& source, SampleAt at) {
  const int field = source.FindField("x");
  std::vector<uint8_t> pixels(28 * 28);
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  EXPECT_TRUE(source.Read(at, field, scratch, pixels.data()).ok());
  return pixels;
}

// Augmented pictures are read by workers; those of a set in memory need none.
TEST(JobDataTest, WorkersAreFittedToTheMemoryOfTheRun) {
  const TempFolder folder;
  const Result<Graph> cnn = BuildModel("cnn");
  const Result<ForwardInfo> facts = InspectForward(*cnn);
  TrainOptions options;
  options.data = WritePictures(folder);
  options.batch = 8;
  options.augment = "blur";
  const auto open = [&] {
    Result<JobData> data = OpenJobData(options, *cnn, *facts);
    EXPECT_TRUE(data.ok()) << data.status().message();
    return std::move(*data);
  };
  const JobData plenty = open();
  EXPECT_EQ(plenty.workers, AvailableThreads());
  EXPECT_GT(plenty.train_read_s, 0);
  options.fit_bytes = 8 * 60'000;  // one worker takes more than 30,000
  const JobData tight = open();
  EXPECT_EQ(tight.pipeline_cap_bytes, 60'000);
  EXPECT_EQ(tight.workers, 1);
  options.workers = "3";
  EXPECT_EQ(open().workers, 3);
  EXPECT_EQ(open().pipeline_cap_bytes, 0);
}

TEST(JobDataTest, OnlyTheTrainingPartIsAugmented) {
  const TempFolder folder;
  const Result<Graph> cnn = BuildModel("cnn");
  const Result<ForwardInfo> facts = InspectForward(*cnn);
  TrainOptions options;
  options.data = WritePictures(folder);
  options.batch = 8;
  options.validation = "0.2";
  const Result<JobData> plain = OpenJobData(options, *cnn, *facts);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  options.augment = "crop:4";
  const Result<JobData> data = OpenJobData(options, *cnn, *facts);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_GT(PlannedDataBytes(*data, 8), PlannedDataBytes(*plain, 8));
  for (int64_t epoch : {0, 1}) {
    const SampleAt at{3, epoch};
    EXPECT_NE(ImageOf(*data->train, at), ImageOf(*plain->train, at));
    EXPECT_EQ(ImageOf(*data->validation, at), ImageOf(*plain->validation, at));
    EXPECT_EQ(ImageOf(*data->test, at), ImageOf(*plain->test, at));
  }
  EXPECT_NE(ImageOf(*data->train, {3, 0}), ImageOf(*data->train, {3, 1}));
  const Result<EvalData> eval = OpenEvalData(options, *cnn, *facts);
  EXPECT_EQ(ImageOf(*eval->source, {3, 0}), ImageOf(*plain->test, {3, 0}));
}

}  // namespace
}  // namespace ridge
