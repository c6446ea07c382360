#include "ridge/onnx/export/export_dims.h"

#include <map>

#include "ridge/onnx/export/export.h"

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

}  // namespace

ExportDim operator*(const ExportDim& a, const ExportDim& b) {
  return {a.here * b.here, a.other * b.other, a.third * b.third};
}

ExportDims::ExportDims(const Graph& graph, const std::vector<Graph>& others) : graph_(graph) {
  for (const Graph& other : others) same_nodes_ = same_nodes_ && SameNodes(graph, other);
  if (same_nodes_ && others.size() == 2) {
    other_ = &others[0];
    third_ = &others[1];
  }
  FindSymbols();
}

void ExportDims::FindSymbols() {
  for (ValueId id : graph_.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph_.value(id);
    const std::vector<ExportDim> dims = Dims(id);
    for (size_t d = 0; d < info.dim_names.size() && d < dims.size(); ++d) {
      const std::string& name = info.dim_names[d];
      if (name.empty() || dims[d].fixed() || SymbolOf(dims[d]) != nullptr) continue;
      symbols_.push_back({name, info.name, static_cast<int64_t>(d), dims[d]});
    }
  }
}

namespace {

std::vector<ExportDim> Together(const std::vector<int64_t>& here, const std::vector<int64_t>& other,
                                const std::vector<int64_t>& third) {
  std::vector<ExportDim> extents;
  for (size_t i = 0; i < here.size(); ++i) extents.push_back({here[i], other[i], third[i]});
  return extents;
}

}  // namespace

std::vector<ExportDim> ExportDims::Dims(ValueId value) const {
  const ridge::Dims& here = graph_.type(value).dims;
  if (other_ == nullptr) return Together(here, here, here);
  return Together(here, other_->type(value).dims, third_->type(value).dims);
}

std::vector<ExportDim> ExportDims::Attribute(const Node& node, const std::string& name) const {
  const auto list = [&](const Node& n) { return n.attrs.integers(name); };
  if (other_ == nullptr || node.outputs.empty())
    return Together(list(node), list(node), list(node));
  const NodeId id = graph_.IdOf(node);
  return Together(list(node), list(other_->node(id)), list(third_->node(id)));
}

const OnnxSymbol* ExportDims::SymbolOf(const ExportDim& extent) const {
  for (const OnnxSymbol& symbol : symbols_) {
    if (symbol.extent == extent) return &symbol;
  }
  return nullptr;
}

std::optional<ExportDimFormula> ExportDims::FormulaOf(const ExportDim& extent) const {
  if (const auto found = Multiple(extent)) return found;
  if (const auto found = Product(extent)) return found;
  return Linear(extent);
}

bool ExportDims::Fits(const ExportDimFormula& formula, const ExportDim& extent) const {
  ExportDim value = ExportDim::Fixed(formula.factor) * symbols_[size_t(formula.first)].extent;
  if (formula.second >= 0) value = value * symbols_[size_t(formula.second)].extent;
  return value.here + formula.offset == extent.here &&
         value.other + formula.offset == extent.other &&
         value.third + formula.offset == extent.third;
}

std::optional<ExportDimFormula> ExportDims::Multiple(const ExportDim& extent) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const ExportDim& symbol = symbols_[s].extent;
    if (symbol.here == 0) continue;
    const ExportDimFormula formula{.factor = extent.here / symbol.here,
                                   .first = static_cast<int>(s)};
    if (Fits(formula, extent)) return formula;
  }
  return std::nullopt;
}

std::optional<ExportDimFormula> ExportDims::Product(const ExportDim& extent) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    for (size_t t = s; t < symbols_.size(); ++t) {
      const ExportDim both = symbols_[s].extent * symbols_[t].extent;
      if (both.here == 0) continue;
      const ExportDimFormula formula{.factor = extent.here / both.here,
                                     .first = static_cast<int>(s),
                                     .second = static_cast<int>(t)};
      if (Fits(formula, extent)) return formula;
    }
  }
  return std::nullopt;
}

std::optional<ExportDimFormula> ExportDims::Linear(const ExportDim& extent) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const ExportDim& symbol = symbols_[s].extent;
    const int64_t run = symbol.other - symbol.here;
    if (run == 0) continue;
    const int64_t factor = (extent.other - extent.here) / run;
    const ExportDimFormula formula{.factor = factor,
                                   .offset = extent.here - factor * symbol.here,
                                   .first = static_cast<int>(s)};
    if (Fits(formula, extent)) return formula;
  }
  return std::nullopt;
}

namespace {

// Each name at `step` more than here times its place among the names, so that no two names move
// together, plus `odd`.
std::map<std::string, int64_t> MovedDims(const Graph& graph, int64_t step, int64_t odd) {
  std::map<std::string, int64_t> dims;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    for (size_t d = 0; d < info.dim_names.size() && d < info.type.dims.size(); ++d) {
      if (info.dim_names[d].empty() || dims.contains(info.dim_names[d])) continue;
      const auto place = static_cast<int64_t>(dims.size() + 1);
      dims[info.dim_names[d]] = info.type.dims[d] + step * place + odd;
    }
  }
  return dims;
}

}  // namespace

// Steps of 64 and more: a difference survives convolutions and pools of stride 2, five in a row.
// The third extent is odd from here where the graph can have it, which tells 2 * ((T + 1) / 2) from
// T, and else as even as the second.
std::vector<Graph> WithOtherDims(const Graph& graph) {
  constexpr int64_t kStep = 64;
  if (MovedDims(graph, 0, 0).empty()) return {};
  Result<Graph> other = BindDims(graph, MovedDims(graph, kStep, 0));
  Result<Graph> third = BindDims(graph, MovedDims(graph, 3 * kStep, 1));
  if (!third.ok()) third = BindDims(graph, MovedDims(graph, 3 * kStep, 0));
  if (!other.ok() || !third.ok()) return {};
  std::vector<Graph> others;
  others.push_back(*std::move(other));
  others.push_back(*std::move(third));
  return others;
}

}  // namespace ridge
