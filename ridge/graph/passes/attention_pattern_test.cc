// Every form of attention in tests/text/attention gives the numbers of its nodes; and so do its
// gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "ridge/core/files.h"
#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/text.h"

namespace ridge {
namespace {

std::filesystem::path Folder() {
  const char* root = std::getenv("RIDGE_SOURCE_DIR");
  return std::filesystem::path(root == nullptr ? "." : root) / "tests/text/attention";
}

// The graphs of a file: what stands before each "pass attention", in f64 where rounding would hide
// a difference.
std::vector<Graph> GraphsOf(const std::string& file) {
  const Result<std::string> text = ReadFile((Folder() / file).string());
  EXPECT_TRUE(text.ok()) << text.status().message();
  std::vector<Graph> graphs;
  for (size_t at = 0; text.ok() && (at = text->find("graph g", at)) != std::string::npos;) {
    const size_t end = text->find("pass attention", at);
    if (end == std::string::npos) break;
    std::string one = text->substr(at, end - at);
    for (size_t f; (f = one.find("f32[")) != std::string::npos;) one.replace(f, 3, "f64");
    const Result<Graph> graph = ParseGraph(one, file);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (graph.ok()) graphs.push_back(*graph);
    at = text->find("====", end);
  }
  return graphs;
}

std::map<std::string, Tensor> Inputs(const Graph& graph) {
  std::map<std::string, Tensor> given;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& value = graph.value(id);
    Tensor tensor(value.type);
    for (int64_t k = 0; k < tensor.elements(); ++k) {
      const double wave = std::sin(1.7 * static_cast<double>(k) + static_cast<double>(id));
      const bool is_float = IsFloat(value.type.dtype);
      StoreFromDouble(value.type.dtype, tensor.mutable_data(), k, is_float ? wave : wave > -0.6);
    }
    given[value.name] = tensor;
  }
  return given;
}

// Its first output, then the gradients of its sum of squares with respect to the float inputs.
std::vector<Tensor> Results(const Graph& graph) {
  GraphBuilder b(graph);
  const Value y = b.At(graph.outputs()[0].value);
  const Value loss = Sum(Square(y));
  std::vector<Value> wanted;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    if (graph.value(id).type.dtype == DType::kF64) wanted.push_back(b.At(id));
  }
  const Result<std::vector<Value>> grads = AppendGradients(b, loss, wanted);
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  const auto values = EvaluateGraph(b.graph(), Inputs(graph));
  EXPECT_TRUE(values.ok()) << values.status().message();
  std::vector<Tensor> results = {(*values)[static_cast<size_t>(y.id)]};
  for (Value v : *grads) results.push_back((*values)[static_cast<size_t>(v.id)]);
  return results;
}

void ExpectSame(const Graph& before) {
  const Result<Graph> after = RecognizeAttention(before);
  ASSERT_TRUE(after.ok()) << after.status().message();
  bool recognized = false;
  for (const Node& node : after->nodes()) recognized = recognized || node.op->name == "attention";
  EXPECT_TRUE(recognized) << PrintGraph(*after);
  const std::vector<Tensor> want = Results(before), got = Results(*after);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    for (int64_t k = 0; k < want[i].elements(); ++k) {
      if (std::isnan(want[i].at(k))) continue;  // of a row that sees nothing
      EXPECT_NEAR(got[i].at(k), want[i].at(k), 1e-10) << i << " " << k << "\n"
                                                      << PrintGraph(before);
    }
  }
}

TEST(AttentionPattern, GivesTheNumbersOfTheNodesItReplaces) {
  for (const char* file : {"forms.test", "masks.test"}) {
    const std::vector<Graph> graphs = GraphsOf(file);
    EXPECT_GE(graphs.size(), 5u) << file;
    for (const Graph& graph : graphs) ExpectSame(graph);
  }
}

}  // namespace
}  // namespace ridge
