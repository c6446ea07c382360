// Options that change what of a model is trained, and by what: on built-in models and text graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"
#include "ridge/core/safetensors.h"
#include "ridge/train/loop/test_support.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using Tensors = std::map<std::string, Tensor>;

class Tuning : public testing::Test {
 protected:
  TrainRequest Request(const std::string& out, const std::string& model = "") {
    TrainRequest request = TinyRequest(folder_.File(out));
    if (!model.empty()) request.options.model = model;
    request.options.data = "synthetic";
    request.options.steps = 6;
    request.options.lr = 0.05;
    return request;
  }

  TrainOutcome Run(const TrainRequest& request) {
    Result<TrainOutcome> outcome = Train(request, machine_.get(), recorder_);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcome.ok() ? *outcome : TrainOutcome();
  }

  std::string Failure(const TrainRequest& request) {
    const Result<TrainOutcome> outcome = Train(request, machine_.get(), recorder_);
    EXPECT_FALSE(outcome.ok());
    return outcome.status().message();
  }

  // Of the newest checkpoint.
  Tensors Left(const std::string& out) {
    Result<Tensors> tensors = TrainedTensors(folder_.File(out), kNewestCheckpoint);
    EXPECT_TRUE(tensors.ok()) << tensors.status().message();
    return tensors.ok() ? *tensors : Tensors();
  }

  // Whether training changed the variable: both runs have one seed, `start` has made no step.
  static bool Moved(const Tensors& start, const Tensors& end, const std::string& name) {
    return !start.at(name).same_bits(end.at(name));
  }

  json ReadJson(const std::string& name) {
    const Result<std::string> text = ReadFile(folder_.File(name));
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? json::parse(*text) : json();
  }

  // A run is killed after some updates and goes on to the bits of the undisturbed one.
  void ExpectResumes(const TrainRequest& request) {
    TrainRequest whole = request;
    whole.options.out = folder_.File("whole");
    const std::string want = Run(whole).summary.parameters_sha256;
    TrainRequest part = request;
    part.options.out = folder_.File("part");
    part.preempt_after_step = 3;
    Run(part);
    TrainRequest rest;
    rest.options.out = part.options.out;
    rest.resume = true;
    rest.rehearse_s = 0;
    EXPECT_EQ(Run(rest).summary.parameters_sha256, want);
  }

  TempFolder folder_;
  TestMachine machine_;
  Recorder recorder_;
};

constexpr char kTextNet[] =
    "graph net\n"
    "  x = input f32[batch,4]\n"
    "  body.w = parameter f32[5,4] init=uniform(0.5)\n"
    "  head.w = parameter f32[3,5] init=uniform(0.5)\n"
    "  h = matmul(x, body.w, transpose_b=1)\n"
    "  a = tanh(h)\n"
    "  logits = matmul(a, head.w, transpose_b=1)\n"
    "  output logits\n";

TEST_F(Tuning, FrozenParametersKeepTheirBits) {
  TrainRequest request = Request("frozen");
  request.options.freeze = {"*"};
  request.options.trainable = {"2.*"};
  Run(request);
  TrainRequest full = Request("full");
  Run(full);
  const Tensors frozen = Left("frozen"), all = Left("full");
  EXPECT_FALSE(all.at("0.weight").same_bits(frozen.at("0.weight")));
  EXPECT_FALSE(frozen.contains("0.weight.m"));
  EXPECT_TRUE(frozen.contains("2.weight.m"));
  request = Request("shorter");
  request.options.freeze = {"0.*"};
  request.options.steps = 1;
  Run(request);
  EXPECT_FALSE(Moved(Left("shorter"), frozen, "0.weight"));
  EXPECT_TRUE(Moved(Left("shorter"), frozen, "2.weight"));
}

TEST_F(Tuning, FrozenParametersNeedNoGradientsAndNoOptimizerState) {
  const int64_t all = Run(Request("all", "mlp:hidden=256,layers=2")).summary.planned.arena_bytes;
  TrainRequest request = Request("some", "mlp:hidden=256,layers=2");
  request.options.freeze = {"0.*"};
  const int64_t some = Run(request).summary.planned.arena_bytes;
  const int64_t weight = 784 * 256 * 4;
  EXPECT_LE(some, all - 2 * weight);  // at least Adam's two averages
}

TEST_F(Tuning, AFrozenTextGraphResumes) {
  ASSERT_TRUE(WriteFileAtomically(folder_.File("net.ridge"), kTextNet).ok());
  TrainRequest request = Request("frozen", folder_.File("net.ridge"));
  request.options.loss = "cross_entropy:logits";
  request.options.freeze = {"body.*"};
  ExpectResumes(request);
  EXPECT_FALSE(Left("whole").contains("body.w.m"));
  EXPECT_TRUE(Left("whole").contains("head.w.m"));
}

TEST_F(Tuning, APatternThatMatchesNothingIsAnError) {
  TrainRequest request = Request("run");
  request.options.freeze = {"fc9.*"};
  EXPECT_EQ(Failure(request),
            "mlp: --freeze 'fc9.*' matches no parameter; the nearest are 0.weight, 0.bias, "
            "2.weight. hint: --freeze '0.*'");
  EXPECT_FALSE(std::filesystem::exists(folder_.File("run")));
}

