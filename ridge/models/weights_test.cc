#include "ridge/models/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "ridge/core/safetensors.h"
#include "ridge/core/test_folder.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

Tensor Counting(Dims dims, float first) {
  std::vector<float> values(static_cast<size_t>(ElementCount(dims)));
  std::iota(values.begin(), values.end(), first);
  return Tensor::FromFloats(std::move(dims), values);
}

// A graph with parameters under the names of a model with one layer, and a file beside it.
class WeightsTest : public ::testing::Test {
 protected:
  void Parameter(const std::string& name, Dims dims) {
    graph_.AddVariable(ValueKind::kParameter, name, {DType::kF32, std::move(dims)}, Init::Zeros());
  }
  void Tensors(std::vector<std::pair<std::string, Tensor>> tensors) {
    std::vector<SafetensorsItem> items;
    for (const auto& [name, tensor] : tensors)
      items.push_back({name, tensor.type(), tensor.data()});
    const Result<FileDigest> written = WriteSafetensors(path_, items);
    ASSERT_TRUE(written.ok()) << written.status().message();
  }
  Result<WeightsReport> Load(const std::vector<std::string>& skip = {}) {
    return LoadWeightsFile(path_, names_, skip, graph_);
  }
  WeightsReport Loaded(const std::vector<std::string>& skip = {}) {
    Result<WeightsReport> report = Load(skip);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? std::move(*report) : WeightsReport();
  }
  std::string ErrorOf(const std::vector<std::string>& skip = {}) {
    const Result<WeightsReport> report = Load(skip);
    EXPECT_FALSE(report.ok());
    return report.status().message().substr(report.ok() ? 0 : path_.size());
  }
  const Init& InitOf(const std::string& name) { return graph_.value(graph_.FindValue(name)).init; }
  std::vector<double> ValuesOf(const std::string& name) {
    std::vector<double> values;
    const Tensor& tensor = InitOf(name).tensor;
    for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.at(i));
    return values;
  }

  const std::string path_ = TestFolder() + "/weights.safetensors";
  Graph graph_;
  WeightNames names_;
};

using Values = std::vector<double>;

TEST_F(WeightsTest, OwnNamesNeedNoTable) {
  Parameter("fc.weight", {2, 2});
  Tensors({{"fc.weight", Counting({2, 2}, 1)}});
  EXPECT_EQ(Loaded().loaded, 1);
  EXPECT_EQ(ValuesOf("fc.weight"), (Values{1, 2, 3, 4}));
}

TEST_F(WeightsTest, RulesRenameTransposeJoinAndCut) {
  Parameter("blocks.7.up.weight", {3, 2});
  Parameter("blocks.7.qkv.weight", {3, 2});
  Parameter("pos.weight", {2, 2});
  names_.rules = {{"blocks.*.up.weight", {"h.*.fc.weight"}, WeightForm::kTransposed},
                  {"blocks.*.qkv.weight", {"h.*.q", "h.*.k", "h.*.v"}},
                  {"pos.weight", {"wpe"}, WeightForm::kFirstRows}};
  Tensors({{"h.7.fc.weight", Counting({2, 3}, 0)},
           {"h.7.q", Counting({1, 2}, 10)},
           {"h.7.k", Counting({1, 2}, 20)},
           {"h.7.v", Counting({1, 2}, 30)},
           {"wpe", Counting({5, 2}, 0)}});
  EXPECT_EQ(Loaded().loaded, 3);
  EXPECT_EQ(ValuesOf("blocks.7.up.weight"), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ValuesOf("blocks.7.qkv.weight"), (Values{10, 11, 20, 21, 30, 31}));
  EXPECT_EQ(ValuesOf("pos.weight"), (Values{0, 1, 2, 3}));
}

TEST_F(WeightsTest, ThePrefixMayBeLeftOutAndLaterRulesStandIn) {
  Parameter("bert.norm.weight", {1});
  Parameter("bert.norm.bias", {1});
  names_ = {.prefix = "bert.",
            .rules = {{"bert.*norm.weight", {"bert.*norm.gamma"}}},
            .unused = {"*position_ids"}};
  Tensors({{"norm.gamma", Counting({1}, 4)},
           {"norm.bias", Counting({1}, 5)},
           {"embeddings.position_ids", Counting({1}, 0)}});
  EXPECT_EQ(Loaded().loaded, 2);
  EXPECT_EQ(ValuesOf("bert.norm.weight"), (Values{4}));
}

