// Patterns: each recognizes one operator that a file writes as primitive nodes.
// Inner header of pattern*.cc.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// The call that is equivalent to `root`.  `inner` are the results between the call's inputs and the
// root: if one of them has other readers the nodes remain, since nothing would be saved.
struct PatternMatch {
  const OpDef* op = nullptr;  // nullptr: no match
  std::vector<ValueId> inputs = {};
  AttrMap attrs = {};
  std::vector<ValueId> inner = {};
};

PatternMatch MatchLayerNorm(const Graph& graph, const Node& root);  // or rms_norm
PatternMatch MatchGelu(const Graph& graph, const Node& root);       // pattern_gelu.cc
PatternMatch MatchSilu(const Graph& graph, const Node& root);       // pattern_silu.cc

// The producer of `id` if it is of this operator ("" is any), else nullptr.
const Node* WriterOf(const Graph& graph, ValueId id, std::string_view op);

// The value of all elements of a constant of at most 1024 equal elements; also through an expand.
std::optional<double> UniformOf(const Graph& graph, ValueId id);

}  // namespace ridge
