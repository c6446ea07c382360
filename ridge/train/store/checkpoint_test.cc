#include "ridge/train/store/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : checkpoints_(folder_.path(), /*keep=*/2) {
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = static_cast<float>(i);
    tensors_.parameters = {
        {"w", {DType::kF32, {25, 40}}, /*transfers=*/nullptr, 0, weights_.data()}};
    tensors_.state = {{"w.m", {DType::kF32, {25, 40}}, /*transfers=*/nullptr, 0, moments_.data()}};
  }

  CheckpointState State(int64_t step) {
    CheckpointState state;
    state.step = step;
    state.position = {2, 7};
    state.seed = UINT64_MAX;
    state.schedule = {"cosine", 0.1, 5, 100};
    state.best = BestResult{"accuracy", 0.875, 40};
    state.window.Add(1.25, 3, 8, 0.5, 0.75);
    state.since_checkpoint = {3, 1.5};
    state.data = {{"training", 43, 0xFFFFFFFFU}, {"test", 8, 7}};
    state.wall_s = 12.5;
    state.model = "mlp";
    state.options_json = "{}";
    state.kernels_sha256 = "abc";
    state.cpu = "cpu";
    state.threads = 2;
    state.ridge_version = "0.1.0";
    return state;
  }

  Status Save(int64_t step, bool best = false) {
    weights_[0] = static_cast<float>(step);
    return checkpoints_.Save(tensors_, State(step), best);
  }

  Result<LoadedCheckpoint> Load() {
    weights_.assign(weights_.size(), -1);
    moments_.assign(moments_.size(), -1);
    return checkpoints_.Load("newest", tensors_, LoadMode::kResume);
  }

  // Changes one byte in the middle of a file.
  void Damage(const std::string& file) {
    std::fstream stream(folder_.File(file), std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(stream.good()) << file;
    stream.seekg(0, std::ios::end);
    const auto middle = static_cast<std::streamoff>(stream.tellg()) / 2;
    stream.seekg(middle);
    const int byte = stream.get();
    stream.seekp(middle);
    stream.put(static_cast<char>(byte ^ 1));
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  TempFolder folder_;
  CheckpointWriter checkpoints_;
  std::vector<float> weights_ = std::vector<float>(1000);
  std::vector<float> moments_ = std::vector<float>(1000, 0.5F);
  CheckpointTensors tensors_;
};

TEST_F(CheckpointTest, WhatIsSavedIsLoaded) {
  ASSERT_TRUE(Save(10).ok());
  const auto loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const CheckpointState& state = loaded->state;
  EXPECT_EQ(state.step, 10);
  EXPECT_EQ(state.position, (Position{2, 7}));
  EXPECT_EQ(state.seed, UINT64_MAX);
  EXPECT_EQ(state.schedule.name, "cosine");
  EXPECT_EQ(state.best, (BestResult{"accuracy", 0.875, 40}));
  EXPECT_EQ(state.window, State(10).window);
  EXPECT_EQ(state.since_checkpoint, (LossSum{3, 1.5}));
  EXPECT_EQ(state.data, State(10).data);
  EXPECT_FALSE(state.owed_evaluation.has_value());
  EXPECT_EQ(state.threads, 2);
  EXPECT_EQ(weights_[0], 10);
  EXPECT_EQ(weights_[999], 999);
  EXPECT_EQ(moments_[500], 0.5F);
}

TEST_F(CheckpointTest, TheNewestIsLoaded) {
  ASSERT_TRUE(Save(9).ok());
  ASSERT_TRUE(Save(10).ok());  // greater as a number, smaller as a text
  EXPECT_EQ(Load()->state.step, 10);
}

TEST_F(CheckpointTest, KeepsSoManyAndTheBest) {
  ASSERT_TRUE(Save(1, /*best=*/true).ok());
  for (int64_t step : {2, 3, 4}) ASSERT_TRUE(Save(step).ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"best", "step-1", "step-3", "step-4"}));
  ASSERT_TRUE(Save(5, /*best=*/true).ok());
  EXPECT_EQ(std::filesystem::read_symlink(folder_.File("best")), "step-5");
  EXPECT_EQ(Names(), (std::vector<std::string>{"best", "step-4", "step-5"}));
}

