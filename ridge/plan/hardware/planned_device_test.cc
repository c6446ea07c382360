#include "ridge/plan/hardware/planned_device.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/ops/shared/attention.h"
#include "ridge/graph/ops/shared/conv.h"
#include "ridge/graph/text.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/hardware/conv_workspaces.h"
#include "ridge/plan/planner.h"

namespace ridge {
namespace {

// relu(x w) w2: two products and a pointwise node.
NamedGraph TwoLayers(int64_t batch, DType dtype) {
  GraphBuilder b("two");
  const Value x = b.Input("x", {dtype, {batch, 1024}}, {"batch", ""});
  const Value w = b.Parameter("w", {dtype, {1024, 4096}}, Init::Normal(1));
  const Value w2 = b.Parameter("w2", {dtype, {4096, 512}}, Init::Normal(1));
  b.Output("y",
           Op("matmul", {Op("relu", {Op("matmul", {x, w}, {}, "one")}, {}, "r"), w2}, {}, "two"));
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return {"run", std::move(*graph)};
}

Result<Program> PlanFor(const Hardware& hardware, int64_t batch, DType dtype = DType::kF32,
                        const DeviceUse& use = {}) {
  PlannedDevice device(hardware, use);
  const Result<PlannedHardware> facts = PlanHardware(hardware, use);
  EXPECT_TRUE(facts.ok());
  return PlanProgram("two", {TwoLayers(batch, dtype)}, device, Roofline(facts->profile), {});
}

Hardware Device(const std::string& id) {
  Result<Hardware> found = FindHardware(id);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return std::move(*found);
}

TEST(PlannedDeviceTest, EveryDeviceWhoseRatesAreKnownHasAPlan) {
  int planned = 0;
  for (const Hardware& hardware : HardwareCatalog()) {
    if (!PlanHardware(hardware).ok()) continue;
    const Result<Program> program = PlanFor(hardware, 64);
    ASSERT_TRUE(program.ok()) << hardware.id << ": " << program.status().message();
    EXPECT_GT(PlannedSeconds(program->steps.front()), 0) << hardware.id;
    ++planned;
  }
  EXPECT_GE(planned, 70);
}

TEST(PlannedDeviceTest, NoStepIsFasterThanItsPeaksAllow) {
  for (const Hardware& hardware : HardwareCatalog()) {
    if (!PlanHardware(hardware).ok()) continue;
    for (const int64_t batch : {1, 128, 16384}) {
      const Result<Program> program = PlanFor(hardware, batch);
      ASSERT_TRUE(program.ok());
      double flops = 0;
      for (const PlannedNode& node : program->steps.front().nodes)
        flops += static_cast<double>(node.cost.flops);
      EXPECT_GE(
          PlannedSeconds(program->steps.front()),
          flops / (std::max(*hardware.fp32_tflops, hardware.fp32_matrix_tflops.value_or(0)) * 1e12))
          << hardware.id;
    }
  }
}

TEST(PlannedDeviceTest, LargerBatchesUseMoreOfThePeak) {
  const Hardware h100 = Device("h100-sxm");
  double last = 1e9;
  for (const int64_t batch : {16, 256, 4096, 65536}) {
    const Result<Program> program = PlanFor(h100, batch, DType::kBF16);
    ASSERT_TRUE(program.ok());
    const double a_sample = PlannedSeconds(program->steps.front()) / static_cast<double>(batch);
    EXPECT_LT(a_sample, last);
    last = a_sample;
  }
}

// Libraries have all other operators.
class OnlyNorms : public AbsentKernels {
 public:
  std::optional<WorkspaceBytes> Workspace(const OpDef& op, const OpCall&,
                                          int64_t library_bytes) const override {
    if (op.name != "layer_norm") return std::nullopt;
    EXPECT_EQ(library_bytes, 1 << 20);
    return WorkspaceBytes{4864, /*is_bound=*/true};
  }
  bool Fuses(const OpDef& op, const OpCall&) const override { return op.name == "matmul"; }
};

Dims DimsFrom(const std::string& text) {
  Dims dims;
  for (const std::string_view part : SplitAt(text, 'x'))
    dims.push_back(std::stoll(std::string(part)));
  return dims;
}

// The operator and the call that a question is about.
struct AskedCall {
  const OpDef* op = nullptr;
  OpCall call;
  bool tf32 = false;
};

AskedCall AttentionAskedBy(const std::string& question) {
  std::istringstream in(question);
  std::string op, type, queries, between, keys;
  in >> op >> type >> queries >> between >> keys;
  const DType dtype = *ParseDType(type);
  const Dims q = DimsFrom(queries), kv = DimsFrom(keys);
  AskedCall asked{FindOp(op), {}};
  asked.call.inputs = {
      {dtype, q}, {dtype, {q[0], kv[0], kv[1], q[3]}}, {dtype, {q[0], kv[0], kv[1], kv[2]}}};
  asked.call.attrs = AttentionAttrs();
  return asked;
}

// Attention without dropout, which ridge gives to a kernel of its own.
bool HasFormula(const std::string& question) {
  return question.starts_with("attention") && !question.ends_with("dropout");
}

TEST(PlannedDeviceTest, WorkspacesOfAttentionAreWhatCudnnAnswers) {
  const std::string source = std::getenv("RIDGE_SOURCE_DIR");
  const OnlyNorms norms;
  const auto planned = [&](const std::string& id, const AskedCall& asked) {
    PlannedDevice device(Device(id), {.kernels = &norms});
    return device.Candidates(*asked.op, asked.call, {}).choices.front().workspace_bytes;
  };
  size_t compared = 0;
  for (const RecordedAnswer& row :
       ReadRecorded(*ReadFile(source + "/ridge/plan/hardware/attention_workspaces.txt"))) {
    if (!HasFormula(row.question)) continue;
    const AskedCall asked = AttentionAskedBy(row.question);
    EXPECT_EQ(planned(row.device, asked), row.answer.bytes) << row.device << ": " << row.question;
    // 12.0: it was not asked; cuDNN's frontend gives the path without scores to 10.x alone.
    if (row.device == "rtx4090") {
      EXPECT_EQ(planned("rtx5090", asked), row.answer.bytes) << row.question;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 33U * 2 * 9) << "attentions, their gradients, devices";
}

AskedCall ConvAskedBy(const std::string& question) {
  std::istringstream in(question);
  std::string op, type, out, x, w, key, value;
  in >> op >> type >> out >> x >> w;
  AskedCall asked{FindOp(op), {}, type == "tf32"};
  const DType dtype = *ParseDType(asked.tf32 ? "f32" : type);
  OpCall& call = asked.call;
  call.attrs = asked.op->attr_defaults;
  call.attrs["out_dtype"] = out;
  std::string steps;
  while (in >> key >> value) {
    if (key == "with") steps = value;
    if (key != "with") call.attrs[key] = DimsFrom(value);
  }
  const TensorType image{dtype, DimsFrom(x)}, weight{dtype, DimsFrom(w)};
  call.attrs["groups"] = image.dims[1] / weight.dims[1];
  const TensorType y{dtype, MakeConvGeometry(call, image.dims, weight.dims)->output_dims()};
  if (op == "conv") {
    call.inputs = {image, weight, OpCall::Absent()};
    if (steps.starts_with("bias")) call.inputs[2] = {*ParseDType(out), {weight.dims[0]}};
    if (steps.ends_with("relu")) call.attrs["epilogue"] = std::string("relu");
  } else if (op == "conv_grad_input") {
    call.inputs = {y, weight};
    call.attrs["input_dims"] = image.dims;
  } else {
    call.inputs = {image, y};
    call.attrs["weight_dims"] = weight.dims;
  }
  call.outputs = *asked.op->infer_types(call);
  return asked;
}

KernelChoice ChoiceFor(const Hardware& hardware, const AskedCall& asked) {
  PlannedDevice device(hardware, {asked.tf32 ? F32Products::kTf32 : F32Products::kExact});
  return device.Candidates(*asked.op, asked.call, {}).choices.back();  // not on a padded image
}

TEST(PlannedDeviceTest, RecordedWorkspacesAreTakenAndNoneIsAboveTheBound) {
  for (const RecordedAnswer& row : RecordedConvs()) {
    const AskedCall asked = ConvAskedBy(row.question);
    const KernelChoice recorded = ChoiceFor(Device(row.device), asked);
    EXPECT_EQ(recorded.key, kCudnnKey + row.question);
    EXPECT_EQ(recorded.workspace_bytes, row.answer.bytes) << row.question;
    Hardware unlisted = Device(row.device);
    unlisted.id = "unlisted";
    const int64_t bound = ChoiceFor(unlisted, asked).workspace_bytes;
    EXPECT_GE(bound, std::max(row.answer.bytes, row.answer.first_bytes))
        << row.device << ": " << row.question;
  }
}

// x[256,3,224,224] in `type`, read by a convolution and by its weights' gradient.
Result<Program> PlanStem(const char* type, const DeviceUse& use = {}, bool layout = true) {
  const std::string text = fmt::format(
      "graph stem\n"
      "  x = input {0}[256,3,224,224]\n"
      "  w = input {0}[64,3,7,7]\n"
      "  dy = input {0}[256,64,112,112]\n"
      "  y = conv(x, w, stride=[2,2], padding=[3,3,3,3])\n"
      "  dw = conv_grad_weight(x, dy, stride=[2,2], padding=[3,3,3,3], weight_dims=[64,3,7,7])\n"
      "  output y\n  output dw\n",
      type);
  PlannedDevice device(Device("h200-sxm"), use);
  PlanOptions options;
  options.layout = layout;
  return PlanProgram("stem", {{"run", *ParseGraph(text, "stem")}}, device, device.nominal(),
                     options);
}

std::vector<std::string> OpsOf(const Program& program) {
  std::vector<std::string> ops;
  for (const PlannedNode& node : program.steps.front().nodes) ops.push_back(node.op);
  return ops;
}

TEST(PlannedDeviceTest, AnImageOfThreeChannelsIsPaddedOnceForBothReaders) {
  const Result<Program> program = PlanStem("bf16");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(OpsOf(*program), (std::vector<std::string>{"reorder", "conv", "conv_grad_weight"}));
  const std::vector<PlannedNode>& nodes = program->steps.front().nodes;
  const PlannedValue& padded =
      program->steps.front().values[static_cast<size_t>(nodes[0].outputs[0])];
  EXPECT_EQ(padded.size_bytes, int64_t{256} * 8 * 224 * 224 * 2);
  constexpr int64_t kWeights = 64 * 8 * 7 * 7 * 2;
  EXPECT_EQ(nodes[1].choice.workspace_bytes, 0 + kWeights);          // cuDNN's answers for
  EXPECT_EQ(nodes[2].choice.workspace_bytes, 6'121'600 + kWeights);  // eight channels
}

TEST(PlannedDeviceTest, PaddingSavesTheSecondCopy) {
  const auto seconds = [](const Result<Program>& program) {
    return PlannedSeconds(program->steps.front());
  };
  const double padded_s = seconds(PlanStem("bf16")),
               plain_s = seconds(PlanStem("bf16", {}, /*layout=*/false));
  const double bytes_per_s = PlannedDevice(Device("h200-sxm")).nominal().facts().memory_bytes_per_s;
  const double copied = 256.0 * (3 + 8) * 224 * 224 * 2;
  EXPECT_NEAR(plain_s - padded_s, copied / bytes_per_s, 2e-6);
}

TEST(PlannedDeviceTest, NothingIsPaddedInF32OrByOtherPrograms) {
  DeviceUse eager;
  eager.software.eager = true;
  for (const Result<Program>& program : {PlanStem("f32"), PlanStem("bf16", eager)})
    EXPECT_EQ(OpsOf(*program), (std::vector<std::string>{"conv", "conv_grad_weight"}));
}

// Whom the plan asks, and what it is told.
TEST(PlannedDeviceTest, WhatIsNotOnRecordIsAsked) {
  std::vector<std::string> asked;
  DeviceUse use;
  use.ask_conv = [&](const std::string& question) -> std::optional<ConvReply> {
    asked.push_back(question);
    if (question.starts_with("conv_grad")) return std::nullopt;
    return ConvReply{"cuDNN 9.20.1", {123, 45}};
  };
  const std::string rest = " 7x8x9x9 16x8x3x3 stride 1x1 padding 1x1x1x1 dilation 1x1";
  PlannedDevice device(Device("h200-sxm"), use);
  const auto choice_for = [&](const std::string& question) {
    const AskedCall conv = ConvAskedBy(question);
    return device.Candidates(*conv.op, conv.call, {}).choices.front();
  };
  const KernelChoice answered = choice_for("conv bf16 bf16" + rest);
  EXPECT_EQ(answered.workspace_bytes, 123);
  ASSERT_TRUE(answered.answer);
  EXPECT_EQ(answered.answer->library, "cuDNN 9.20.1");
  EXPECT_TRUE(answered.answer->is_asked);
  EXPECT_EQ(answered.answer->first_bytes, 45);
  const KernelChoice refused = choice_for("conv_grad_input bf16 bf16" + rest);
  EXPECT_FALSE(refused.answer);
  EXPECT_EQ(refused.workspace_bytes, 32 << 20) << "the bound";
  EXPECT_EQ(asked, (std::vector<std::string>{"conv bf16 bf16" + rest,
                                             "conv_grad_input bf16 bf16" + rest}));
}

TEST(PlannedDeviceTest, AttentionOfOtherProgramsHasABound) {
  const AskedCall asked = AttentionAskedBy("attention_grad bf16 8x12x1024x64 keys 12x1024x64");
  PlannedDevice device(Device("h200-sxm"));
  const KernelChoice choice = device.Candidates(*asked.op, asked.call, {}).choices.front();
  EXPECT_TRUE(choice.is_bound);
  EXPECT_GT(choice.workspace_bytes, 201720064) << "what cuDNN takes";
}

TEST(PlannedDeviceTest, WhatIsJoinedIsWhatKernelsJoin) {
  const OnlyNorms norms;
  const auto joins = [&](const char* device, const char* op) {
    return PlannedDevice(Device(device), {.kernels = &norms}).rules().Fuses(*FindOp(op), {});
  };
  EXPECT_TRUE(joins("h200-sxm", "matmul"));
  EXPECT_FALSE(joins("h200-sxm", "conv"));
  EXPECT_TRUE(joins("mi300x", "conv")) << "no kernels of ours";
}

TEST(PlannedDeviceTest, AKernelOfOursTakesItsBytesAndIsNoQuestionToCudnn) {
  const OpDef& norm = *FindOp("layer_norm");
  const OpCall call{"y", {{DType::kF32, {4, 768}}}, {{DType::kF32, {4, 768}}}, norm.attr_defaults};
  DeviceUse use;
  const auto choice_on = [&](const char* device) {
    return PlannedDevice(Device(device), use).Candidates(norm, call, {}).choices.front();
  };
  EXPECT_EQ(choice_on("h200-sxm").workspace_bytes, 1 << 20) << "the bound";
  const OnlyNorms norms;
  use.kernels = &norms;
  EXPECT_EQ(choice_on("h200-sxm").workspace_bytes, 4864);
  EXPECT_TRUE(choice_on("h200-sxm").is_bound);
  EXPECT_EQ(choice_on("h200-sxm").key, "");
  EXPECT_EQ(choice_on("mi300x").workspace_bytes, 1 << 20) << "no kernels of ours";
}

TEST(PlannedDeviceTest, NobodyIsAskedWhatIsKnownOrHasNoEngine) {
  DeviceUse use;
  use.ask_conv = [](const std::string& question) -> std::optional<ConvReply> {
    ADD_FAILURE() << question;
    return std::nullopt;
  };
  PlannedDevice device(Device("h200-sxm"), use);
  const std::string rest = " 256x64x56x56 64x64x3x3 stride 1x1 padding 1x1x1x1 dilation 1x1";
  for (const char* question : {"conv bf16 bf16", "conv bf16 f32"}) {
    const AskedCall conv = ConvAskedBy(question + rest);
    EXPECT_FALSE(device.Candidates(*conv.op, conv.call, {}).choices.empty());
  }
}

TEST(PlannedDeviceTest, WhatIsNotKnownIsNamed) {
  Hardware unknown;
  unknown.id = "mine";
  unknown.memory_gb_s = 100;
  EXPECT_EQ(PlanHardware(unknown).status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(PlanHardware(unknown).status().message(),
            "mine: memory_gb, fp32_tflops are not known, so nothing can be planned for it. hint: "
            "`ridge devices show mine --toml` begins a file of your own");
}

TEST(PlannedDeviceTest, ACpuIsPlannedWithoutItsMemoryWhereThatIsNotNeeded) {
  const Hardware xeon = *FindHardware("xeon-8280");
  EXPECT_EQ(PlanHardware(xeon).status().code(), ErrorCode::kUnsupported);
  const Result<PlannedHardware> planned = PlanHardware(xeon, {.needs_memory = false});
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(planned->memory_bytes, 0);
  Hardware gpu = *FindHardware("l4");
  gpu.memory_gb.reset();
  EXPECT_FALSE(PlanHardware(gpu, {.needs_memory = false}).ok());
}

double SecondsOf(const Hardware& hardware, const DeviceUse& use, DType dtype = DType::kF32) {
  const Result<Program> program = PlanFor(hardware, 4096, dtype, use);
  EXPECT_TRUE(program.ok());
  return PlannedSeconds(program->steps.front());
}

TEST(PlannedDeviceTest, AScaleMultipliesTheStep) {
  DeviceUse slow;
  slow.software.scale = 1.5;
  for (const char* id : {"a100-sxm4-40g", "rtx4090", "mi250"}) {
    const double once = SecondsOf(Device(id), {});
    EXPECT_NEAR(SecondsOf(Device(id), slow) / once, 1.5, 1e-9) << id;
  }
}

// Two products and a pointwise node that was not joined to one.
TEST(PlannedDeviceTest, AProgramThatRunsStepByStepLaunchesEachNode) {
  const Result<Program> program = PlanFor(Device("h100-sxm"), 64);
  int64_t kernels = 0;
  for (const PlannedNode& node : program->steps.front().nodes)
    kernels += EagerKernels(*node.def, node.call);
  EXPECT_EQ(kernels, 3);
}

TEST(PlannedDeviceTest, Tf32IsFasterWhereTheDeviceHasIt) {
  DeviceUse tf32;
  tf32.products = F32Products::kTf32;
  EXPECT_LT(SecondsOf(Device("a100-sxm4-40g"), tf32), 0.5 * SecondsOf(Device("a100-sxm4-40g"), {}));
  EXPECT_EQ(SecondsOf(Device("v100-sxm2-16g"), tf32), SecondsOf(Device("v100-sxm2-16g"), {}));
}

// Of `rows` samples through the two layers.
double LinearSeconds(const char* device, int64_t rows, bool fp8, DType dtype = DType::kBF16) {
  DeviceUse use;
  use.operands = DType::kBF16;
  use.linear_fp8 = fp8;
  return PlannedSeconds(PlanFor(Device(device), rows, dtype, use)->steps.front());
}

// An H100 multiplies twice as fast; casts and what they launch take a part of it, and all of it
// where layers are small.
TEST(PlannedDeviceTest, LinearLayersIn8BitsPayTheirCasts) {
  const double large =
      LinearSeconds("h100-sxm", 16384, true) / LinearSeconds("h100-sxm", 16384, false);
  EXPECT_GT(large, 0.5);
  EXPECT_LT(large, 0.95);
  EXPECT_GT(LinearSeconds("h100-sxm", 64, true), LinearSeconds("h100-sxm", 64, false));
  EXPECT_EQ(LinearSeconds("h100-sxm", 100, true), LinearSeconds("h100-sxm", 100, false));
  EXPECT_EQ(LinearSeconds("h100-sxm", 128, true, DType::kF32),
            LinearSeconds("h100-sxm", 128, false, DType::kF32));
}

TEST(PlannedDeviceTest, ADeviceWithout8BitsIsNotPlannedInThem) {
  DeviceUse use;
  use.linear_fp8 = true;
  EXPECT_EQ(
      PlanHardware(Device("a100-sxm4-40g"), use).status().message(),
      "a100-sxm4-40g: fp8_tflops is not known, so nothing can be planned for it. hint: `ridge "
      "devices show a100-sxm4-40g --toml` begins a file of your own");
}

TEST(PlannedDeviceTest, APlanIsForOneDieAndItsMemory) {
  Hardware two = Device("mi250");
  Hardware one = two;
  one.dies.reset();
  EXPECT_EQ(PlanHardware(two)->memory_bytes, PlanHardware(one)->memory_bytes / 2);
  EXPECT_NEAR(SecondsOf(two, {}) / SecondsOf(one, {}), 2, 0.1);
}

// Seconds of attention of some queries of 16 sequences over 2048 keys, without the gap.
double AttentionSeconds(PlannedDevice& device, int64_t queries) {
  OpCall call;
  const TensorType q{DType::kF16, {16, 32, queries, 128}}, kv{DType::kF16, {16, 32, 2048, 128}};
  call.inputs = {q, kv, kv};
  call.attrs = AttentionAttrs();
  const OpDef& op = *FindOp("attention");
  call.outputs = *op.infer_types(call);
  const KernelChoice choice = device.Candidates(op, call, {}).choices.front();
  const Work work = WorkOf(&op, call, CallCost(op, call));
  return device.nominal().Seconds(work, choice) - device.nominal().facts().launch_s;
}

TEST(PlannedDeviceTest, OneQueryReadsItsKeysAtTheRateOfAStream) {
  PlannedDevice device(Device("a100-sxm4-80g"));
  const double bytes = 2.0 * 2 * 16 * 32 * 2048 * 128;
  const double stream_s = bytes / device.nominal().facts().memory_bytes_per_s;
  EXPECT_NEAR(AttentionSeconds(device, 1) / stream_s, 1, 0.01);
}

TEST(PlannedDeviceTest, ManyQueriesReachLessThanAProduct) {
  PlannedDevice device(Device("a100-sxm4-80g"));
  const double flops = 2.0 * 2 * 16 * 32 * 2048 * 2048 * 128;
  EXPECT_LT(flops / AttentionSeconds(device, 2048), 0.6 * 312e12);
}

// Seconds of a convolution that cuDNN is asked about so, without the launches.
double ConvSeconds(const DeviceUse& use, const std::string& question) {
  PlannedDevice device(Device("v100-sxm2-16g"), use);
  const AskedCall conv = ConvAskedBy(question);
  const KernelChoice choice = device.Candidates(*conv.op, conv.call, {}).choices.front();
  return device.nominal().Seconds(WorkOf(conv.op, conv.call, CallCost(*conv.op, conv.call)),
                                  choice);
}

TEST(PlannedDeviceTest, AProgramThatIsChannelsFirstCopiesTheImagesOf16BitConvolutions) {
  DeviceUse last, first;
  last.software.eager = first.software.eager = first.software.channels_first = true;
  const std::string rest = " 256x64x56x56 128x64x1x1 stride 1x1 padding 0x0x0x0 dilation 1x1";
  const DeviceFacts facts = PlannedDevice(Device("v100-sxm2-16g"), last).nominal().facts();
  const double elements = 256.0 * (64 + 128) * 56 * 56 + 128 * 64;
  for (const char* op : {"conv", "conv_grad_input", "conv_grad_weight"}) {
    const auto seconds = [&](const DeviceUse& use, const char* types, const std::string& shapes) {
      return ConvSeconds(use, fmt::format("{} {}{}", op, types, shapes));
    };
    EXPECT_NEAR(seconds(first, "f16 f16", rest) - seconds(last, "f16 f16", rest),
                2 * 2 * elements / facts.memory_bytes_per_s + 3 * facts.launch_s, 1e-9)
        << op;
    EXPECT_EQ(seconds(first, "f32 f32", rest), seconds(last, "f32 f32", rest)) << op;
    const std::string depthwise = " 256x64x56x56 64x1x3x3 stride 1x1 padding 1x1x1x1 dilation 1x1";
    EXPECT_EQ(seconds(first, "f16 f16", depthwise), seconds(last, "f16 f16", depthwise)) << op;
  }
}

TEST(PlannedDeviceTest, ExactF32WindowsOf3x3AndStride1HaveFewerMultiplications) {
  const auto seconds = [](const std::string& types, const std::string& window,
                          F32Products products = F32Products::kExact) {
    DeviceUse use;
    use.products = products;
    return ConvSeconds(use, "conv " + types + " 64x256x28x28 256x256x3x3 " + window);
  };
  const std::string same = "stride 1x1 padding 1x1x1x1 dilation 1x1",
                    wide = "stride 1x1 padding 2x2x2x2 dilation 2x2";
  EXPECT_NEAR(seconds("f32 f32", same) / seconds("f32 f32", same, F32Products::kTf32), 1 / 1.5,
              0.01);  // a V100 multiplies alike, but tf32 has no such kernels
  EXPECT_EQ(seconds("f32 f32", wide), seconds("f32 f32", wide, F32Products::kTf32));
  EXPECT_EQ(seconds("f16 f16", same), seconds("f16 f16", same, F32Products::kTf32));
}

// An RTX 6000 Ada has 2.2 times the peak of an RTX 4090 and two thirds of its power.
TEST(PlannedDeviceTest, ProductsAreNoFasterThanThePowerSustains) {
  Hardware card = Device("rtx6000-ada");
  const double capped = SecondsOf(card, {}, DType::kBF16);
  card.power_w = 2 * *card.power_w;
  EXPECT_LT(SecondsOf(card, {}, DType::kBF16), 0.9 * capped);
  card.power_w.reset();
  EXPECT_LT(SecondsOf(card, {}, DType::kBF16), 0.9 * capped) << "unknown power bounds nothing";
}

}  // namespace
}  // namespace ridge
