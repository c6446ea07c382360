// Predictor and OpenInputs on small runs.
#include "ridge/use/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ridge/data/test_files.h"
#include "ridge/train/job/job_data.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/loop/evaluate_run.h"
#include "ridge/train/loop/test_support.h"
#include "ridge/train/store/preprocessing_file.h"
#include "ridge/use/export_model.h"
#include "ridge/use/predictor_inputs.h"

namespace ridge {
namespace {

using testing::HasSubstr;
using Rows = std::vector<std::vector<double>>;

class PredictorTest : public testing::Test {
 protected:
  // Words, missing cells and a column of no use; 43 rows are 5 batches of 8 and one of 3.
  void WriteTable(const std::string& name, bool with_label) {
    const char* colours[] = {"red", "green", "blue"};
    std::ofstream csv(folder_.File(name));
    csv << "length,colour" << (with_label ? ",kind" : "") << '\n';
    for (int s = 0; s < 43; ++s) {
      if (s % 7 != 3) csv << (s * 7 % 29) / 3.0;
      csv << ',' << colours[s * 5 % 3];
      if (with_label) csv << ',' << (s % 3 == 0 ? "small" : "large");
      csv << '\n';
    }
  }

  void TrainTable() {
    WriteTable("data.csv", /*with_label=*/true);
    TrainRequest request = TinyRequest(folder_.File("run"));
    request.options.model = "mlp:hidden=8,layers=1";
    request.options.data = "csv:" + folder_.File("data.csv");
    Recorder recorder;
    const Result<TrainOutcome> outcome = Train(request, machine_.get(), recorder);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  }

  Result<Predictor> Open(const std::string& model) {
    return Predictor::Open({.model = folder_.File(model)}, machine_.get());
  }

