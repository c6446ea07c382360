// What the patterns share: each recognizes one operator that a file wrote as primitive nodes.
// Inner header of pattern*.cc.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// The call that computes what `root` does.  `inner` are the results between the call's inputs and
// the root: when somebody else reads one of them the nodes stay, because nothing would be saved.
struct PatternMatch {
  const OpDef* op = nullptr;  // nullptr: no match
  std::vector<ValueId> inputs = {};
  AttrMap attrs = {};
  std::vector<ValueId> inner = {};
};

PatternMatch MatchLayerNorm(const Graph& graph, const Node& root);  // or rms_norm
PatternMatch MatchGelu(const Graph& graph, const Node& root);       // pattern_gelu.cc
PatternMatch MatchSilu(const Graph& graph, const Node& root);       // pattern_silu.cc

// The node that wrote `id`, when it is of this operator ("" is any); else nullptr.
const Node* WriterOf(const Graph& graph, ValueId id, std::string_view op);

// What every element of a constant of at most 1024 elements is; through an expand.
std::optional<double> UniformOf(const Graph& graph, ValueId id);

}  // namespace ridge
