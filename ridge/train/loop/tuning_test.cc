// Options that change what of a model is trained, and by what: on built-in models and text graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"
#include "ridge/core/safetensors.h"
#include "ridge/train/load/trained_values.h"
#include "ridge/train/loop/evaluate_run.h"
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
  TrainRequest request = Request("moving", folder_.Write("net.ridge", kNormNet));
  request.options.freeze = {"scale"};
  request.options.steps = 2;
  Run(request);
  EXPECT_FALSE(Left("moving").contains("scale.m"));
  EXPECT_NE(Left("moving").at("mean").at(0), 0);
  request.options.out = folder_.File("still");
  request.options.batch_norm = "frozen";
  Run(request);
  EXPECT_EQ(Left("still").at("mean").at(0), 0);
  EXPECT_EQ(Left("still").at("var").at(0), 1);
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
  vary([](TrainOptions& o) { o.sampler = "balanced"; });
  vary([](TrainOptions& o) { o.sampler = "1,0,3"; });
  EXPECT_EQ(hashes.size(), 7u);
}

TEST_F(ShapedLoss, ASamplerLeavesTheStepsOfAnEpochAndTheEvaluationAsTheyAre) {
  TrainRequest request = Table("plain");
  request.options.lr = 1e-30;  // leaves the parameters as they start
  Run(request);
  request.options.out = folder_.File("sampled");
  request.options.sampler = "balanced";
  Run(request);
  const json plain = ReadJson("plain/summary.json"), sampled = ReadJson("sampled/summary.json");
  EXPECT_EQ(plain["steps"], sampled["steps"]);
  EXPECT_EQ(plain["validation_loss"], sampled["validation_loss"]);
}