TEST_F(CheckpointTest, AnEvaluationThatCameLaterAmendsIt) {
  CheckpointState state = State(10);
  state.owed_evaluation = MetricsReport{};
  state.owed_evaluation->loss = 0.25;
  state.owed_evaluation->accuracy = 0.5;
  ASSERT_TRUE(checkpoints_.Save(tensors_, state, /*best=*/false).ok());
  const CheckpointState owed = Load()->state;
  ASSERT_TRUE(owed.owed_evaluation.has_value());
  EXPECT_EQ(owed.owed_evaluation->loss, 0.25);
  EXPECT_EQ(owed.owed_evaluation->accuracy, 0.5);
  state.owed_evaluation.reset();
  state.best = BestResult{"accuracy", 0.9, 10};
  ASSERT_TRUE(checkpoints_.Amend(state, /*best=*/true).ok());
  const CheckpointState amended = Load()->state;
  EXPECT_FALSE(amended.owed_evaluation.has_value());
  EXPECT_EQ(amended.best, state.best);
  EXPECT_EQ(amended.parameters, owed.parameters);
  EXPECT_EQ(std::filesystem::read_symlink(folder_.File("best")), "step-10");
}

TEST_F(CheckpointTest, TheOneThatIsAskedForIsFound) {
  EXPECT_TRUE(checkpoints_.Steps().empty());
  EXPECT_EQ(checkpoints_.Find("newest").status().message(),
            folder_.path() + ": no checkpoint yet; train it first");
  ASSERT_TRUE(Save(5, /*best=*/true).ok());
  ASSERT_TRUE(Save(12).ok());
  EXPECT_EQ(checkpoints_.Find("newest")->path, folder_.File("step-12"));
  EXPECT_EQ(checkpoints_.Find("best")->path, folder_.File("step-5"));
  EXPECT_EQ(checkpoints_.Find("12")->path, folder_.File("step-12"));
  EXPECT_EQ(checkpoints_.Find("7").status().message(),
            folder_.path() + ": no checkpoint '7'; there are 5 (best), 12");
  EXPECT_EQ(checkpoints_.Find("last")->path, folder_.File("step-12"));
  EXPECT_EQ(checkpoints_.Find("step-5")->path, folder_.File("step-5"));
  EXPECT_EQ(checkpoints_.Find("first").status().message(),
            "--checkpoint is 'first'; it must be last, best, the number of a step, or a "
            "checkpoint's folder");
  Damage("step-12/parameters.safetensors");
  EXPECT_EQ(checkpoints_.Find("newest")->path, folder_.File("step-5"));
  EXPECT_EQ(checkpoints_.Find("12").status().code(), ErrorCode::kInvalidData);
}

TEST_F(CheckpointTest, AFolderIsReadWhereverItLies) {
  ASSERT_TRUE(Save(5).ok());
  const TempFolder elsewhere;
  std::filesystem::rename(folder_.File("step-5"), elsewhere.File("kept"));
  ASSERT_TRUE(Save(12).ok());
  const Result<LoadedCheckpoint> found = checkpoints_.Find(elsewhere.File("kept"));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->state.step, 5);
}

TEST_F(CheckpointTest, ADamagedOneFallsBackAndSaysSo) {
  for (const char* file :
       {"step-2/parameters.safetensors", "step-2/state.safetensors", "step-2/state.json"}) {
    ASSERT_TRUE(Save(1).ok());
    ASSERT_TRUE(Save(2).ok());
    Damage(file);
    const auto loaded = Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->state.step, 1) << file;
    ASSERT_EQ(loaded->warnings.size(), 1u);
    EXPECT_THAT(loaded->warnings[0], HasSubstr(file));
    EXPECT_EQ(weights_[0], 1);
  }
}

