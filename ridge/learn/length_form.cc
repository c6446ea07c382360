#include "ridge/learn/length_form.h"

#include <utility>

namespace ridge {

std::string LengthName(const std::string& name, int64_t length) {
  return name + "." + std::to_string(length);
}

Result<LengthForm> MakeLengthForm(Graph graph, int64_t length) {
  LengthForm form;
  RIDGE_ASSIGN_OR_RETURN(form.facts, InspectForward(graph));
  for (const ValueId id : form.facts.data_inputs)
    graph.Rename(id, LengthName(graph.value(id).name, length));
  form.length = length;
  form.batch = form.facts.batch;
  form.graph = std::move(graph);
  return form;
}

int64_t WholeLength(const Graph& whole, const ForwardInfo& facts, const LengthForm& shorter) {
  for (size_t i = 0; i < facts.data_inputs.size(); ++i) {
    const Dims& dims = whole.type(facts.data_inputs[i]).dims;
    const Dims& others = shorter.graph.type(shorter.facts.data_inputs[i]).dims;
    if (dims.size() > 1 && dims[1] != others[1]) return dims[1];
  }
  return 0;
}

}  // namespace ridge
