// OnnxExtents: which extents of a graph follow from the named dimensions of its inputs.
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
struct OnnxExtent {
  int64_t here = 0, other = 0, third = 0;
  static OnnxExtent Fixed(int64_t extent) { return {extent, extent, extent}; }
  bool fixed() const { return here == other && here == third; }
  bool operator==(const OnnxExtent&) const = default;
  auto operator<=>(const OnnxExtent&) const = default;
};
OnnxExtent operator*(const OnnxExtent& a, const OnnxExtent& b);

// A named dimension, and the input that tells it.
struct OnnxSymbol {
  std::string name;
  std::string input;
  int64_t axis = 0;
  OnnxExtent extent;
};

// factor * first [* second] + offset.
struct OnnxExtentFormula {
  int64_t factor = 1, offset = 0;
  int first = 0, second = -1;  // indices of symbols; -1: none
};

class OnnxExtents {
 public:
  // `others` are two graphs, which must outlive this, or none: all is fixed then.  So it is when
  // the graphs differ in more than extents; same_nodes() is false then.
  OnnxExtents(const Graph& graph, const std::vector<Graph>& others);

  bool same_nodes() const { return same_nodes_; }
  const std::vector<OnnxSymbol>& symbols() const { return symbols_; }
  std::vector<OnnxExtent> Dims(ValueId value) const;
  // A list of integers among the attributes of a node.
  std::vector<OnnxExtent> Attribute(const Node& node, const std::string& name) const;
  // The symbol that this extent is, if it is one.
  const OnnxSymbol* SymbolOf(const OnnxExtent& extent) const;
  std::optional<OnnxExtentFormula> FormulaOf(const OnnxExtent& extent) const;

 private:
  void FindSymbols();
  std::optional<OnnxExtentFormula> Multiple(const OnnxExtent& extent) const;
  std::optional<OnnxExtentFormula> Product(const OnnxExtent& extent) const;
  std::optional<OnnxExtentFormula> Linear(const OnnxExtent& extent) const;

  bool Fits(const OnnxExtentFormula& formula, const OnnxExtent& extent) const;

  const Graph& graph_;
  const Graph *other_ = nullptr, *third_ = nullptr;
  bool same_nodes_ = true;
  std::vector<OnnxSymbol> symbols_;
};

}  // namespace ridge
