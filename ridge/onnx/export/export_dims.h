// ExportDims: which extents of a graph follow from the named dimensions of its inputs.
//
// Known by comparison: the graph is there three times, with its named dimensions at different
// extents.  What is equal in all is fixed; what differs is some function of the names, found by
// trying multiples, products and linear forms: two graphs give the numbers of a form, the third
// refutes a form that is not the function.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// One number in the graphs.
struct ExportDim {
  int64_t here = 0, other = 0, third = 0;
  static ExportDim Fixed(int64_t extent) { return {extent, extent, extent}; }
  bool fixed() const { return here == other && here == third; }
  bool operator==(const ExportDim&) const = default;
  auto operator<=>(const ExportDim&) const = default;
};
ExportDim operator*(const ExportDim& a, const ExportDim& b);

// A named dimension, and the input that tells it.
struct OnnxSymbol {
  std::string name;
  std::string input;
  int64_t axis = 0;
  ExportDim extent;
};

// factor * first [* second] + offset.
struct ExportDimFormula {
  int64_t factor = 1, offset = 0;
  int first = 0, second = -1;  // indices of symbols; -1: none
};

class ExportDims {
 public:
  // `others` are two graphs, which must outlive this, or none: all is fixed then.  So it is when
  // the graphs differ in more than extents; same_nodes() is false then.
  ExportDims(const Graph& graph, const std::vector<Graph>& others);

  bool same_nodes() const { return same_nodes_; }
  const std::vector<OnnxSymbol>& symbols() const { return symbols_; }
  std::vector<ExportDim> Dims(ValueId value) const;
  // A list of integers among the attributes of a node.
  std::vector<ExportDim> Attribute(const Node& node, const std::string& name) const;
  // The symbol that this extent is, if it is one.
  const OnnxSymbol* SymbolOf(const ExportDim& extent) const;
  std::optional<ExportDimFormula> FormulaOf(const ExportDim& extent) const;

 private:
  void FindSymbols();
  std::optional<ExportDimFormula> Multiple(const ExportDim& extent) const;
  std::optional<ExportDimFormula> Product(const ExportDim& extent) const;
  std::optional<ExportDimFormula> Linear(const ExportDim& extent) const;

  bool Fits(const ExportDimFormula& formula, const ExportDim& extent) const;

  const Graph& graph_;
  const Graph *other_ = nullptr, *third_ = nullptr;
  bool same_nodes_ = true;
  std::vector<OnnxSymbol> symbols_;
};

}  // namespace ridge
