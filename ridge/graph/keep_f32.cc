#include "ridge/graph/keep_f32.h"

namespace ridge {

bool IsKeepable(const OpDef& op) { return op.attr_defaults.contains(kKeepF32); }

bool IsF32Product(const Graph& graph, const Node& node) {
  return IsKeepable(*node.op) && graph.type(node.inputs[0]).dtype == DType::kF32;
}

namespace {

bool IsSet(const AttrMap& attrs, const char* name) {
  const auto found = attrs.find(name);
  return found != attrs.end() && std::get<int64_t>(found->second) != 0;
}

}  // namespace

bool KeepsF32(const AttrMap& attrs) { return IsSet(attrs, kKeepF32); }
bool HasNarrowResult(const AttrMap& attrs) { return IsSet(attrs, kNarrowResult); }

Value MatMulLike(const AttrMap& of, Value a, Value b, bool transpose_a, bool transpose_b) {
  if (!a.valid() || !b.valid()) return {};
  return Op("matmul", {a, b},
            {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {kKeepF32, KeepsF32(of)}});
}

bool KeepsEachProduct(const Graph& graph) {
  bool any = false;
  for (const Node& node : graph.nodes()) {
    if (!IsF32Product(graph, node)) continue;
    if (!KeepsF32(node.attrs)) return false;
    any = true;
  }
  return any;
}

}  // namespace ridge