TEST_F(WeightsTest, ATensorReadTwiceIsReported) {
  Parameter("tok", {2});
  Parameter("head", {2});
  names_.rules = {{"head", {"tok"}}};
  Tensors({{"tok", Counting({2}, 3)}});
  EXPECT_EQ(Loaded().copies, (std::vector<std::string>{"head from tok"}));
  EXPECT_EQ(ValuesOf("head"), (Values{3, 4}));
}

TEST_F(WeightsTest, HalfFloatsAreConverted) {
  Parameter("w", {5000});
  Tensor half(TensorType{DType::kBF16, {5000}});
  for (int64_t i = 0; i < 5000; ++i)
    half.as_mutable<uint16_t>()[i] = FloatToBF16(static_cast<float>(i % 256));
  Tensors({{"w", half}});
  EXPECT_EQ(Loaded().loaded, 1);
  EXPECT_EQ(InitOf("w").tensor.type().dtype, DType::kF32);
  EXPECT_EQ(InitOf("w").tensor.at(4999), 4999 % 256);
}

// Large enough to stay in the file: in another order, type, shape or place than the model's.
TEST_F(WeightsTest, LargeTensorsStayInTheFileAndGiveTheSameBits) {
  Parameter("same", {100, 300});
  Parameter("up", {300, 100});
  Parameter("qkv", {300, 100});
  Parameter("pos", {100, 300});
  Parameter("half", {100, 300});
  names_.rules = {{"up", {"turned"}, WeightForm::kTransposed},
                  {"qkv", {"q", "k", "v"}},
                  {"pos", {"positions"}, WeightForm::kFirstRows}};
  Tensor half(TensorType{DType::kF16, {100, 300}});
  for (int64_t i = 0; i < half.elements(); ++i)
    half.as_mutable<uint16_t>()[i] = FloatToF16(static_cast<float>(i % 2000));
  Tensors({{"same", Counting({100, 300}, 0)},
           {"turned", Counting({100, 300}, 0)},
           {"q", Counting({100, 100}, 0)},
           {"k", Counting({100, 100}, 10'000)},
           {"v", Counting({100, 100}, 20'000)},
           {"positions", Counting({120, 300}, 0)},
           {"half", half}});
  EXPECT_EQ(Loaded().loaded, 5);
  const auto expect = [&](const std::string& name, const auto& number) {
    const Tensor& tensor = InitOf(name).tensor;
    EXPECT_FALSE(tensor.in_memory()) << name;
    const Result<Tensor> loaded = tensor.Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    float piece[7] = {};  // begins and ends within rows
    ASSERT_TRUE(tensor.Read(12'345, 12'352, piece).ok());
    EXPECT_EQ(std::memcmp(piece, loaded->as<float>() + 12'345, sizeof(piece)), 0) << name;
    for (int64_t i = 0; i < loaded->elements(); ++i) ASSERT_EQ(loaded->at(i), number(i)) << name;
  };
  const auto counted = [](int64_t i) { return static_cast<double>(i); };
  expect("same", counted);
  expect("up", [](int64_t i) { return static_cast<double>(i % 100 * 300 + i / 100); });
  expect("qkv", counted);
  expect("pos", counted);
  expect("half", [](int64_t i) { return static_cast<double>(i % 2000); });

  std::filesystem::resize_file(path_, 1000);
  const Status status = InitOf("up").tensor.Load().status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidData);
  EXPECT_EQ(status.message().substr(0, path_.size() + 38),
            path_ + ": has changed: it has 1000 bytes, and ");
}

TEST_F(WeightsTest, AnEmptyMatrixIsTransposed) {
  Parameter("up", {5, 0});
  names_.rules = {{"up", {"turned"}, WeightForm::kTransposed}};
  Tensors({{"turned", Counting({0, 5}, 0)}});
  EXPECT_EQ(Loaded().loaded, 1);
  EXPECT_EQ(ValuesOf("up"), Values{});
}

TEST_F(WeightsTest, OptimizerStateIsNotAskedForAndStatisticsAre) {
  Parameter("w", {1});
  const TensorType one = {DType::kF32, {1}};
  const ValueId mean = graph_.AddVariable(ValueKind::kState, "mean", one, Init::Zeros());
  graph_.mutable_value(mean).role = ValueRole::kStatistic;
  graph_.AddVariable(ValueKind::kState, "count", one, Init::Zeros());
  Tensors({{"w", Counting({1}, 1)}});
  EXPECT_EQ(ErrorOf(),
            ": not the weights of 'graph': 1 of its 2 tensors fit\n"
            "  missing in the file:\n"
            "    mean  f32[1]\n"
            "  hint: --weights-skip 'mean' leaves tensors out; the model's keep their starting "
            "values");
}

TEST_F(WeightsTest, TheRefusalIsATableOfAllThatIsWrong) {
  Parameter("body.weight", {2});
  Parameter("head.weight", {3, 2});
  Parameter("head.bias", {3});
  Tensors({{"body.weight", Counting({2}, 0)},
           {"head.weight", Counting({5, 2}, 0)},
           {"other", Counting({}, 0)}});
  EXPECT_EQ(ErrorOf(),
            ": not the weights of 'graph': 1 of its 3 tensors fit\n"
            "  missing in the file:\n"
            "    head.bias    f32[3]\n"
            "  of another shape or type:\n"
            "    head.weight  f32[3,2]; the file has head.weight f32[5,2]\n"
            "  in the file, but not in the model:\n"
            "    other        f32[]\n"
            "  hint: --weights-skip 'head.*' leaves tensors out; the model's keep their starting "
            "values");
  EXPECT_EQ(InitOf("body.weight").kind, Init::Kind::kZeros);  // nothing was done by half
}

TEST_F(WeightsTest, SkippedTensorsKeepTheirStart) {
  Parameter("body.weight", {2});
  Parameter("head.weight", {3, 2});
  Tensors({{"body.weight", Counting({2}, 1)},
           {"head.weight", Counting({5, 2}, 0)},
           {"decoder", Counting({1}, 0)}});
  const WeightsReport report = Loaded({"head.*", "deco*"});
  EXPECT_EQ(report.kept, (std::vector<std::string>{"head.weight"}));
  EXPECT_EQ(report.passed, (std::vector<std::string>{"head.weight", "decoder"}));
  EXPECT_EQ(InitOf("head.weight").kind, Init::Kind::kZeros);
  EXPECT_EQ(ValuesOf("body.weight"), (Values{1, 2}));
}

TEST_F(WeightsTest, APatternThatFitsNothingIsRefused) {
  Parameter("w", {1});
  Tensors({{"w", Counting({1}, 1)}});
  const Result<WeightsReport> report = Load({"v*"});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(WeightsTest, PartsMustJoinToTheShapeAndIntegersAreNoWeights) {
  Parameter("qkv", {3, 2});
  names_.rules = {{"qkv", {"q", "k"}}};
  Tensors({{"q", Counting({1, 2}, 0)}, {"k", Counting({1, 2}, 0)}});
  EXPECT_NE(ErrorOf().find("the file has q + k f32[1,2] + f32[1,2]"), std::string::npos);
  Tensors({{"q", Counting({2, 2}, 0)}, {"k", Counting({1, 3}, 0)}});
  EXPECT_FALSE(Load().ok());
  Tensors({{"qkv", Tensor(TensorType{DType::kI64, {3, 2}})}});
  EXPECT_FALSE(Load().ok());
}

// Every tensor of every model has a name; the tables' stars stand where they should.
TEST(WeightNamesTest, EveryRuleFitsAParameterOfItsModel) {
  for (const BuiltinModel& model : BuiltinModels()) {
    const Result<Graph> graph = BuildModel(model.name);
    ASSERT_TRUE(graph.ok());
    for (const WeightRule& rule : model.weight_names().rules) {
      const size_t star = rule.ours.find('*');
      const std::string head = rule.ours.substr(0, star);
      const std::string tail = star == std::string::npos ? "" : rule.ours.substr(star + 1);
      bool fits = false;
      for (ValueId id : graph->ValuesOfKind(ValueKind::kParameter)) {
        const std::string& name = graph->value(id).name;
        fits = fits || (name.starts_with(head) && name.ends_with(tail));
      }
      EXPECT_TRUE(fits) << model.name << ": " << rule.ours;
    }
  }
}

}  // namespace
}  // namespace ridge
