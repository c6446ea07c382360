#include "ridge/graph/onnx/export_dims.h"

#include "ridge/graph/onnx/export.h"

namespace ridge {
namespace {

// Types without extents, and operators, are the same in both.
bool SameNodes(const Graph& a, const Graph& b) {
  if (a.values().size() != b.values().size() || a.nodes().size() != b.nodes().size()) return false;
  for (size_t i = 0; i < a.values().size(); ++i) {
    const ValueInfo &x = a.values()[i], &y = b.values()[i];
    if (x.name != y.name || x.kind != y.kind || x.type.dtype != y.type.dtype ||
        x.type.dims.size() != y.type.dims.size()) {
      return false;
    }
    const bool kept = x.kind == ValueKind::kInput || x.kind == ValueKind::kResult;
    if (!kept && x.type != y.type) return false;
    if (x.kind == ValueKind::kConstant && !x.constant.same_bits(y.constant)) return false;
  }
  for (size_t i = 0; i < a.nodes().size(); ++i) {
    const Node &x = a.nodes()[i], &y = b.nodes()[i];
    if (x.op != y.op || x.inputs != y.inputs || x.outputs != y.outputs) return false;
    if (x.attrs.size() != y.attrs.size()) return false;
    for (const auto& [name, attr] : x.attrs) {
      const auto found = y.attrs.find(name);
      if (found == y.attrs.end() || found->second.index() != attr.index()) return false;
      const auto* list = std::get_if<std::vector<int64_t>>(&attr);
      if (list == nullptr && !SameAttr(attr, found->second)) return false;
      if (list != nullptr && list->size() != std::get<std::vector<int64_t>>(found->second).size()) {
        return false;
      }
    }
  }
  return true;
}

std::vector<OnnxExtent> Pair(const std::vector<int64_t>& here, const std::vector<int64_t>& other) {
  std::vector<OnnxExtent> pairs;
  for (size_t i = 0; i < here.size(); ++i) pairs.push_back({here[i], other[i]});
  return pairs;
}

}  // namespace

OnnxExtents::OnnxExtents(const Graph& graph, const Graph* other) : graph_(graph), other_(other) {
  if (other_ != nullptr && !SameNodes(graph, *other)) {
    same_nodes_ = false;
    other_ = nullptr;
  }
  FindSymbols();
}

void OnnxExtents::FindSymbols() {
  for (ValueId id : graph_.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph_.value(id);
    const std::vector<OnnxExtent> dims = Dims(id);
    for (size_t d = 0; d < info.dim_names.size() && d < dims.size(); ++d) {
      const std::string& name = info.dim_names[d];
      if (name.empty() || dims[d].fixed() || SymbolOf(dims[d]) != nullptr) continue;
      symbols_.push_back({name, info.name, static_cast<int64_t>(d), dims[d]});
    }
  }
}

std::vector<OnnxExtent> OnnxExtents::Dims(ValueId value) const {
  const ridge::Dims& here = graph_.type(value).dims;
  return Pair(here, other_ == nullptr ? here : other_->type(value).dims);
}

std::vector<OnnxExtent> OnnxExtents::Attribute(const Node& node, const std::string& name) const {
  const auto& here = std::get<std::vector<int64_t>>(node.attrs.at(name));
  if (other_ == nullptr || node.outputs.empty()) return Pair(here, here);
  const Node& twin = other_->node(graph_.value(node.outputs[0]).producer);
  return Pair(here, std::get<std::vector<int64_t>>(twin.attrs.at(name)));
}

const OnnxSymbol* OnnxExtents::SymbolOf(const OnnxExtent& extent) const {
  for (const OnnxSymbol& symbol : symbols_) {
    if (symbol.extent == extent) return &symbol;
  }
  return nullptr;
}

std::optional<OnnxExtentFormula> OnnxExtents::FormulaOf(const OnnxExtent& extent) const {
  if (const auto found = Multiple(extent)) return found;
  if (const auto found = Product(extent)) return found;
  return Linear(extent);
}

std::optional<OnnxExtentFormula> OnnxExtents::Multiple(const OnnxExtent& extent) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const OnnxExtent& symbol = symbols_[s].extent;
    if (symbol.here == 0 || extent.here % symbol.here != 0) continue;
    const int64_t factor = extent.here / symbol.here;
    if (factor * symbol.other == extent.other)
      return OnnxExtentFormula{.factor = factor, .first = static_cast<int>(s)};
  }
  return std::nullopt;
}

std::optional<OnnxExtentFormula> OnnxExtents::Product(const OnnxExtent& extent) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    for (size_t t = s; t < symbols_.size(); ++t) {
      const OnnxExtent &a = symbols_[s].extent, &b = symbols_[t].extent;
      if (a.here * b.here == 0 || extent.here % (a.here * b.here) != 0) continue;
      const int64_t factor = extent.here / (a.here * b.here);
      if (factor * a.other * b.other != extent.other) continue;
      return OnnxExtentFormula{
          .factor = factor, .first = static_cast<int>(s), .second = static_cast<int>(t)};
    }
  }
  return std::nullopt;
}

std::optional<OnnxExtentFormula> OnnxExtents::Linear(const OnnxExtent& extent) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const OnnxExtent& symbol = symbols_[s].extent;
    const int64_t run = symbol.other - symbol.here, rise = extent.other - extent.here;
    if (run == 0 || rise % run != 0) continue;
    const int64_t factor = rise / run;
    return OnnxExtentFormula{.factor = factor,
                             .offset = extent.here - factor * symbol.here,
                             .first = static_cast<int>(s)};
  }
  return std::nullopt;
}

// Steps of 64 and more: a difference survives convolutions and pools of stride 2, five in a row.
Result<Graph> WithOtherDims(const Graph& graph) {
  std::map<std::string, int64_t> dims;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    for (size_t d = 0; d < info.dim_names.size() && d < info.type.dims.size(); ++d) {
      if (info.dim_names[d].empty() || dims.contains(info.dim_names[d])) continue;
      dims[info.dim_names[d]] = info.type.dims[d] + 64 * static_cast<int64_t>(dims.size() + 1);
    }
  }
  if (dims.empty()) {
    return Status(ErrorCode::kInvalidArgument, graph.name + ": no dimension has a name");
  }
  return BindDims(graph, dims);
}

}  // namespace ridge