TEST_F(CheckpointTest, AMissingOrShortFileFallsBackToo) {
  ASSERT_TRUE(Save(1).ok());
  ASSERT_TRUE(Save(2).ok());
  std::filesystem::resize_file(folder_.File("step-2/state.safetensors"), 100);
  EXPECT_EQ(Load()->state.step, 1);
  std::filesystem::remove(folder_.File("step-2/state.safetensors"));
  EXPECT_EQ(Load()->state.step, 1);
}

TEST_F(CheckpointTest, AllDamagedIsAnErrorWithEveryReason) {
  ASSERT_TRUE(Save(1).ok());
  ASSERT_TRUE(Save(2).ok());
  Damage("step-1/state.json");
  Damage("step-2/parameters.safetensors");
  const auto loaded = Load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), ErrorCode::kInvalidData);
  EXPECT_THAT(loaded.status().message(), HasSubstr("no usable checkpoint"));
  EXPECT_THAT(loaded.status().message(), HasSubstr("step-1/state.json"));
  EXPECT_THAT(loaded.status().message(), HasSubstr("step-2/parameters.safetensors: damaged"));
}

TEST_F(CheckpointTest, ADamagedOneIsReplacedWhenItsStepComesAgain) {
  ASSERT_TRUE(Save(1).ok());
  ASSERT_TRUE(Save(2).ok());
  Damage("step-2/parameters.safetensors");
  ASSERT_TRUE(Save(2).ok());
  EXPECT_EQ(Load()->state.step, 2);
  EXPECT_EQ(Names(), (std::vector<std::string>{"step-1", "step-2"}));
}

TEST_F(CheckpointTest, AFullDiskLeavesTheOlderOneAndNoRest) {
  ASSERT_TRUE(Save(1).ok());
  for (rlim_t bytes : {0, 10, 2000, 4050}) {  // in the header, in the tensor, near its end
    const FileSizeLimit limit(bytes);
    const Status status = Save(2);
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << bytes;
    EXPECT_THAT(status.message(), HasSubstr("File too large")) << bytes;
    EXPECT_EQ(Names(), (std::vector<std::string>{"step-1"})) << bytes;
  }
  EXPECT_EQ(Load()->state.step, 1);
  ASSERT_TRUE(Save(2).ok());
  EXPECT_EQ(Load()->state.step, 2);
}

TEST_F(CheckpointTest, AFolderThatCannotBeWrittenIsUnavailable) {
  std::ofstream(folder_.File("file")) << "not a folder";
  const CheckpointWriter checkpoints(folder_.File("file"), 1);
  EXPECT_EQ(checkpoints.Save(tensors_, State(1), false).code(), ErrorCode::kUnavailable);
}

TEST_F(CheckpointTest, RestsOfAKilledProcessAreIgnoredAndRemoved) {
  ASSERT_TRUE(Save(1).ok());
  std::filesystem::create_directories(folder_.File("step-2.tmp-77"));
  std::filesystem::create_directories(folder_.File("step-1.old-77"));
  EXPECT_EQ(Load()->state.step, 1);
  checkpoints_.RemoveTemporaries();
  EXPECT_EQ(Names(), (std::vector<std::string>{"step-1"}));
}

TEST_F(CheckpointTest, AnotherModelsCheckpointIsNotLoaded) {
  ASSERT_TRUE(Save(1).ok());
  tensors_.parameters[0].type = {DType::kF32, {40, 25}};
  EXPECT_THAT(Load().status().message(), HasSubstr("'w' is f32[25,40]; the run has f32[40,25]"));
  tensors_.parameters[0] = {
      "v", {DType::kF32, {25, 40}}, /*transfers=*/nullptr, 0, weights_.data()};
  EXPECT_THAT(Load().status().message(), HasSubstr("no 'v'"));
}

}  // namespace
}  // namespace ridge
