// Graphs written in several opsets and read again give the same numbers, at the extents they were
// written with and at others.
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/random.h"
#include "ridge/core/test_folder.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/onnx/export/export.h"
#include "ridge/onnx/export/exporter.h"
#include "ridge/onnx/import/import.h"

namespace ridge {
namespace {

struct Case {
  const char* name;
  const char* text;             // after "graph net"
  int64_t opset;                // the lowest that holds it
  std::vector<int64_t> others;  // that write it in other nodes
  int64_t below = 3;            // integers of inputs are in [-below, below)
};

std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

Tensor MakeUp(const ValueInfo& info, int64_t below) {
  Tensor tensor(info.type);
  const RandomKey key = {.seed = 7, .stream = StableHash(info.name)};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto block = DrawBlock(key, 0, static_cast<uint64_t>(i));
    const double real = 2.0 * static_cast<double>(ToUniform(block[0])) - 1;
    const double value = IsFloat(info.type.dtype)          ? real
                         : info.type.dtype == DType::kBool ? static_cast<double>(block[0] % 2)
                                                           : std::floor(real * double(below));
    StoreFromDouble(info.type.dtype, tensor.mutable_data(), i, value);
  }
  return tensor;
}

std::map<std::string, Tensor> ValuesOf(const Graph& graph) {
  std::map<std::string, Tensor> values;
  for (const ValueInfo& info : graph.values()) {
    if (info.kind == ValueKind::kParameter) values[info.name] = MakeUp(info, 1);
  }
  return values;
}

std::vector<Tensor> Outputs(const Graph& graph, const std::map<std::string, Tensor>& given) {
  const Result<std::vector<Tensor>> values = EvaluateGraph(graph, given);
  EXPECT_TRUE(values.ok()) << values.status().message();
  std::vector<Tensor> outputs;
  if (!values.ok()) return outputs;
  for (const GraphOutput& output : graph.outputs())
    outputs.push_back((*values)[static_cast<size_t>(output.value)]);
  return outputs;
}

class ExportRoundTrip : public testing::TestWithParam<Case> {
 protected:
  static Graph Parse(int64_t batch) {
    const Result<Graph> graph = ParseGraph(std::string("graph net\n") + GetParam().text, "net");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (UnboundDims(*graph).empty()) return *graph;
    const Result<Graph> bound = BindDims(*graph, {{"batch", batch}});
    EXPECT_TRUE(bound.ok()) << bound.status().message();
    return *bound;
  }

  static void ExpectSameNumbers(int64_t batch, const std::string& path) {
    const Graph graph = Parse(batch);
    const Result<OnnxModel> model = OnnxModel::Open(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    OnnxImportOptions options;
    if (!OpenOnnxDims(*model, {}).empty()) options.dims["batch"] = batch;
    const Result<OnnxImport> import = ImportOnnx(*model, options);
    ASSERT_TRUE(import.ok()) << import.status().message();
    std::map<std::string, Tensor> inputs;
    for (ValueId id : graph.ValuesOfKind(ValueKind::kInput))
      inputs[graph.value(id).name] = MakeUp(graph.value(id), GetParam().below);
    std::map<std::string, Tensor> given = ValuesOf(graph);
    given.insert(inputs.begin(), inputs.end());
    const std::vector<Tensor> want = Outputs(graph, given), got = Outputs(import->graph, inputs);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) ExpectNear(want[i], got[i]);
  }

