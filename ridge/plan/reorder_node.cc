#include "ridge/plan/reorder_node.h"

#include <fmt/format.h>

namespace ridge {

PlannedNode ReorderNode(KernelQuery& kernels, const PlannedValue& source,
                        const PlannedValue& target) {
  PlannedNode node;
  node.name = target.name;
  node.op = "reorder";
  node.call.where = fmt::format("reorder '{}'", target.name);
  node.call.inputs = {source.type};
  node.call.outputs = {target.type};
  if (source.layout == target.layout) {
    node.choice.kernel = "copy";
    node.choice.key = fmt::format("copy {}", TypeToString(source.type));
    node.choice.input_layouts = {source.layout};
    node.choice.output_layouts = {target.layout};
  } else {
    node.choice = kernels.Reorder(source.type, source.layout, target.layout);
  }
  node.cost = {0, source.type.bytes(), source.type.bytes()};
  return node;
}

}  // namespace ridge
