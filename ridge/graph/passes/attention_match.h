// AttentionMatcher finds attention that is written as primitive nodes.  Inner header of
// attention_*.cc.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "ridge/graph/uses.h"

namespace ridge {

// Scores become `low` where the condition masks them.
struct AttentionFill {
  ValueId condition = kNoValue;
  bool shows = true;  // the condition's true elements are visible, else its false ones
  double low = 0;
};

// y = softmax(cap(scale * q k^T) + masks) v.  Values of the old graph.
struct AttentionMatch {
  ValueId q = kNoValue, v = kNoValue;
  ValueId k = kNoValue;  // [.., S, D], or [.., D, S] when k_transposed
  bool k_transposed = false;
  double scale = 1, softcap = 0;
  bool keep_f32 = false;        // one of both products is kept in f32
  std::vector<ValueId> added;   // float masks
  std::vector<ValueId> shown;   // bool: true is visible
  std::vector<ValueId> hidden;  // bool: true is masked
  std::vector<AttentionFill> fills;
  std::optional<int64_t> causal_offset;
  Dims scores;                 // [.., T, S]
  std::vector<ValueId> inner;  // results between q, k, v and the root
};

class AttentionMatcher {
 public:
  // `graph` must outlive it.
  explicit AttentionMatcher(const Graph& graph);
  // The attention that ends in `root`, a matmul of probabilities and v.
  std::optional<AttentionMatch> Match(const Node& root);

 private:
  bool ReadProbabilities(ValueId probabilities, AttentionMatch& m, ValueId& scores) const;
  bool ReadMasks(AttentionMatch& m, ValueId& scores);
  bool ReadWhere(const Node& where, AttentionMatch& m, ValueId& scores);
  bool ReadAdd(const Node& add, AttentionMatch& m, ValueId& scores);
  void ReadSoftcap(AttentionMatch& m, ValueId& scores) const;
  bool ReadProduct(AttentionMatch& m, ValueId scores) const;
  void ReadScale(double& scale, ValueId& value, std::vector<ValueId>* inner) const;
  bool LeadsToProduct(ValueId id) const;
  bool AddMask(ValueId mask, AttentionMatch& m);
  bool AddBool(ValueId condition, bool shows, AttentionMatch& m);

  // Analysis of a constant mask: causal with an offset, or empty.
  struct ConstantMask {
    bool known = false;     // causal or empty
    bool empty = false;     // masks nothing
    bool rows_see = false;  // at least one key of each query is visible
    int64_t offset = 0;
  };
  // `hides`: the bool value that masks; a float mask masks where it is very negative.
  const ConstantMask& ReadConstant(ValueId id, bool hides);

  const Graph& graph_;
  const GraphUses uses_;
  std::vector<bool> trained_;  // by value: it has a gradient, for a parameter before it
  std::map<std::pair<ValueId, bool>, ConstantMask> constants_;
};

}  // namespace ridge