  static void ExpectNear(const Tensor& want, const Tensor& got) {
    ASSERT_EQ(want.type(), got.type());
    for (int64_t i = 0; i < want.elements(); ++i) {
      const double a = want.at(i), b = got.at(i);
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_NEAR(a, b, 1e-6 * std::max(1.0, std::abs(a))) << i;
    }
  }
};

TEST_P(ExportRoundTrip, ReadBackGivesTheSameNumbers) {
  std::vector<int64_t> opsets = GetParam().others;
  opsets.push_back(0);
  for (const int64_t opset : opsets) {
    SCOPED_TRACE(opset);
    const Graph graph = Parse(2);
    Result<OnnxDocument> document = ExportOnnx(graph, ValuesOf(graph), {}, {.opset = opset});
    ASSERT_TRUE(document.ok()) << document.status().message();
    const int64_t written = document->proto->opset_import(0).version();
    EXPECT_EQ(written, opset == 0 ? GetParam().opset : opset);
    EXPECT_TRUE(document->notes.empty()) << document->notes[0];
    const std::string path = TestFolder() + "/net.onnx";
    const Result<OnnxFiles> files = WriteOnnx(std::move(*document), path);
    ASSERT_TRUE(files.ok()) << files.status().message();
    ExpectSameNumbers(2, path);
    ExpectSameNumbers(5, path);
  }
}

constexpr char kAttention[] = R"(
  q = input f32[batch,4,6,3]
  k = input f32[batch,2,5,3]
  v = input f32[batch,2,5,2]
  y, lse = attention(q, k, v, scale=0.7, softcap=2)
  output y
)";
constexpr char kCausal[] = R"(
  q = input f32[batch,2,6,3]
  k = input f32[batch,2,6,3]
  v = input f32[batch,2,6,3]
  y, lse = attention(q, k, v, scale=0.5, causal=1)
  output y
)";
constexpr char kBlind[] = R"(
  q = input f32[batch,2,6,3]
  m = input bool[batch,1,6,2]
  v = input f32[batch,2,2,3]
  y, lse = attention(q, v, v, m, scale=0.5, causal=1, causal_offset=-2)
  output y
)";
constexpr char kLongCausal[] = R"(
  x = input f32[1,2,batch,3]
  y, lse = attention(x, x, x, scale=0.5, causal=1)
  output y
)";
constexpr char kNorms[] = R"(
  x = input f32[batch,4,6]
  g = parameter f32[6]
  b = parameter f32[6]
  n, mean1, rstd1 = layer_norm(x, g, b)
  plain, mean2, rstd2 = layer_norm(n, axis=-2)
  s = softmax(plain)
  l = log_softmax(s)
  y = gelu(l)
  output y
)";
constexpr char kRms[] = R"(
  x = input f32[batch,4,6]
  g = parameter f32[4,6]
  y, rstd1 = rms_norm(x, g, axis=1)
  z, rstd2 = rms_norm(y)
  output z
)";
constexpr char kSoftmaxAxis[] = R"(
  x = input f32[batch,4,6]
  y = softmax(x, axis=1)
  output y
)";
constexpr char kElementsFixed[] = R"(
  x = input f32[3,4]
  i = input i32[2,4]
  place = element_index(i, dims=[3,4], axis=0)
  flat = reshape(x, dims=[-1])
  y = gather(flat, place)
  output y
)";
constexpr char kRavel[] = R"(
  i = input i64[3,4,2]
  y = ravel_index(i, dims=[3,5,6], batch_dims=1)
  z = ravel_index(i, dims=[4,5])
  output y
  output z
)";
constexpr char kScatter[] = R"(
  x = input f32[5,batch]
  i = constant i64[2] [1, -1]
  u = input f32[2,batch]
  y = scatter(x, i, u)
  output y
)";
constexpr char kScatterMax[] = R"(
  x = input f32[5,batch]
  i = constant i64[2] [1, -1]
  u = input f32[2,batch]
  y = scatter(x, i, u, reduction="max")
  output y
)";
constexpr char kScatterAdd[] = R"(
  i = input i64[2,3]
  u = input f32[4,2,3,5]
  y = scatter_add(i, u, dims=[4,7,5], axis=1)
  v = input f32[2,3,5]
  z = scatter_add(i, v, dims=[7,5])
  output y
  output z
)";
constexpr char kTopK[] = R"(
  x = input f32[batch,4,6]
  y, i = top_k(x, k=3, axis=1, largest=0)
  output y
  output i
)";
constexpr char kScans[] = R"(
  x = input f32[batch,4,6]
  y = cumsum(x, axis=1, exclusive=1, reverse=1)
  output y
)";
constexpr char kProducts[] = R"(
  x = input f32[batch,4,6]
  y = cumprod(x, axis=-1, exclusive=1)
  output y
)";
constexpr char kInterpolate[] = R"(
  x = input f32[batch,3,4]
  a = interpolate(x, axis=2, starts=[0,1,3,4], places=[0,1,2,3], weights=[1.0,0.5,0.5,1.0])
  b = interpolate(a, axis=1, starts=[0,1,3], places=[0,1,2], weights=[1.0,0.25,0.75])
  t = transpose(b, permutation=[1,0,2])
  y = interpolate(t, axis=0, starts=[0,2,2,3], places=[0,1,1], weights=[0.5,0.5,2.0])
  output y
)";
constexpr char kRegions[] = R"(
  x = input f32[1,2,8,8]
  r = constant f32[2,4] [0, 0, 6, 5, 1, 2, 7, 7]
  i = constant i64[2] [0, 0]
  y = roi_align(x, r, i, output=[2,3], sampling_ratio=2, half_pixel=0)
  output y
)";
constexpr char kRegionsHalf[] = R"(
  x = input f32[1,2,8,8]
  r = constant f32[2,4] [0, 0, 6, 5, 1, 2, 7, 7]
  i = constant i64[2] [0, 0]
  y = roi_align(x, r, i, output=[2,3], sampling_ratio=2)
  p = constant f32[1,5] [0, 0, 0, 6, 5]
  z, place = max_roi_pool(x, p, output=[2,2])
  output y
  output z
)";
constexpr char kDet[] = R"(
  x = input f32[batch,3,3]
  y = det(x)
  output y
)";
constexpr char kDilated[] = R"(
  x = input f32[batch,2,9,9]
  a = avg_pool(x, kernel=[2,2], dilation=[2,2])
  m, tap = max_pool(a, kernel=[2,2], stride=[2,2], ceil_mode=1)
  output m
)";
constexpr char kReductions[] = R"(
  x = input f32[batch,4,6]
  s = reduce_sum(x, axes=[-1])
  m = reduce_max(x, axes=[-2], keep_dims=1)
  a = argmax(x, axis=-2)
  c = clip(x, min=-0.5, max=0.25)
  d = concat(c, m, axis=-2)
  output s
  output a
  output d
)";
constexpr char kProduct[] = R"(
  x = input f32[batch,4]
  w = parameter f32[3,4]
  y = matmul(x, w, transpose_b=1)
  output y
)";

