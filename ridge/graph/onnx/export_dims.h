// OnnxExtents: which extents of a graph follow from the named dimensions of its inputs.
//
// Known by comparison: the graph is there twice, with its named dimensions at different extents.
// What is equal in both is fixed; what differs is some function of the names, found by trying
// multiples, products and linear forms.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// One number in both graphs.
struct OnnxExtent {
  int64_t here = 0, other = 0;
  bool fixed() const { return here == other; }
  bool operator==(const OnnxExtent&) const = default;
};

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
  // `other` may be nullptr: all is fixed then.  So it is when the graphs differ in more than
  // extents; same_nodes() is false then.
  OnnxExtents(const Graph& graph, const Graph* other);

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

  const Graph& graph_;
  const Graph* other_;
  bool same_nodes_ = true;
  std::vector<OnnxSymbol> symbols_;
};

}  // namespace ridge