  Rows Outputs(Predictor& predictor, const SourcePtr& source) {
    Rows rows;
    EXPECT_TRUE(predictor.Prepare(source->size()).ok());
    const Status status = predictor.Run(source, [&](int64_t index, const auto& output) {
      EXPECT_EQ(index, static_cast<int64_t>(rows.size()));
      rows.push_back(output);
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
  }

  Rows OutputsOf(Predictor& predictor, const std::vector<std::string>& inputs) {
    const auto sets = OpenInputs(inputs, predictor.signature(), predictor.inputs());
    EXPECT_TRUE(sets.ok()) << sets.status().message();
    EXPECT_EQ(sets->size(), 1u);
    return Outputs(predictor, (*sets)[0].source);
  }

  // The samples as an evaluation of the run opens them.
  SourcePtr EvaluationData(const std::string& spec) {
    const Result<ridge::Run> run = ridge::Run::Open(folder_.File("run"));
    TrainOptions options = run->options();
    options.data = spec;
    const Result<Forward> forward = LoadForward(options, run->path());
    EXPECT_TRUE(forward.ok()) << forward.status().message();
    return OpenEvalData(options, forward->graph, forward->facts, forward->data,
                        forward->preprocessing)
        ->source;
  }

  TempFolder folder_;
  TestMachine machine_;
};

TEST_F(PredictorTest, ARowWithoutALabelBecomesTheBitsThatAnEvaluationReads) {
  TrainTable();
  WriteTable("new.csv", /*with_label=*/false);
  Result<Predictor> predictor = Open("run");
  ASSERT_TRUE(predictor.ok()) << predictor.status().message();
  const Rows evaluated = Outputs(*predictor, EvaluationData("csv:" + folder_.File("data.csv")));
  ASSERT_EQ(evaluated.size(), 43u);
  EXPECT_EQ(OutputsOf(*predictor, {folder_.File("data.csv")}), evaluated);
  EXPECT_EQ(OutputsOf(*predictor, {folder_.File("new.csv")}), evaluated);
}

TEST_F(PredictorTest, ItsProbabilitiesGiveTheLossOfTheEvaluation) {
  TrainTable();
  Result<Predictor> predictor = Open("run");
  ASSERT_TRUE(predictor.ok()) << predictor.status().message();
  const auto eval =
      EvaluateRun({folder_.File("run"), "csv:" + folder_.File("data.csv")}, machine_.get());
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  const Rows outputs = OutputsOf(*predictor, {folder_.File("data.csv")});
  ASSERT_EQ(ClassName(predictor->signature(), 1), "small");
  EXPECT_EQ(predictor->signature().label, "kind");
  double loss = 0, hits = 0;
  for (size_t s = 0; s < outputs.size(); ++s) {
    const std::vector<double> p = Answer(predictor->signature(), outputs[s]);
    const int64_t label = s % 3 == 0 ? 1 : 0;
    loss -= std::log(p[static_cast<size_t>(label)]);
    hits += Largest(p, 1)[0] == label ? 1 : 0;
  }
  EXPECT_NEAR(eval->result.loss, loss / 43, 1e-6);
  EXPECT_DOUBLE_EQ(*eval->result.accuracy, hits / 43);
}

TEST_F(PredictorTest, AnExportedFileAnswersAsTheRunDoes) {
  TrainTable();
  ExportRequest request;
  request.model = folder_.File("run");
  request.format = "onnx";
  request.out = folder_.File("net.onnx");
  const Result<ExportReport> report = ExportModel(request, machine_.get());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->carries, "the names of 2 classes, 2 columns of a table");
  Result<Predictor> run = Open("run"), file = Open("net.onnx");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->signature(), run->signature());
  const Rows wanted = OutputsOf(*run, {folder_.File("data.csv")});
  const Rows answered = OutputsOf(*file, {folder_.File("data.csv")});
  ASSERT_EQ(answered.size(), wanted.size());
  for (size_t s = 0; s < wanted.size(); ++s) {
    for (size_t i = 0; i < wanted[s].size(); ++i) EXPECT_NEAR(answered[s][i], wanted[s][i], 1e-5);
  }
}

TEST_F(PredictorTest, AnInputOfNoKnownKindIsRefusedWithTheKindsThereAre) {
  Signature signature;
  std::ofstream(folder_.File("a.xyz")) << "RIFF";
  const auto message = [&](const std::string& input) {
    return OpenInputs({input}, signature, {}).status().message();
  };
  EXPECT_EQ(message(folder_.File("a.xyz")),
            "predict: '" + folder_.File("a.xyz") +
                "' is of no known kind; known are files of texts, for a model of text, texts in "
                "quotes, for a model of text, pictures (.jpg, .jpeg, .png, .webp, or a folder "
                "of them), videos (.mp4, .mkv, .webm, .avi, .mov and others), sounds (.wav, "
                ".flac, or a folder of them), point clouds (.ply, .off, .npy, or a folder of "
                "them), for a model of points, tables (.csv, .tsv), arrays (.npz, .npy)");
  EXPECT_EQ(message("gone.csv"), "predict: there is no file or folder gone.csv");
}

TEST(SignatureTest, ComesBackFromItsJson) {
  Signature signature;
  signature.output = "logits";
  signature.kind = AnswerKind::kClasses;
  signature.scores = true;
  signature.label = "kind";
  signature.preprocessing.classes = {"a", "b"};
  signature.preprocessing.pictures = {{{7, 9}, 1, ImageFit::kStretch, ResizeFilter::kNearest},
                                      {{0.5}, {0.25}}};
  const auto back = SignatureFromJson(SignatureToJson(signature), "net.onnx");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, signature);
}

TEST(SignatureTest, DamagedAndForeignTextsAreRefusedWithAReason) {
  const auto message = [](const std::string& text) {
    const auto read = SignatureFromJson(text, "net.onnx");
    EXPECT_EQ(read.ok() ? ErrorCode::kInternal : read.status().code(), ErrorCode::kInvalidModel);
    return read.status().message();
  };
  EXPECT_THAT(message("{\"format\":"), HasSubstr("net.onnx: ridge.prediction: cannot be read: "));
  EXPECT_EQ(message("{\"format\":\"other\"}"),
            "net.onnx: ridge.prediction: is of format 'other'; this program reads "
            "'ridge.prediction'");
  EXPECT_EQ(message("{\"format\":\"ridge.prediction\",\"version\":7}"),
            "net.onnx: ridge.prediction: is of version 7; this program reads 1");
  const std::string head =
      "{\"format\":\"ridge.prediction\",\"version\":1,\"output\":\"y\",\"scores\":true,";
  EXPECT_EQ(message(head + "\"answer\":\"poem\",\"preprocessing\":{\"version\":1}}"),
            "net.onnx: ridge.prediction: answer is 'poem'");
  EXPECT_THAT(message(head + "\"answer\":\"number\",\"preprocessing\":{\"version\":9}}"),
              HasSubstr("preprocessing: is of format version 9"));
  EXPECT_THAT(message(head + "\"answer\":\"number\"}"), HasSubstr("'preprocessing' not found"));
  EXPECT_THAT(message("[]"), HasSubstr("cannot be read"));
  EXPECT_THAT(message(std::string(100000, '[')), HasSubstr("cannot be read"));
}

TEST(AnswerTest, ProbabilitiesSumToOneAndKeepTheirOrder) {
  Signature signature;
  signature.kind = AnswerKind::kClasses;
  signature.scores = true;
  const std::vector<double> p = Answer(signature, {1000, 999, -5000});
  EXPECT_DOUBLE_EQ(p[0] + p[1] + p[2], 1);
  EXPECT_DOUBLE_EQ(p[0], 1 / (1 + std::exp(-1.0)));
  EXPECT_EQ(Largest(p, 2), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(Largest({0.5, 0.5}, 9), (std::vector<int64_t>{0, 1}));  // equal ones as they stand
  signature.kind = AnswerKind::kYesNo;
  EXPECT_DOUBLE_EQ(Answer(signature, {0})[1], 0.5);
}

}  // namespace
}  // namespace ridge