// As in PyTorch: requires_grad = False stops no running statistic, .eval() does.
TEST_F(Tuning, StatisticsOfAFrozenBatchNormMoveUnlessTheyAreFrozenToo) {
  constexpr char kModel[] = "resnet18:channels=1,image=8,classes=3";
  TrainRequest request = Request("moving", kModel);
  request.options.freeze = {"bn1.*"};
  request.options.steps = 2;
  Run(request);
  EXPECT_FALSE(Left("moving").contains("bn1.weight.m"));
  EXPECT_NE(Left("moving").at("bn1.running_mean").at(0), 0);
  request.options.out = folder_.File("still");
  request.options.batch_norm = "frozen";
  Run(request);
  EXPECT_EQ(Left("still").at("bn1.running_mean").at(0), 0);
  EXPECT_EQ(Left("still").at("bn1.running_var").at(0), 1);
}

// Labels 0, 1 and 2 of a table, in shares of 4 : 2 : 1.
constexpr char kClasses[] = "0001012";

class ShapedLoss : public Tuning {
 protected:
  TrainRequest Table(const std::string& out) {
    std::ofstream csv(folder_.File("data.csv"));
    csv << "a,b,kind\n";
    for (int i = 0; i < 56; ++i)
      csv << (i * 7 % 11) << ',' << (i * 5 % 13) << ",c" << kClasses[i % 7] << '\n';
    csv.close();
    TrainRequest request = Request(out, "mlp:hidden=8,layers=1");
    request.options.data = "csv:" + folder_.File("data.csv");
    request.options.validation = "0.2";
    return request;
  }
};

TEST_F(ShapedLoss, EachChangesTheTrainingAndResumesToItsBits) {
  std::set<std::string> hashes = {Run(Table("plain")).summary.parameters_sha256};
  const auto vary = [&](auto set) {
    TrainRequest request = Table("varied" + std::to_string(hashes.size()));
    set(request.options);
    hashes.insert(Run(request).summary.parameters_sha256);
    for (const char* name : {"whole", "part"}) std::filesystem::remove_all(folder_.File(name));
    ExpectResumes(request);
  };
  vary([](TrainOptions& o) { o.label_smoothing = 0.1; });
  vary([](TrainOptions& o) { o.class_weights = "auto"; });
  vary([](TrainOptions& o) { o.class_weights = "1,5,0.25"; });
  vary([](TrainOptions& o) { o.focal = 2; });
  EXPECT_EQ(hashes.size(), 5u);
}

TEST_F(ShapedLoss, AutomaticWeightsAreBalancedOverTheTrainingPartAndStayWithTheRun) {
  TrainRequest request = Table("run");
  request.options.validation.clear();
  request.options.class_weights = "auto";
  Run(request);
  const json options = ReadJson("run/options.json");
  EXPECT_EQ(options["class-weights"], "auto");
  std::vector<double> weights;
  for (const std::string text : options["class-weight"]) weights.push_back(std::stod(text));
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_DOUBLE_EQ(weights[0], 56 / 3.0 / 32);
  EXPECT_DOUBLE_EQ(weights[1], 56 / 3.0 / 16);
  EXPECT_DOUBLE_EQ(weights[2], 56 / 3.0 / 8);
}

TEST_F(ShapedLoss, WeightsOfAFileNeedItOnlyAtTheStart) {
  TrainRequest request = Table("run");
  ASSERT_TRUE(WriteFileAtomically(folder_.File("weights.txt"), "1, 2\n0.5\n").ok());
  request.options.class_weights = folder_.File("weights.txt");
  request.preempt_after_step = 3;
  Run(request);
  std::filesystem::remove(folder_.File("weights.txt"));
  TrainRequest rest;
  rest.options.out = folder_.File("run");
  rest.resume = true;
  EXPECT_EQ(Run(rest).step, 6);
  EXPECT_EQ(ReadJson("run/options.json")["class-weight"], json({"1", "2", "0.5"}));
}

TEST_F(ShapedLoss, EvaluationIsThatOfThePlainLoss) {
  TrainRequest request = Table("plain");
  request.options.lr = 1e-30;  // leaves the parameters as they start
  Run(request);
  request.options.out = folder_.File("shaped");
  request.options.class_weights = "1,5,0.25";
  request.options.label_smoothing = 0.1;
  Run(request);
  const json plain = ReadJson("plain/summary.json"), shaped = ReadJson("shaped/summary.json");
  EXPECT_EQ(plain["validation_loss"], shaped["validation_loss"]);
  ASSERT_EQ(recorder_.losses.size(), 12u);
  EXPECT_GT(std::abs(recorder_.losses[0] - recorder_.losses[6]), 0.01);
}

TEST_F(ShapedLoss, WhatIsNoWeightIsRefused) {
  const std::map<std::string, std::string> errors = {
      {"1,x,1",
       "--class-weights is '1,x,1', which is neither auto, nor numbers such as 1,2.5,1, "
       "nor a file: "},
      {"1,-2,1", "--class-weights: the weight -2 is not a finite number of at least 0"},
      {"0,0,0", "--class-weights: no weight is above 0, so nothing counts"},
      {"1,2", "--class-weights has 2 numbers; mlp has 3 classes"}};
  for (const auto& [weights, message] : errors) {
    TrainRequest request = Table("run");
    request.options.class_weights = weights;
    EXPECT_THAT(Failure(request), testing::StartsWith(message));
  }
}

}  // namespace
}  // namespace ridge
