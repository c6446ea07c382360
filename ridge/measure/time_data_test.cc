#include "ridge/measure/time_data.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"
#include "ridge/data/augment_source.h"

namespace ridge {
namespace {

class TimeDataTest : public testing::Test {
 protected:
  SourcePtr Pictures(int count) {
    const std::string golden =
        std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/pictures/420.jpg";
    std::filesystem::create_directories(folder_.File("all"));
    for (int i = 0; i < count; ++i)
      folder_.Write("all/" + std::to_string(i) + ".jpg", *ReadFile(golden));
    const auto splits = OpenData("images:" + folder_.path() + ",size=48,normalize=imagenet");
    EXPECT_TRUE(splits.ok()) << splits.status().message();
    return splits->train;
  }

  TempFolder folder_;
};

DataBench Bench(const SourcePtr& source, int workers) {
  DataBenchOptions options;
  options.workers = workers;
  options.seconds = 0;
  const auto bench = BenchData(source, options);
  EXPECT_TRUE(bench.ok()) << bench.status().message();
  return *bench;
}

TEST_F(TimeDataTest, TimesTheStagesThatThereAre) {
  const SourcePtr pictures = Pictures(40);
  const DataBench plain = Bench(pictures, 2);
  EXPECT_EQ(plain.samples, 40);
  EXPECT_EQ(plain.workers, 2);
  for (const InputStage stage : {InputStage::kRead, InputStage::kDecode, InputStage::kResize,
                                 InputStage::kNormalize, InputStage::kCollate})
    EXPECT_GT(plain.one_core.At(stage), 0) << InputStageName(stage);
  EXPECT_EQ(plain.one_core.At(InputStage::kAugment), 0);
  const DataBench augmented = Bench(*AugmentTraining(pictures, "rrc,blur:2:1:2", 0), 2);
  EXPECT_GT(augmented.one_core.At(InputStage::kAugment), 0);
}

// One worker does nothing else than the stages.
TEST_F(TimeDataTest, TheStagesOfOneCoreFillItsTime) {
  const DataBench bench = Bench(Pictures(64), 1);
  EXPECT_GE(bench.one_core.samples, bench.samples);
  const double stages_s = bench.one_core.total() / static_cast<double>(bench.one_core.samples);
  EXPECT_LT(stages_s, 1.05 / bench.one_core_samples_s);
  EXPECT_EQ(bench.samples_s, bench.one_core_samples_s);
}

TEST_F(TimeDataTest, DataInMemoryHaveOneWorkerAndNoFiles) {
  const auto splits = OpenData("synthetic", [] {
    DataOptions options;
    options.model_inputs = {{"image", {DType::kU8, {8, 8}}}, {"label", {DType::kI64, {}}, 3}};
    options.synthetic_samples = 100;
    return options;
  }());
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const DataBench bench = Bench(splits->train, 4);
  EXPECT_EQ(bench.samples, 100);
  EXPECT_EQ(bench.workers, 1);
  EXPECT_EQ(bench.one_core.At(InputStage::kRead), 0);
  EXPECT_GT(bench.one_core.At(InputStage::kNormalize), 0);
}

}  // namespace
}  // namespace ridge