TEST_F(ShapedLoss, WhatIsNoSamplerIsRefused) {
  const std::map<std::string, std::string> errors = {
      {"even", "--sampler is 'even'; it must be balanced, or shares of at least 0 such as 1,2.5,1"},
      {"1,-2,1",
       "--sampler is '1,-2,1'; it must be balanced, or shares of at least 0 such as 1,2.5,1"},
      {"1,,1", "--sampler is '1,,1'; it must be balanced, or shares of at least 0 such as 1,2.5,1"},
      {"0,0,0", "--sampler is '0,0,0'; the sum of its shares must be above 0"},
      {"1,2", "--sampler has 2 shares; mlp has 3 classes"}};
  for (const auto& [sampler, message] : errors) {
    TrainRequest request = Table("run");
    request.options.sampler = sampler;
    EXPECT_EQ(Failure(request), message);
  }
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

class Adapters : public Tuning {
 protected:
  TrainRequest Lora(const std::string& out, const std::string& model = "") {
    TrainRequest request = Request(out, model);
    request.options.lora = "rank=2,alpha=8";
    return request;
  }
};

TEST_F(Adapters, OnlyTheyAreTrainedAndTheRunResumes) {
  TrainRequest request = Lora("run");
  ExpectResumes(request);
  const Tensors left = Left("whole");
  EXPECT_TRUE(left.contains("0.lora_A.weight.m"));
  EXPECT_FALSE(left.contains("0.weight.m"));
  EXPECT_FALSE(left.contains("0.bias.m"));
  request = Request("one");
  request.options.steps = 1;
  request.options.lr = 1e-30;
  Run(request);
  for (const char* name : {"0.weight", "0.bias", "2.weight"})
    EXPECT_FALSE(Moved(Left("one"), left, name)) << name;
}

TEST_F(Adapters, TheSeedDrawsThem) {
  TrainRequest request = Lora("a");
  request.options.steps = 1;
  request.options.lr = 1e-30;
  Run(request);
  request.options.out = folder_.File("b");
  request.options.seed = 1;
  Run(request);
  EXPECT_TRUE(Moved(Left("a"), Left("b"), "0.lora_A.weight"));
}

// Beside a base of 4 bits: a weight of 4800 numbers, of which 51 bytes in 96 stay.
TEST_F(Adapters, BesideFrozenWeightsInFourBitsResume) {
  TrainRequest request = Lora("run", "mlp:hidden=400,layers=1,inputs=12,classes=3");
  request.options.frozen_weights = "nf4";
  ExpectResumes(request);
  const Tensors left = Left("whole");
  EXPECT_EQ(TypeToString(left.at("0.weight.nf4").type()), "u8[2400]");
  EXPECT_EQ(TypeToString(left.at("0.weight.nf4_scales").type()), "bf16[75]");
  EXPECT_FALSE(left.contains("0.weight"));
  const Result<Tensors> values = TrainedValues(folder_.File("whole"), kNewestCheckpoint);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(TypeToString(values->at("0.weight").type()), "f32[400,12]");
  EXPECT_FALSE(values->contains("0.weight.nf4"));
}

TEST_F(Adapters, OfATextGraphResume) {
  ASSERT_TRUE(WriteFileAtomically(folder_.File("net.ridge"), kTextNet).ok());
  TrainRequest request = Lora("run", folder_.File("net.ridge"));
  request.options.loss = "cross_entropy:logits";
  request.options.lora = "rank=1,target=body.*";
  request.options.trainable = {"head.*"};
  request.options.label_smoothing = 0.1;
  ExpectResumes(request);
  const Tensors left = Left("whole");
  EXPECT_TRUE(left.contains("body.w.lora_A.weight.m"));
  EXPECT_TRUE(left.contains("head.w.m"));
  EXPECT_FALSE(left.contains("body.w.m"));
}

TEST_F(Adapters, AreMergedInTheValuesForUse) {
  Run(Lora("run"));
  const Tensors left = Left("run");
  const Result<Tensors> values = TrainedValues(folder_.File("run"), kNewestCheckpoint);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_FALSE(values->contains("0.lora_A.weight"));
  const Tensor &a = left.at("0.lora_A.weight"), &b = left.at("0.lora_B.weight");
  double most = 0;
  for (int64_t i = 0; i < 8 * 12; ++i) {
    double sum = 0;
    for (int64_t r = 0; r < 2; ++r) sum += b.at(i / 12 * 2 + r) * a.at(r * 12 + i % 12);
    EXPECT_NEAR(values->at("0.weight").at(i), left.at("0.weight").at(i) + 4 * sum, 1e-6);
    most = std::max(most, std::abs(sum));
  }
  EXPECT_GT(most, 1e-3);
}

// Slices, recomputation and accumulation change rounding alone.
TEST_F(Adapters, SlicesRecomputationAndAccumulationGiveTheSameTraining) {
  TrainRequest request = Lora("plain");
  request.options.ema = 0.5;
  request.options.lr_for = "*.lora_B.*=4";
  request.options.slices = "1";
  request.options.recompute = "off";
  Run(request);
  const Tensors plain = Left("plain");
  const auto compare = [&](const std::string& out, double bound) {
    request.options.out = folder_.File(out);
    Run(request);
    const Tensors left = Left(out);
    for (const char* name : {"0.lora_B.weight", "2.lora_A.weight", "0.lora_B.weight.ema"}) {
      for (int64_t i = 0; i < plain.at(name).elements(); ++i)
        EXPECT_NEAR(left.at(name).at(i), plain.at(name).at(i), bound) << out << " " << name;
    }
  };
  request.options.slices = "4";
  compare("slices", 1e-4);
  request.options.slices = "1";
  request.options.recompute = "all";
  compare("recompute", 0);
  request.options.passes = "-inplace";
  compare("out-of-place", 0);
}

TEST_F(Tuning, RatesByPatternScaleTheUpdatesOfTheirParameters) {
  TrainRequest request = Request("plain");
  request.options.optimizer.name = "sgd";
  request.options.steps = 1;
  request.options.lr = 1e-30;
  Run(request);
  request.options.out = folder_.File("usual");
  request.options.lr = 0.5;
  Run(request);
  request.options.out = folder_.File("scaled");
  request.options.lr_for = "0.weight=0.25,0.*=2";
  Run(request);
  const Tensors start = Left("plain"), usual = Left("usual"), scaled = Left("scaled");
  for (const auto& [name, factor] :
       std::map<std::string, double>{{"0.weight", 0.25}, {"0.bias", 2}, {"2.weight", 1}}) {
    double most = 0;
    for (int64_t i = 0; i < start.at(name).elements(); ++i) {
      const double before = start.at(name).at(i), step = usual.at(name).at(i) - before;
      most = std::max(most, std::abs(step));
      EXPECT_NEAR(scaled.at(name).at(i) - before, factor * step, 1e-6) << name;
    }
    EXPECT_GT(most, 1e-4) << name;
  }
}

TEST_F(Tuning, RatesOfWhatIsNotTrainedAreRefused) {
  TrainRequest request = Request("run");
  request.options.freeze = {"0.*"};
  request.options.lr_for = "0.*=2";
  EXPECT_EQ(Failure(request),
            "mlp: --lr-for '0.*' matches no parameter; the nearest are 2.weight, 2.bias. hint: "
            "--lr-for '2.*'");
  request.options.lr_for = "2.*";
  EXPECT_EQ(Failure(request),
            "--lr-for is '2.*': '2.*' is not PATTERN=X with X above 0. hint: --lr-for "
            "'body.*=0.1,head.*=10'");
}

TEST_F(Tuning, AveragesFollowTheParametersAndResume) {
  TrainRequest request = Request("run");
  request.options.ema = 0.75;
  request.options.freeze = {"2.bias"};
  std::vector<Tensors> steps;
  for (int64_t step = 1; step <= 3; ++step) {
    request.options.steps = step;
    request.options.out = folder_.File("steps" + std::to_string(step));
    Run(request);
    steps.push_back(Left("steps" + std::to_string(step)));
  }
  EXPECT_FALSE(steps[0].contains("2.bias.ema"));
  for (int64_t i = 0; i < 96; ++i) {
    double average = steps[0].at("0.weight").at(i);
    EXPECT_EQ(steps[0].at("0.weight.ema").at(i), average);
    for (size_t step = 1; step < 3; ++step)
      average += 0.25 * (steps[step].at("0.weight").at(i) - average);
    EXPECT_NEAR(steps[2].at("0.weight.ema").at(i), average, 1e-6);
  }
  request.options.steps = 6;
  request.options.accumulate = 2;
  ExpectResumes(request);
  EXPECT_TRUE(Left("whole").at("0.weight.ema").same_bits(Left("part").at("0.weight.ema")));
}

TEST_F(Tuning, EvaluationsReadTheAverages) {
  std::ofstream csv(folder_.File("data.csv"));
  csv << "a,b,kind\n";
  for (int i = 0; i < 64; ++i) csv << (i * 7 % 11) << ',' << (i * 5 % 13) << ",c" << i % 3 << '\n';
  csv.close();
  TrainRequest request = Request("plain", "mlp:hidden=8,layers=1");
  request.options.data = "csv:" + folder_.File("data.csv");
  request.options.validation = "0.2";
  request.options.steps = 12;
  Run(request);
  request.options.out = folder_.File("averaged");
  request.options.ema = 0.9;
  Run(request);
  EXPECT_TRUE(Left("plain").at("0.weight").same_bits(Left("averaged").at("0.weight")));
  const double plain = ReadJson("plain/summary.json")["validation_loss"];
  const double averaged = ReadJson("averaged/summary.json")["validation_loss"];
  EXPECT_GT(std::abs(plain - averaged), 1e-4);
  EvalRequest eval;
  eval.run = folder_.File("averaged");
  eval.data = request.options.data;
  const Result<EvalOutcome> one = EvaluateRun(eval, machine_.get());
  ASSERT_TRUE(one.ok()) << one.status().message();
  eval.run = folder_.File("plain");
  const Result<EvalOutcome> other = EvaluateRun(eval, machine_.get());
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_GT(std::abs(one->result.loss - other->result.loss), 1e-4);
  const Result<Tensors> values = TrainedValues(eval.run = folder_.File("averaged"), "last");
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_TRUE(values->at("0.weight").same_bits(Left("averaged").at("0.weight.ema")));
}

TEST_F(Tuning, EachOptionChangesTheTrainingInHalfPrecisionToo) {
  ASSERT_TRUE(WriteFileAtomically(folder_.File("net.ridge"),
                                  "graph half\n"
                                  "  x = input f32[batch,4]\n"
                                  "  h = cast(x, to=\"bf16\")\n"
                                  "  body.w = parameter bf16[5,4] init=uniform(0.5)\n"
                                  "  head.w = parameter bf16[3,5] init=uniform(0.5)\n"
                                  "  a = matmul(h, body.w, transpose_b=1)\n"
                                  "  logits = matmul(a, head.w, transpose_b=1)\n"
                                  "  output logits\n")
                  .ok());
  TrainRequest request = Request("run", folder_.File("net.ridge"));
  request.options.loss = "cross_entropy:logits";
  request.options.lora = "rank=1,target=body.*";
  request.options.trainable = {"head.*"};
  request.options.ema = 0.9;
  request.options.class_weights = "1,2,3";
  ExpectResumes(request);
  const Tensors left = Left("whole");
  EXPECT_EQ(left.at("body.w").type().dtype, DType::kBF16);
  EXPECT_EQ(left.at("body.w.lora_A.weight").type().dtype, DType::kF32);
  EXPECT_EQ(left.at("head.w.ema").type().dtype, DType::kF32);
}

}  // namespace
}  // namespace ridge
