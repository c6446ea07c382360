#include "ridge/models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ridge/graph/interpret.h"

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

// Blocks, embeddings and last norm, by hand.
int64_t Gpt3Parameters(int64_t hidden, int64_t layers) {
  return layers * (12 * hidden * hidden + 13 * hidden) + (50'257 + 2'048 + 2) * hidden;
}

// torchvision's and timm's model pages (num_params); YOLOv8: Ultralytics' model pages, less the 16
// fixed weights 0, 1, .., 15 that they count; GPT-2, BERT and Llama: their papers' files,
// with the classifier of two classes for BERT; Segment Anything: its image encoders, with a
// classifier of 1000; resnet50_bert: ResNet-50 without its head, BERT base, a classifier;
// pointnet2: the layers of yanx27/Pointnet_Pointnet2_pytorch for 40 classes, added up; conformer:
// Hugging Face's blocks, two convolutions and a linear layer of PyTorch; Whisper: the trainable
// ones of its files; gpt_nano and its like: minGPT's blocks and the embeddings; bert, gpt, unet and
// lstm: counted with PyTorch on bench/peers and on the word_language_model example.
TEST(ModelTest, ParameterCountsAreThePublishedOnes) {
  const std::map<std::string, int64_t> published = {
      {"mlp", 669'706},
      {"cnn", 54'410},
      {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},
      {"unet", 7'760'130},
      {"gpt", 14'585'856},
      {"gpt_nano", 84'912 + 48 * (50'257 + 1'024)},
      {"gpt_micro", 793'344 + 128 * (50'257 + 1'024)},
      {"gpt_mini", 2'669'568 + 192 * (50'257 + 1'024)},
      {"gpt2", 124'439'808},
      {"gpt2_medium", 354'823'168},
      {"gpt2_large", 774'030'080},
      {"gpt2_xl", 1'557'611'200},
      {"gpt:125m", Gpt3Parameters(768, 12)},
      {"gpt:350m", Gpt3Parameters(1024, 24)},
      {"gpt:760m", Gpt3Parameters(1536, 24)},
      {"gpt:1.3b", Gpt3Parameters(2048, 24)},
      {"gpt:2.7b", Gpt3Parameters(2560, 32)},
      {"gpt:6.7b", Gpt3Parameters(4096, 32)},
      {"gpt:13b", Gpt3Parameters(5120, 40)},
      {"gpt:175b", Gpt3Parameters(12288, 96)},
      {"bert", 5'405'442},
      {"bert_tiny", 4'385'920 + 2 * 128 + 2},
      {"bert_mini", 11'170'560 + 2 * 256 + 2},
      {"bert_small", 28'763'648 + 2 * 512 + 2},
      {"bert_medium", 41'373'184 + 2 * 512 + 2},
      {"bert_base", 109'482'240 + 2 * 768 + 2},
      {"bert_large", 335'141'888 + 2 * 1024 + 2},
      {"vit_ti", 5'717'416},
      {"vit_s", 22'050'664},
      {"vit_b", 86'567'656},
      {"vit_l14", 304'203'752},
      {"efficientnet_v2_s", 21'458'488},
      {"efficientnet_v2_m", 54'139'356},
      {"efficientnet_v2_l", 118'515'272},
      {"mobilenet_v3_small", 2'542'856},
      {"mobilenet_v3_large", 5'483'032},
      {"lstm", 13'987'678},
      {"convnext_tiny", 28'589'128},
      {"convnext_small", 50'223'688},
      {"convnext_base", 88'591'464},
      {"llama", 13'282'176},
      {"tinyllama_1b", 1'100'048'384},
      {"llama2_7b", 6'738'415'616},
      {"llama3_8b", 8'030'261'248},
      {"whisper_tiny", 37'184'640},
      {"whisper_base", 71'825'920},
      {"whisper_small", 240'582'912},
      {"whisper_medium", 762'321'920},
      {"whisper_large", 1'541'570'560},
      {"sam_vit_b", 89'670'912 + 257 * 1000},
      {"sam_vit_l", 308'278'272 + 257 * 1000},
      {"sam_vit_h", 637'026'048 + 257 * 1000},
      {"yolov8n", 3'157'200 - 16},
      {"yolov8s", 11'166'560 - 16},
      {"yolov8m", 25'902'640 - 16},
      {"yolov8l", 43'691'520 - 16},
      {"yolov8x", 68'229'648 - 16},
      {"resnet50_bert", 23'508'032 + 109'482'240 + 2 * (2048 + 768 + 1)},
      {"pointnet2", 1'475'688},
      {"conformer_s", 8'705'982},
      {"conformer_m", 27'318'814},
      {"conformer_l", 115'091'998},
  };
  std::map<std::string, int64_t> counted;
  for (const std::string& name : BuiltinModelNames()) counted[name] = ParameterCount(Build(name));
  EXPECT_EQ(counted, published);
  EXPECT_EQ(ParameterCount(Build("resnet18:image=32,classes=10")), 11'181'642);
}

// Brown et al., 2020, table 2.1.
TEST(ModelTest, SizesOfGpt3HaveTheNumbersInTheirNames) {
  for (const auto& [size, published] : std::map<std::string, double>{{"125m", 125e6},
                                                                     {"350m", 350e6},
                                                                     {"760m", 760e6},
                                                                     {"1.3b", 1.3e9},
                                                                     {"2.7b", 2.7e9},
                                                                     {"6.7b", 6.7e9},
                                                                     {"13b", 13e9},
                                                                     {"175b", 175e9}}) {
    const auto count = static_cast<double>(ParameterCount(Build("gpt:" + size)));
    EXPECT_NEAR(count / published, 1, 0.02) << size;
  }
}

TEST(ModelTest, ASizeTakesFurtherArguments) {
  EXPECT_EQ(ParameterCount(Build("gpt:125m,layers=1,context=16")),
            12 * 768 * 768 + 13 * 768 + (50'257 + 16 + 2) * 768);
  EXPECT_EQ(WithSizes("gpt:125m", {{"vocab", 300}}), "gpt:125m,vocab=300");
  EXPECT_EQ(ModelSpecText(*ParseModelSpec("gpt:125m,layers=1")), "gpt:125m,layers=1");
  EXPECT_EQ(ModelSpecText(*ParseModelSpec("gpt:layers=1")), "gpt:layers=1");
  EXPECT_THAT(ErrorOf("gpt:176b"), testing::StartsWith("no model 'gpt:176b'; did you mean "
                                                       "'gpt:175b'? (built in: "));
  EXPECT_EQ(ErrorOf("gpt:175b,13b"),
            "model 'gpt:175b': '13b' is not key=value. hint: write gpt:175b,key=value,key=value");
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

TEST(ModelTest, ArgumentsAreWholeOrRealNumbersOrNames) {
  const Graph bert =
      Build("bert:tokens=8,pooling=mean,activation=relu,epsilon=1e-5,inner=24,mask=1");
  EXPECT_EQ(TypeOf(bert, "attention_mask"), (TensorType{DType::kI64, {4, 8}}));
  EXPECT_EQ(TypeOf(bert, "bert.encoder.layer.0.intermediate.dense.weight").dims[0], 24);
  EXPECT_EQ(bert.FindValue("bert.pooler.dense.weight"), kNoValue);
  EXPECT_EQ(ErrorOf("bert:pooling=max"),
            "model 'bert': pooling is 'max'; it must be one of pooler, first, mean");
  EXPECT_EQ(ErrorOf("bert:epsilon=2"), "model 'bert': epsilon is 2; it must be from 0 to 1");
  EXPECT_EQ(ErrorOf("bert:epsilon=nan"), "model 'bert': epsilon is nan; it must be from 0 to 1");
  EXPECT_EQ(ErrorOf("bert:epsilon=small"), "model 'bert': epsilon is 'small'; it must be a number");
}

TEST(ModelTest, TokensOfBertAreAtMostItsPositions) {
  EXPECT_EQ(TypeOf(Build("bert"), "tokens").dims[1], 128);
  EXPECT_EQ(TypeOf(Build("bert:positions=24"), "tokens").dims[1], 24);
  EXPECT_EQ(ErrorOf("bert:positions=24,tokens=32"),
            "bert: tokens is 32; it must be at most positions, 24. hint: tokens=24, or length=24 "
            "behind the data");
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
    const auto has = [&](const char* input) { return graph.FindValue(input) != kNoValue; };
    const char* input = has("image")    ? "image"
                        : has("points") ? "points"
                        : has("tokens") ? "tokens"
                                        : "features";
    EXPECT_EQ(TypeOf(graph, input).dims[0], 6) << model.name;
    const std::string label = has("boxes") ? "classes" : has("text_length") ? "text" : "label";
    EXPECT_EQ(TypeOf(graph, label).dims[0], 6);
    EXPECT_EQ(TypeOf(graph, label).dtype, DType::kI64);
    EXPECT_EQ(graph.type(graph.FindOutput("logits")).dims[0], 6);
    EXPECT_EQ(graph.type(graph.FindOutput("loss")).rank(), 0);
  }
}

// One frame of four, rounded up.
TEST(ModelTest, AConformerHearsAQuarterOfTheFrames) {
  for (const int64_t frames : {4, 5, 8, 9}) {
    const Graph graph = Build("conformer_s:layers=1,classes=7,frames=" + std::to_string(frames), 2);
    EXPECT_EQ(graph.type(graph.FindOutput("logits")).dims, (Dims{2, (frames + 3) / 4, 7}));
  }
  EXPECT_EQ(ErrorOf("conformer_s:kernel=32"), "conformer_s: kernel is 32; it must be odd");
  EXPECT_EQ(
      ErrorOf("conformer_s:heads=5"),
      "conformer_s: hidden is 144 and heads is 5; hidden must be even and a multiple of heads");
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

TEST(ModelTest, AWidthReachesTheImageOfEveryModelThatHasOne) {
  int models = 0;
  for (const BuiltinModel& model : BuiltinModels()) {
    const std::vector<ModelParameter>& parameters = model.parameters;
    const bool has_width =
        std::any_of(parameters.begin(), parameters.end(),
                    [](const ModelParameter& p) { return std::string_view(p.name) == "width"; });
    if (!has_width) continue;
    ++models;
    const Graph graph = Build(std::string(model.name) + ":image=32,width=48");
    EXPECT_EQ(TypeOf(graph, "image").dims[2], 32) << model.name;
    EXPECT_EQ(TypeOf(graph, "image").dims[3], 48) << model.name;
  }
  EXPECT_GE(models, 3);  // cnn and two families of ResNet
}

TEST(ModelTest, HeadsOfWhisperFit) {
  EXPECT_EQ(ErrorOf("whisper_tiny:heads=5"),
            "whisper_tiny: hidden is 384 and heads is 5; hidden must be even and a multiple of "
            "heads");
}

TEST(ModelTest, AnUnknownModelIsNamedWithTheList) {
  const std::string rest =
      " (built in: mlp, cnn, resnet18, resnet50, unet, gpt, bert, vit_ti, efficientnet_v2_s, "
      "mobilenet_v3_small, lstm, convnext_tiny, llama, whisper_tiny, sam_vit_b, resnet50_bert, "
      "yolov8n, pointnet2, conformer_s, and other sizes of them). hint: `ridge models` lists all; "
      "a graph in "
      "text form "
      "ends in "
      ".ridge";
  EXPECT_EQ(ErrorOf("resnet81"), "no model 'resnet81'; did you mean 'resnet18'?" + rest);
  EXPECT_EQ(ErrorOf("gpt2_medum"), "no model 'gpt2_medum'; did you mean 'gpt2_medium'?" + rest);
  EXPECT_EQ(ErrorOf(""), "no model ''" + rest);
}

// A variant is its model at other defaults, which the spec still may set.
TEST(ModelTest, AVariantIsItsModelAtOtherSizes) {
  const Graph variant = Build("bert_mini:tokens=16,classes=3");
  const Graph same = Build("bert:vocab=30522,hidden=256,layers=4,heads=4,tokens=16,classes=3");
  EXPECT_EQ(ParameterCount(variant), ParameterCount(same));
  EXPECT_EQ(variant.nodes().size(), same.nodes().size());
  EXPECT_EQ(TypeOf(variant, "tokens").dims[1], 16);
  EXPECT_EQ(WithSizes("gpt2", {{"vocab", 300}}), "gpt2:vocab=300");
  EXPECT_EQ(ErrorOf("vit_l14:image=16"),
            "vit_l14: image is 16; it must be a multiple of patch, 14");
}

TEST(ModelTest, HeadsOfLlamaFit) {
  EXPECT_EQ(ErrorOf("llama:heads=5"),
            "llama: hidden is 384 and heads is 5; hidden must be a multiple of heads");
  EXPECT_EQ(ErrorOf("llama:kv_heads=4"),
            "llama: heads is 6 and kv_heads is 4; heads must be a multiple of kv_heads");
  EXPECT_EQ(
      ErrorOf("llama:heads=128"),
      "llama: a head has 3 numbers, hidden / heads; they must be even, as they turn in pairs");
}

TEST(ModelTest, LevelsOfPointNet2AreThoseOfItsTable) {
  const Graph graph = Build("pointnet2");
  EXPECT_EQ(TypeOf(graph, "points"), (TensorType{DType::kF32, {4, 1024, 3}}));
  EXPECT_EQ(TypeOf(graph, "sa1.mlp_convs.0.weight"), (TensorType{DType::kF32, {64, 3, 1, 1}}));
  EXPECT_EQ(TypeOf(graph, "sa2.mlp_convs.0.weight"), (TensorType{DType::kF32, {128, 131, 1, 1}}));
  EXPECT_EQ(TypeOf(graph, "sa3.mlp_bns.2.running_mean"), (TensorType{DType::kF32, {1024}}));
  EXPECT_EQ(TypeOf(graph, "sa1.neighbours"), (TensorType{DType::kI64, {4, 512, 32}}));
  EXPECT_EQ(TypeOf(graph, "sa2.neighbours"), (TensorType{DType::kI64, {4, 128, 64}}));
  EXPECT_EQ(ErrorOf("pointnet2:points=256"),
            "pointnet2: centers is 512; it must be at most points, 256. hint: centers=128");
}

TEST(ModelTest, PatchesAndHeadsOfSamFit) {
  EXPECT_EQ(ErrorOf("sam_vit_b:image=40"), "sam_vit_b: image is 40; it must be a multiple of 16");
  EXPECT_EQ(ErrorOf("sam_vit_h:heads=7"), "sam_vit_h: hidden is 1280; it must be a multiple of 7");
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

TEST(ModelTest, SizesOfTheDataFillWhatTheSpecLeavesOpen) {
  const std::vector<ModelSize> sizes = {{"inputs", 4}, {"classes", 3}};
  std::vector<std::string> added;
  EXPECT_EQ(WithSizes("mlp", sizes, &added), "mlp:inputs=4,classes=3");
  EXPECT_EQ(added, (std::vector<std::string>{"inputs=4", "classes=3"}));
  EXPECT_EQ(WithSizes("mlp:hidden=8,inputs=5", sizes), "mlp:hidden=8,inputs=5,classes=3");
  EXPECT_EQ(WithSizes("cnn", sizes), "cnn:classes=3");
  EXPECT_EQ(WithSizes("gpt", sizes), "gpt");
  EXPECT_EQ(WithSizes("net.ridge", sizes), "net.ridge");
  EXPECT_EQ(WithSizes("mlp:hidden", sizes), "mlp:hidden");
}

// The tokens that the mask shows give the same logits in a shorter form, by the operators'
// references.
TEST(ModelTest, AShorterFormComputesTheSame) {
  for (const char* pooling : {"pooler", "first", "mean"}) {
    const std::string spec =
        std::string("bert:vocab=20,hidden=8,layers=2,heads=2,positions=8,mask=1,") +
        "tokens=8,pooling=" + pooling;
    const Result<std::string> shorter = AtLength(spec, 3);
    ASSERT_TRUE(shorter.ok()) << shorter.status().message();
    EXPECT_EQ(*shorter, std::string("bert:vocab=20,hidden=8,layers=2,heads=2,positions=8,mask=1,") +
                            "pooling=" + pooling + ",tokens=3");
    const auto logits = [](const std::string& built, int64_t length) {
      Tensor tokens(TensorType{DType::kI64, {2, length}}),
          mask(TensorType{DType::kI64, {2, length}});
      Tensor label(TensorType{DType::kI64, {2}});
      for (int64_t row = 0; row < 2; ++row) {
        label.as_mutable<int64_t>()[row] = row;
        for (int64_t t = 0; t < length; ++t) {
          const bool shown = t < 2 + row;
          tokens.as_mutable<int64_t>()[row * length + t] = shown ? 3 + row + t : 0;
          mask.as_mutable<int64_t>()[row * length + t] = shown ? 1 : 0;
        }
      }
      const Graph graph = Build(built, /*batch=*/2);
      const auto values = EvaluateGraph(
          graph, {{"tokens", tokens}, {"attention_mask", mask}, {"label", label}}, /*seed=*/3);
      EXPECT_TRUE(values.ok()) << values.status().message();
      return (*values)[static_cast<size_t>(graph.FindOutput("logits"))];
    };
    const Tensor whole = logits(spec, 8), cut = logits(*shorter, 3);
    ASSERT_EQ(whole.type(), cut.type());
    for (int64_t i = 0; i < whole.type().elements(); ++i) EXPECT_NEAR(whole.at(i), cut.at(i), 1e-6);
  }
}

TEST(ModelTest, AModelWhoseWeightsDependOnTheLengthHasNoShorterForm) {
  EXPECT_EQ(AtLength("gpt:layers=1", 8).status().message(),
            "gpt:layers=1: batches of several lengths need a built-in model whose weights do not "
            "depend on the length, such as bert. hint: leave --bucket out");
  EXPECT_EQ(AtLength("net.onnx", 8).status().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ridge
