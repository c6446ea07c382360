#include "ridge/pipeline/graph_part.h"

#include "ridge/graph/passes/rewriter.h"

namespace ridge {

GraphPart::GraphPart(const Graph& from, std::string name, std::function<bool(const Node&)> copies)
    : from_(from), copies_(std::move(copies)), here_(from.values().size(), kNoValue) {
  to_.name = std::move(name);
}

void GraphPart::Give(ValueId id) {
  const ValueInfo& info = from_.value(id);
  if (!Has(id)) here_[static_cast<size_t>(id)] = to_.AddInput(info.name, info.type);
}

Result<ValueId> GraphPart::Get(ValueId id) {
  if (Has(id)) return here_[static_cast<size_t>(id)];
  const Node* node = from_.producer(id);
  if (node == nullptr) {
    here_[static_cast<size_t>(id)] = to_.AddLeaf(from_.value(id));
  } else if (copies_(*node)) {
    RIDGE_RETURN_IF_ERROR(Take(*node));
  } else {
    Give(id);
  }
  return here_[static_cast<size_t>(id)];
}

Status GraphPart::Take(const Node& node) {
  if (Has(node.outputs[0])) return Status();
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      inputs.push_back(kNoValue);
      continue;
    }
    RIDGE_ASSIGN_OR_RETURN(const ValueId input, Get(id));
    inputs.push_back(input);
  }
  RIDGE_ASSIGN_OR_RETURN(const NodeId copy, to_.CopyNode(from_, node, std::move(inputs)));
  for (size_t i = 0; i < node.outputs.size(); ++i)
    here_[static_cast<size_t>(node.outputs[i])] = to_.node(copy).outputs[i];
  return Status();
}

Status GraphPart::Output(ValueId id) {
  RIDGE_ASSIGN_OR_RETURN(const ValueId value, Get(id));
  if (to_.FindOutput(from_.value(id).name) == kNoValue) to_.AddOutput(from_.value(id).name, value);
  return Status();
}

Status GraphPart::Update(const GraphUpdate& update) {
  RIDGE_ASSIGN_OR_RETURN(const ValueId variable, Get(update.variable));
  RIDGE_ASSIGN_OR_RETURN(const ValueId value, Get(update.value));
  to_.AddUpdate(variable, value);
  return Status();
}

Result<Graph> GraphPart::Finish() && {
  GraphRewriter rewriter(to_);
  rewriter.CopyLeaves();
  for (const Node& node : to_.nodes()) RIDGE_RETURN_IF_ERROR(rewriter.Copy(node));
  return rewriter.Finish();
}

}  // namespace ridge
