// What the operators' records say of ONNX (OpDef::onnx) is true, and serves import and export.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"
#include "ridge/graph/builder.h"
#include "ridge/onnx/export/export.h"
#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/import.h"

namespace ridge {
namespace {

std::vector<const OpDef*> NamedOps() {
  std::vector<const OpDef*> ops;
  for (const OpDef& op : AllOps()) {
    if (op.onnx.name != nullptr) ops.push_back(&op);
  }
  return ops;
}

// The operators that the conformance cases of ONNX name, and those that it has no case for.
std::set<std::string> NamesOfOnnx() {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  const std::string path = std::string(source == nullptr ? "." : source);
  const Result<std::string> text = ReadFile(path + "/tests/onnx/conformance.md");
  EXPECT_TRUE(text.ok()) << text.status().message();
  std::set<std::string> names = {"MaxRoiPool", "RandomNormal", "RandomUniform"};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| ")) names.insert(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

TEST(OnnxRecords, NameOperatorsOfOnnx) {
  const std::set<std::string> names = NamesOfOnnx();
  for (const OpDef* op : NamedOps()) {
    EXPECT_TRUE(names.contains(op->onnx.name))
        << op->name << ": ONNX has no operator " << op->onnx.name;
  }
}

TEST(OnnxRecords, NameOperatorsThatAreImported) {
  for (const OpDef* op : NamedOps())
    EXPECT_NE(FindOnnxConverter("", op->onnx.name), nullptr) << op->name;
}

TEST(OnnxRecords, OfOneNameHaveTheSameOpsets) {
  std::map<std::string, std::vector<int>> opsets;
  for (const OpDef* op : NamedOps()) {
    const OnnxOp& o = op->onnx;
    const std::vector<int> own = {o.floats, o.bf16, o.integers, o.others};
    EXPECT_EQ(opsets.try_emplace(o.name, own).first->second, own) << op->name << " " << o.name;
  }
}

// Attributes that its defaults do not tell.
AttrMap AttrsOf(const OpDef& op) {
  AttrMap attrs = op.attr_defaults;
  for (auto& [name, value] : attrs) {
    if (std::holds_alternative<double>(value)) value = 0.25;  // f32 holds it
  }
  if (op.name == "cast") attrs["to"] = "f64";
  if (op.name == "shift_left") attrs["bits"] = 8;
  return attrs;
}

// A call of this dtype, the first input of another: invalid where the operator takes none such.
Value TryOp(GraphBuilder& b, const OpDef& op, DType first, DType others) {
  OpCall call;
  call.attrs = AttrsOf(op);
  for (size_t i = 0; i < op.input_names.size(); ++i)
    call.inputs.push_back({i == 0 ? first : others, {3}});
  if (!InferCall(op, call).ok()) return {};
  std::vector<Value> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    inputs.push_back(b.Input(op.name + std::to_string(i), call.inputs[i]));
  return Op(op.name.c_str(), inputs, AttrsOf(op));
}

// Mod of floats is fmod, so mod is written for integers.
Value AnyCall(GraphBuilder& b, const OpDef& op) {
  Value y;
  if (op.name != "mod") y = TryOp(b, op, DType::kF32, DType::kF32);
  if (!y.valid()) y = TryOp(b, op, DType::kBool, DType::kBool);
  if (!y.valid()) y = TryOp(b, op, DType::kBool, DType::kF32);
  return y.valid() ? y : TryOp(b, op, DType::kU8, DType::kU8);
}

Result<Graph> WriteAndRead(const Graph& graph) {
  RIDGE_ASSIGN_OR_RETURN(OnnxDocument document,
                         ExportOnnx(graph, {}, {}, {.opset = kMostExportOpset}));
  const std::string path = TestFolder() + "/records.onnx";
  RIDGE_RETURN_IF_ERROR(WriteOnnx(std::move(document), path).status());
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(path));
  RIDGE_ASSIGN_OR_RETURN(OnnxImport import, ImportOnnx(model, {}));
  return std::move(import.graph);
}

TEST(OnnxRecords, PointwiseOperatorsComeBackAsThemselves) {
  std::vector<const OpDef*> ops;
  GraphBuilder b("net");
  for (const OpDef* op : NamedOps()) {
    if (op->elementwise == nullptr) continue;
    const Value y = AnyCall(b, *op);
    ASSERT_TRUE(y.valid()) << op->name << ": " << b.status().message();
    b.Output("y_" + op->name, y);
    ops.push_back(op);
  }
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<Graph> read = WriteAndRead(*graph);
  ASSERT_TRUE(read.ok()) << read.status().message();
  for (const OpDef* op : ops) {
    const ValueInfo& y = read->value(read->FindOutput("y_" + op->name));
    ASSERT_EQ(y.kind, ValueKind::kResult) << op->name;
    EXPECT_EQ(read->node(y.producer).op->name, op->name);
    EXPECT_TRUE(SameAttrs(read->node(y.producer).attrs, AttrsOf(*op))) << op->name;
  }
  EXPECT_EQ(read->nodes().size(), ops.size());
}

}  // namespace
}  // namespace ridge
