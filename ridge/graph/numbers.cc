#include "ridge/graph/numbers.h"

#include "ridge/graph/interpret.h"

namespace ridge {

Numbers NumbersOf(const Tensor& tensor) {
  Numbers numbers(static_cast<size_t>(tensor.elements()));
  ConvertToDouble(tensor.type().dtype, tensor.data(), numbers.data(), tensor.elements());
  return numbers;
}

void RunOnNumbers(const Graph& graph, const Node& node,
                  const std::function<Numbers&(ValueId)>& at) {
  std::vector<const double*> in;
  std::vector<double*> out;
  for (ValueId id : node.inputs) {
    if (id != kNoValue) at(id).reserve(1);  // an empty one still gets a pointer
    in.push_back(id == kNoValue ? nullptr : at(id).data());
  }
  for (ValueId id : node.outputs) {
    Numbers& y = at(id);
    y.assign(static_cast<size_t>(graph.type(id).elements()), 0);
    y.reserve(1);
    out.push_back(y.data());
  }
  RunReference(*node.op, graph.Call(node), in, out);
}

}  // namespace ridge
