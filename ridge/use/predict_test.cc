// EvaluateRun and Predict on small runs.
#include "ridge/use/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ridge/train/loop/evaluate_run.h"
#include "ridge/train/loop/test_support.h"

namespace ridge {
namespace {

using testing::HasSubstr;

class PredictTest : public testing::Test {
 protected:
  PredictTest() {
    std::ofstream csv(folder_.File("data.csv"));
    for (int s = 0; s < 43; ++s) {
      for (int i = 0; i < 12; ++i) csv << ((s * 7 + i * 13) % 29) / 29.0 << ',';
      csv << s % 3 << '\n';
    }
  }

  void TrainRun() {
    TrainRequest request = TinyRequest(folder_.File("run"));
    request.options.data = "csv:" + folder_.File("data.csv") + ",standardize=no";
    Recorder recorder;
    const Result<TrainOutcome> outcome = Train(request, machine_.get(), recorder);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  }

  Tensor Images(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count * 12));
    for (int64_t s = 0; s < count; ++s) {
      for (int64_t i = 0; i < 12; ++i)
        values[static_cast<size_t>(s * 12 + i)] = static_cast<float>((s * 7 + i * 13) % 29) / 29.0F;
    }
    return Tensor::FromFloats({count, 12}, values);
  }

  TempFolder folder_;
  TestMachine machine_;
};

TEST_F(PredictTest, EvaluationCountsEverySampleOnce) {
  TrainRun();
  const Result<EvalOutcome> eval =
      EvaluateRun({folder_.File("run"), "csv:" + folder_.File("data.csv")}, machine_.get());
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  EXPECT_EQ(eval->result.samples, 43);  // 5 batches of 8 and one padded
  EXPECT_EQ(eval->step, 5);

  // The same by prediction: mean of -log softmax(logits)[label], and the share of hits.
  const Result<Prediction> predicted =
      Predict({.model = folder_.File("run"), .dims = {}, .inputs = {{"image", Images(43)}}},
              machine_.get());
  ASSERT_TRUE(predicted.ok()) << predicted.status().message();
  ASSERT_EQ(predicted->outputs.size(), 1u);  // the loss needs labels
  EXPECT_EQ(predicted->outputs[0].first, "logits");
  const Tensor& logits = predicted->outputs[0].second;
  double loss = 0, hits = 0;
  for (int64_t s = 0; s < 43; ++s) {
    double sum = 0;
    int64_t best = 0;
    for (int64_t c = 0; c < 3; ++c) {
      sum += std::exp(logits.at(s * 3 + c));
      if (logits.at(s * 3 + c) > logits.at(s * 3 + best)) best = c;
    }
    loss += std::log(sum) - logits.at(s * 3 + s % 3);
    hits += best == s % 3 ? 1 : 0;
  }
  EXPECT_NEAR(eval->result.loss, loss / 43, 1e-6);
  EXPECT_DOUBLE_EQ(*eval->result.accuracy, hits / 43);
}

TEST_F(PredictTest, EvaluationWithoutARunOrCheckpointSaysSo) {
  const Result<EvalOutcome> eval = EvaluateRun({folder_.path(), "synthetic"}, machine_.get());
  ASSERT_FALSE(eval.ok());
  EXPECT_EQ(eval.status().code(), ErrorCode::kInvalidData);
  EXPECT_THAT(eval.status().message(), HasSubstr("holds no run: there is no options.json"));
}

TEST_F(PredictTest, PredictionTakesOtherNumberTypesAndRefusesOtherShapes) {
  const std::string model = "mlp:hidden=8,layers=1,inputs=12,classes=3";
  Tensor wide({DType::kF64, {2, 12}});
  EXPECT_TRUE(
      Predict({.model = model, .dims = {}, .inputs = {{"image", wide}}}, machine_.get()).ok());
  Tensor labels({DType::kI32, {2}});
  const Result<Prediction> with_loss = Predict(
      {.model = model, .dims = {}, .inputs = {{"image", wide}, {"label", labels}}}, machine_.get());
  ASSERT_TRUE(with_loss.ok()) << with_loss.status().message();
  EXPECT_EQ(with_loss->outputs.size(), 2u);
  const auto message = [&](const std::string& name, TensorType type) {
    return Predict({.model = model, .dims = {}, .inputs = {{name, Tensor(type)}}}, machine_.get())
        .status()
        .message();
  };
  EXPECT_EQ(message("image", {DType::kF32, {2, 11}}),
            "run: input 'image' is f32[2,11]; the graph takes f32[2,12]");
  EXPECT_EQ(message("picture", {DType::kF32, {2, 12}}),
            "run: 'mlp' has no input 'picture' (its inputs: image, label)");
  EXPECT_EQ(message("label", {DType::kI64, {2}}),
            "mlp: every output needs an input that is not given: image");
}

}  // namespace
}  // namespace ridge
