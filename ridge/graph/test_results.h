// For tests of rewrites: two forms of a graph must compute the same from random inputs.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"

namespace ridge {

// The graph of a text that is right.
inline Graph ParsedGraph(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "g.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

// Inputs are drawn from `count` values around 0, `step` apart.
struct TestValues {
  int64_t count = 1000;
  double step = 0.002;
};

// The outputs, by name.  Equal inputs for graphs whose inputs are equal.
inline std::map<std::string, Tensor> TestResults(const Graph& graph, TestValues values = {}) {
  std::map<std::string, Tensor> inputs;
  std::mt19937 random(7);
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    Tensor tensor(graph.type(id));
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const int64_t drawn = static_cast<int64_t>(random()) % values.count - values.count / 2;
      StoreFromDouble(tensor.type().dtype, tensor.mutable_data(), i,
                      static_cast<double>(drawn) * values.step);
    }
    inputs[graph.value(id).name] = tensor;
  }
  const Result<std::vector<Tensor>> computed = EvaluateGraph(graph, inputs, /*seed=*/3);
  EXPECT_TRUE(computed.ok()) << computed.status().message();
  std::map<std::string, Tensor> results;
  for (const GraphOutput& output : graph.outputs())
    results[output.name] = (*computed)[static_cast<size_t>(output.value)];
  return results;
}

inline void ExpectSameBits(const Graph& before, const Graph& after, TestValues values = {}) {
  ASSERT_TRUE(CheckGraph(after).ok()) << PrintGraph(after);
  const auto expected = TestResults(before, values), got = TestResults(after, values);
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(tensor.same_bits(got.at(name))) << name << " differs\n"
                                                << PrintGraph(before) << "\n"
                                                << PrintGraph(after);
  }
}

}  // namespace ridge
