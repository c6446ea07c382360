// The local rules of the algebra pass: each matches one call and the producers of its inputs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/passes/rewriter.h"

namespace ridge {

// The call that a rule matches.
struct RuleCall {
  const Graph& graph;  // the new graph, which holds the inputs
  GraphRewriter& rewriter;
  const OpDef& op;
  const AttrMap& attrs;
  const std::vector<ValueId>& inputs;
  const TensorType& type;  // of the result
  const std::string& name;

  const TensorType& input_type(size_t i) const { return graph.type(inputs[i]); }
  // The producer of input i if it is of this operator, else nullptr.
  const Node* Producer(size_t i, std::string_view op_name) const;
  // The value of all elements of input i, if they are known to be equal.
  std::optional<double> Splat(size_t i) const;
};

// The result of a rule: no match, an existing value, or another call.
struct Rewrite {
  ValueId value = kNoValue;
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs = {};
  AttrMap attrs = {};

  bool none() const { return value == kNoValue && op == nullptr; }
};

struct Rule {
  const char* op;  // "": any operator
  Rewrite (*apply)(const RuleCall& call);
};

// In order: the first match wins, and its result is matched in turn.  Each rule makes the call
// smaller or moves it closer to the graph's inputs, so this terminates.
const std::vector<Rule>& AlgebraRules();

}  // namespace ridge
