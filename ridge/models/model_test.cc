#include "ridge/models/model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ridge {
namespace {

Graph Build(const std::string& spec, int64_t batch = 4) {
  Result<Graph> graph = BuildModel(spec, {.batch = batch});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : Graph();
}

std::string ErrorOf(const std::string& spec) {
  const Result<Graph> graph = BuildModel(spec);
  EXPECT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), ErrorCode::kInvalidModel);
  return graph.status().message();
}

TensorType TypeOf(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindValue(name);
  EXPECT_NE(id, kNoValue) << name;
  return id == kNoValue ? TensorType{} : graph.type(id);
}

TEST(ModelTest, ParameterCountsArePyTorchs) {
  EXPECT_EQ(ParameterCount(Build("mlp")), 669'706);
  EXPECT_EQ(ParameterCount(Build("cnn")), 54'410);
  EXPECT_EQ(ParameterCount(Build("resnet18")), 11'689'512);
  EXPECT_EQ(ParameterCount(Build("resnet18:image=32,classes=10")), 11'181'642);
}

// torchvision's and timm's model pages (num_params); bert, gpt, unet and lstm: counted with PyTorch
// on bench/peers and on the word_language_model example.
TEST(ModelTest, ParameterCountsAreThePublishedOnes) {
  EXPECT_EQ(ParameterCount(Build("resnet50")), 25'557'032);
  EXPECT_EQ(ParameterCount(Build("vit_ti")), 5'717'416);
  EXPECT_EQ(ParameterCount(Build("efficientnet_v2_s")), 21'458'488);
  EXPECT_EQ(ParameterCount(Build("mobilenet_v3_small")), 2'542'856);
  EXPECT_EQ(ParameterCount(Build("unet")), 7'760'130);
  EXPECT_EQ(ParameterCount(Build("gpt")), 14'585'856);
  EXPECT_EQ(ParameterCount(Build("bert")), 5'405'442);
  EXPECT_EQ(ParameterCount(Build("lstm")), 13'987'678);
}

TEST(ModelTest, NamesAndShapesArePyTorchs) {
  const Graph mlp = Build("mlp");
  EXPECT_EQ(TypeOf(mlp, "0.weight"), (TensorType{DType::kF32, {512, 784}}));
  EXPECT_EQ(TypeOf(mlp, "4.bias"), (TensorType{DType::kF32, {10}}));
  const Graph cnn = Build("cnn");
  EXPECT_EQ(TypeOf(cnn, "0.weight"), (TensorType{DType::kF32, {32, 1, 3, 3}}));
  EXPECT_EQ(TypeOf(cnn, "4.weight"), (TensorType{DType::kF32, {10, 5408}}));
  const Graph resnet = Build("resnet18");
  EXPECT_EQ(TypeOf(resnet, "layer2.0.downsample.0.weight"),
            (TensorType{DType::kF32, {128, 64, 1, 1}}));
  EXPECT_EQ(TypeOf(resnet, "layer4.1.bn2.running_var"), (TensorType{DType::kF32, {512}}));
  EXPECT_EQ(TypeOf(resnet, "fc.weight"), (TensorType{DType::kF32, {1000, 512}}));
}

TEST(ModelTest, EveryStatisticHasOneUpdate) {
  const Graph graph = Build("resnet18:image=32");
  const std::vector<ValueId> states = graph.ValuesOfKind(ValueKind::kState);
  EXPECT_EQ(states.size(), 40u);
  EXPECT_EQ(graph.updates().size(), states.size());
  for (ValueId id : states) {
    EXPECT_EQ(graph.value(id).role, ValueRole::kStatistic);
    const auto count = std::count_if(graph.updates().begin(), graph.updates().end(),
                                     [&](const GraphUpdate& u) { return u.variable == id; });
    EXPECT_EQ(count, 1) << graph.value(id).name;
  }
}

TEST(ModelTest, InputsAndOutputsCarryTheBatch) {
  for (const BuiltinModel& model : BuiltinModels()) {
    const Graph graph = Build(model.name, 6);
    const bool text = graph.FindValue("image") == kNoValue;
    EXPECT_EQ(TypeOf(graph, text ? "tokens" : "image").dims[0], 6);
    EXPECT_EQ(TypeOf(graph, "label").dims[0], 6);
    EXPECT_EQ(TypeOf(graph, "label").dtype, DType::kI64);
    EXPECT_EQ(graph.type(graph.FindOutput("logits")).dims[0], 6);
    EXPECT_EQ(graph.type(graph.FindOutput("loss")).rank(), 0);
  }
}

TEST(ModelTest, ArgumentsChangeTheShapes) {
  const Graph graph = Build("mlp:hidden=16,layers=1,inputs=9,classes=3");
  EXPECT_EQ(TypeOf(graph, "0.weight"), (TensorType{DType::kF32, {16, 9}}));
  EXPECT_EQ(TypeOf(graph, "2.weight"), (TensorType{DType::kF32, {3, 16}}));
  const Result<ModelFacts> facts = DescribeModel("resnet18:image=32,classes=10");
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->classes, 10);
  ASSERT_EQ(facts->inputs.size(), 2u);
  EXPECT_EQ(facts->inputs[0].second, (TensorType{DType::kF32, {3, 32, 32}}));
  EXPECT_EQ(facts->inputs[1].second, (TensorType{DType::kI64, {}}));
}

TEST(ModelTest, AnUnknownModelIsNamedWithTheList) {
  EXPECT_EQ(ErrorOf("resnet81"),
            "no model 'resnet81'; did you mean 'resnet18'? (built in: mlp, cnn, resnet18, "
            "resnet50, unet, gpt, "
            "bert, vit_ti, efficientnet_v2_s, mobilenet_v3_small, lstm). "
            "hint: a graph in text form ends in .ridge");
  EXPECT_EQ(ErrorOf(""),
            "no model '' (built in: mlp, cnn, resnet18, resnet50, unet, gpt, "
            "bert, vit_ti, efficientnet_v2_s, mobilenet_v3_small, lstm). "
            "hint: a graph in text form ends in .ridge");
}

TEST(ModelTest, WrongArgumentsSayWhatIsTaken) {
  EXPECT_EQ(ErrorOf("mlp:hiden=3"),
            "model 'mlp': no parameter 'hiden'; did you mean 'hidden'? (it takes: hidden, layers, "
            "inputs, classes)");
  EXPECT_EQ(ErrorOf("mlp:hidden=x"), "model 'mlp': hidden is 'x'; it must be an integer");
  EXPECT_EQ(ErrorOf("mlp:hidden=0"), "model 'mlp': hidden is 0; it must be from 1 to 1048576");
  EXPECT_EQ(ErrorOf("mlp:hidden=3,hidden=4"), "model 'mlp': hidden is given twice");
  EXPECT_EQ(ErrorOf("mlp:hidden"),
            "model 'mlp': 'hidden' is not key=value. hint: write mlp:key=value,key=value");
  EXPECT_EQ(ErrorOf("mlp:"),
            "model 'mlp': '' is not key=value. hint: write mlp:key=value,key=value");
}

TEST(ModelTest, AbsurdSizesAreRefusedNotComputed) {
  EXPECT_FALSE(BuildModel("mlp", {.batch = int64_t{1} << 60}).ok());
  EXPECT_FALSE(BuildModel("resnet18:image=4096", {.batch = int64_t{1} << 40}).ok());
  const Result<Graph> graph = BuildModel("cnn", {.batch = 0});
  EXPECT_EQ(graph.status().message(), "batch is 0; it must be at least 1");
  EXPECT_EQ(BuildModel("resnet18:image=8", {.batch = 1}).status().code(), ErrorCode::kInvalidModel);
}

TEST(BuildModel, TakesClassesThatTheSpecLeavesOpen) {
  const auto classes = [](const std::string& spec) {
    const Graph graph = *BuildModel(spec, {.batch = 2, .classes = 3});
    return graph.type(graph.FindOutput("logits")).dims.back();
  };
  EXPECT_EQ(classes("cnn"), 3);
  EXPECT_EQ(classes("cnn:filters=8"), 3);
  EXPECT_EQ(classes("cnn:classes=7"), 7);
  EXPECT_TRUE(LeavesClassesOpen("resnet18:image=64"));
  EXPECT_FALSE(LeavesClassesOpen("cnn:classes=7"));
  EXPECT_FALSE(LeavesClassesOpen("gpt"));
  EXPECT_FALSE(LeavesClassesOpen("net.onnx"));
}

}  // namespace
}  // namespace ridge
