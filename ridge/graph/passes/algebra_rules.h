// The local rules of the algebra pass: each looks at one call and at what wrote its inputs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/passes/rewriter.h"

namespace ridge {

// What a rule sees.
struct RuleCall {
  const Graph& graph;  // the new one, which holds the inputs
  GraphRewriter& rewriter;
  const OpDef& op;
  const AttrMap& attrs;
  const std::vector<ValueId>& inputs;
  const TensorType& type;  // of the result
  const std::string& name;

  const TensorType& input_type(size_t i) const { return graph.type(inputs[i]); }
  const std::vector<int64_t>& integers(const std::string& attr) const {
    return std::get<std::vector<int64_t>>(attrs.at(attr));
  }
  // The node that wrote input i when it is of this operator, else nullptr.
  const Node* Producer(size_t i, std::string_view op_name) const;
  // What every element of input i is, when that is known.
  std::optional<double> Uniform(size_t i) const;
};

// What a rule makes of a call: nothing, an existing value, or another call.
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

// In order; the first that rewrites wins, and its result is looked at again.  Each rule makes the
// call smaller or brings it nearer to the graph's inputs, so this ends.
const std::vector<Rule>& AlgebraRules();

}  // namespace ridge