// Results, and biases, of another type than the operands.
constexpr char kMixedProducts[] = R"(
  x = input bf16[batch,4]
  w = parameter bf16[3,4]
  b = parameter f32[3]
  y = matmul(x, w, b, transpose_b=1, out_dtype="f32")
  z = matmul(x, w, b, transpose_b=1)
  p = matmul(x, w, transpose_b=1, out_dtype="f16")
  output y
  output z
  output p
)";
constexpr char kMixedSums[] = R"(
  x = input bf16[batch,40]
  s = reduce_sum(x, axes=[1], out_dtype="f32")
  m = reduce_mean(x, axes=[0], keep_dims=1, out_dtype="f32")
  output s
  output m
)";
constexpr char kMixedNorms[] = R"(
  x = input bf16[batch,6]
  f = input f32[batch,6]
  g = parameter f32[6]
  y, mean1, rstd1 = layer_norm(x, g, g, out_dtype="f32")
  z, mean2, rstd2 = layer_norm(f, g, out_dtype="bf16")
  p, mean3, rstd3 = layer_norm(x, out_dtype="f32")
  output y
  output z
  output p
)";
constexpr char kWideScales[] = R"(
  x = input bf16[batch,6]
  g = parameter f32[6]
  y, mean1, rstd1 = layer_norm(x, g, g)
  z, rstd2 = rms_norm(x, g)
  output y
  output z
)";
constexpr char kMixedConvolutions[] = R"(
  x = input bf16[batch,2,5,5]
  w = parameter bf16[3,2,3,3]
  b = parameter f32[3]
  y = conv(x, w, b, out_dtype="f32")
  z = conv(x, w, b, stride=[2,2])
  f = input bf16[2,3,2,2]
  p = conv_grad_input(f, w, input_dims=[2,2,5,5], stride=[2,2], out_dtype="f32")
  output y
  output z
  output p
)";

constexpr char kLstm[] = R"(
  x = input f32[4,batch,3]
  w = parameter f32[20,3]
  b = parameter f32[20]
  r = parameter f32[20,5]
  h = input f32[batch,5]
  p = matmul(x, w, b, transpose_b=1)
  y, cells, kept = lstm(p, r, h, h, reverse=1)
  q = add(p, p)
  z, more, rest = lstm(q, r, h, h, gates="iofg")
  output y
  output z
)";
constexpr char kGru[] = R"(
  x = input f32[4,batch,3]
  w = parameter f32[3,15]
  b = parameter f32[5]
  r = parameter f32[15,5]
  h = input f32[batch,5]
  p = matmul(x, w)
  y, kept = gru(p, r, h, b)
  z, rest = gru(p, r, h, gates="zrn", reverse=1)
  output y
  output z
)";
constexpr char kRnn[] = R"(
  x = input f32[4,batch,5]
  r = parameter f32[5,5]
  h = input f32[batch,5]
  y = rnn(x, r, h)
  z = rnn(y, r, h, relu=1, reverse=1)
  output y
  output z
)";

