#include "ridge/learn/accumulators.h"

#include "ridge/graph/batch_axis.h"
#include "ridge/learn/training_graph.h"

namespace ridge {

Value Accumulators::Add(const std::string& name, Value x) {
  if (slices_ == 1 || !b_.ok()) return x;
  const Value sum = b_.State(name, x.type(), Init::Zeros(), ValueRole::kGradient);
  const Value total = share_ ? sum : sum + x;
  b_.Update(sum, share_ ? x : total);
  names_.push_back(name);
  return total;
}

void Accumulators::AddOutputs() {
  if (slices_ == 1 || !b_.ok()) return;
  const std::vector<GraphOutput> outputs = b_.graph().outputs();
  b_.graph().ClearOutputs();
  for (const GraphOutput& output : outputs) {
    const Value value = b_.At(output.value);
    const bool number = value.type().rank() == 0;
    b_.Output(output.name, number ? Add(output.name + ".slice_sum", value) : value);
    if (!number) stacked_.push_back(output.name);
  }
}

NamedGraph Accumulators::Finish(const std::string& name, Graph graph) const {
  NamedGraph named{name, std::move(graph)};
  if (slices_ == 1) return named;
  named.slices = share_ ? share_->owned().count() : slices_;
  named.share = share_;
  named.wire = wire_;
  named.accumulators = names_;
  named.stacked_outputs = stacked_;
  for (ValueId id : named.graph.ValuesOfKind(ValueKind::kInput)) {
    const std::string& input = named.graph.value(id).name;
    if (input != kLrInput && input != kStepInput && input != kRoundingInput && !IsWholeInput(input))
      named.sliced_inputs.push_back(input);
  }
  return named;
}

}  // namespace ridge
