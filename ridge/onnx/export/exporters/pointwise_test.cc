// A graph of one operator, written and read again, gives the same numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "ridge/core/test_folder.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/interpret.h"
#include "ridge/onnx/export/export.h"
#include "ridge/onnx/import/import.h"

namespace ridge {
namespace {

struct RoundTrip {
  const char* op;
  DType dtype;
  std::vector<std::vector<double>> inputs;
  AttrMap attrs = {};
};

std::ostream& operator<<(std::ostream& out, const RoundTrip& one) {
  return out << one.op << " " << DTypeName(one.dtype);
}

Tensor InputOf(const RoundTrip& one, size_t i) {
  Tensor tensor({one.dtype, {static_cast<int64_t>(one.inputs[i].size())}});
  for (size_t k = 0; k < one.inputs[i].size(); ++k)
    StoreFromDouble(one.dtype, tensor.mutable_data(), static_cast<int64_t>(k), one.inputs[i][k]);
  return tensor;
}

Tensor ResultOf(const Graph& graph, const std::map<std::string, Tensor>& given) {
  const Result<std::vector<Tensor>> values = EvaluateGraph(graph, given);
  EXPECT_TRUE(values.ok()) << values.status().message();
  return (*values)[static_cast<size_t>(graph.outputs()[0].value)];
}

class PointwiseExport : public testing::TestWithParam<RoundTrip> {};

TEST_P(PointwiseExport, ReadBackGivesTheSameNumbers) {
  const RoundTrip& one = GetParam();
  GraphBuilder b("net");
  std::vector<ridge::Value> inputs;
  std::map<std::string, Tensor> given;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    given[name] = InputOf(one, i);
    inputs.push_back(b.Input(name, given[name].type()));
  }
  b.Output("y", Op(one.op, inputs, one.attrs, "y"));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Result<OnnxDocument> document = ExportOnnx(*graph, {}, {}, {});
  ASSERT_TRUE(document.ok()) << document.status().message();
  const std::string path = TestFolder() + "/net.onnx";
  const Result<OnnxFiles> files = WriteOnnx(std::move(*document), path);
  ASSERT_TRUE(files.ok()) << files.status().message();
  const Result<OnnxModel> model = OnnxModel::Open(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Result<OnnxImport> import = ImportOnnx(*model, {});
  ASSERT_TRUE(import.ok()) << import.status().message();
  const Tensor want = ResultOf(*graph, given), got = ResultOf(import->graph, given);
  ASSERT_EQ(got.type(), want.type());
  for (int64_t i = 0; i < want.elements(); ++i)
    EXPECT_NEAR(got.at(i), want.at(i), 1e-6 * std::max(1.0, std::abs(want.at(i))));
}

const std::vector<double> kReals = {-3.25, -0.75, 0, 0.5, 1.75};

INSTANTIATE_TEST_SUITE_P(
    Ops, PointwiseExport,
    testing::Values(
        RoundTrip{"hard_sigmoid", DType::kF32, {kReals}, {{"alpha", 0.3}, {"beta", 0.4}}},
        RoundTrip{"hard_swish", DType::kF32, {kReals}}, RoundTrip{"mish", DType::kF32, {kReals}},
        RoundTrip{"elu", DType::kF32, {kReals}, {{"alpha", 0.5}}},
        RoundTrip{"trunc", DType::kF32, {kReals}}, RoundTrip{"tan", DType::kF32, {kReals}},
        RoundTrip{"atan", DType::kF32, {kReals}},
        RoundTrip{"fmod", DType::kF32, {kReals, {2, -0.5, 1, 0.75, -1}}},
        RoundTrip{"mod", DType::kF32, {kReals, {2, -0.5, 1, 0.75, -1}}},
        RoundTrip{"mod", DType::kI32, {{7, -7, 7, -7}, {3, 3, -3, -3}}},
        RoundTrip{"bitwise_xor", DType::kI16, {{7, -7, 0}, {3, 3, -1}}},
        RoundTrip{"shift_left", DType::kU8, {{255, 1, 3}, {1, 7, 8}}, {{"bits", 8}}},
        RoundTrip{"shift_right", DType::kU32, {{255, 1, 3}, {1, 7, 1}}},
        RoundTrip{"cast", DType::kI32, {{300, -300, 5}}, {{"to", "i8"}}},
        RoundTrip{"cast", DType::kI32, {{300, -300, 5}}, {{"to", "u16"}}},
        RoundTrip{"cast", DType::kI32, {{300, -300, 5}}, {{"to", "i8"}, {"saturate", 0}}},
        RoundTrip{"cast", DType::kF32, {{1e9, -3, 0.3}}, {{"to", "f8e4m3fn"}}}));

}  // namespace
}  // namespace ridge