INSTANTIATE_TEST_SUITE_P(
    Graphs, ExportRoundTrip,
    testing::Values(
        Case{"attention", kAttention, 9, {13, 18, 23}}, Case{"causal", kCausal, 9, {18, 23}},
        Case{"blind", kBlind, 11, {18, 23}}, Case{"long_causal", kLongCausal, 11, {23}},
        Case{"norms", kNorms, 9, {13, 17, 18, 20}}, Case{"rms", kRms, 9, {18, 23}},
        Case{"softmax_axis", kSoftmaxAxis, 13, {}},
        Case{"elements_fixed", kElementsFixed, 11, {13, 18}, 2},
        Case{"ravel", kRavel, 11, {13, 18}}, Case{"scatter", kScatter, 11, {16, 18}},
        Case{"scatter_max", kScatterMax, 18, {}}, Case{"scatter_add", kScatterAdd, 16, {18}},
        Case{"top_k", kTopK, 11, {18}}, Case{"scans", kScans, 11, {18}},
        Case{"products", kProducts, 26, {}}, Case{"interpolate", kInterpolate, 9, {18}},
        Case{"regions", kRegions, 10, {16}}, Case{"regions_half", kRegionsHalf, 16, {}},
        Case{"det", kDet, 11, {18}}, Case{"dilated", kDilated, 19, {}},
        Case{"reductions", kReductions, 9, {11, 13, 18}}, Case{"product", kProduct, 9, {11, 13}},
        Case{"mixed_products", kMixedProducts, 13, {18}}, Case{"mixed_sums", kMixedSums, 13, {18}},
        Case{"mixed_norms", kMixedNorms, 13, {17, 23}},
        Case{"wide_scales", kWideScales, 13, {17, 23}},
        Case{"mixed_convolutions", kMixedConvolutions, 13, {22}}, Case{"lstm", kLstm, 11, {18}},
        Case{"gru", kGru, 11, {18}}, Case{"rnn", kRnn, 9, {18}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(Exporters, EveryOperatorIsWrittenOrSaysWhyNot) {
  for (const OpDef& op : AllOps()) {
    if (FindOnnxExporter(op) != nullptr) continue;
    EXPECT_NE(WhyNotExported(op).find("hint: "), std::string::npos) << op.name;
  }
}

// Operators of forward graphs only; those of gradients, optimizers and passes have no place here.
TEST(Exporters, TheseAreNotWritten) {
  std::vector<std::string> missing;
  for (const OpDef& op : AllOps()) {
    const bool forward =
        op.gradient != nullptr || op.elementwise != nullptr || op.onnx.name != nullptr;
    const bool after = op.name.ends_with("_grad") || op.name.find("_grad_") != std::string::npos;
    if (forward && !after && FindOnnxExporter(op) == nullptr) missing.push_back(op.name);
  }
  EXPECT_EQ(missing, (std::vector<std::string>{"stop_gradient", "batch_norm", "ctc_loss", "dropout",
                                               "random_uniform", "random_normal"}));
}

TEST(Exporters, WhatIsNotWrittenIsNamedWithAReason) {
  const Result<Graph> graph = ParseGraph(
      "graph net\n  rng = input i64[3]\n  noise = random_normal(rng, dims=[2,2])\n"
      "  output noise\n",
      "net");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<OnnxDocument> document = ExportOnnx(*graph, {}, {}, {});
  EXPECT_EQ(document.status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(document.status().message(),
            "export: ONNX has no form of 1 node:\n  random_normal 'noise' (line 3) draws other "
            "numbers in every runtime. hint: make the numbers an input of the graph");
}

// T * T + T is 72 at 8 and 5256 at 72: a line through both is right at no third.
TEST(Exporters, AnExtentThatFitsNoFormulaIsRefused) {
  const Result<Graph> graph = ParseGraph(
      "graph net\n  x = input f32[t=8,3]\n  a = matmul(x, x, transpose_b=1)\n"
      "  b = reshape(a, dims=[-1])\n  r = reduce_sum(x, axes=[1])\n"
      "  c = concat(b, r, axis=0)\n  y, mean, rstd = layer_norm(c)\n  output y\n",
      "net");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<OnnxDocument> document = ExportOnnx(*graph, {}, {}, {.opset = 17});
  EXPECT_EQ(document.status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(document.status().message(),
            "layer_norm 'y' (line 7): 72 here and 5256 elsewhere: the extent follows from no named "
            "dimension");
}

TEST(Exporters, AnOpsetThatIsTooLowNamesTheNodeThatNeedsMore) {
  const Result<Graph> graph =
      ParseGraph("graph net\n  x = input f32[2,3]\n  y = softmax(x, axis=0)\n  output y\n", "net");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<OnnxDocument> document = ExportOnnx(*graph, {}, {}, {.opset = 11});
  EXPECT_EQ(document.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(document.status().message(),
            "export: opset 11; net can be written in 13 to 26 because of softmax 'y' (line 3): an "
            "axis that is not the last");
}

}  // namespace
}  // namespace ridge
