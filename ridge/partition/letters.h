// Letters: the factors of a call (OpDef::shared_axes) as partitioning reads and writes them.
//
// A letter is in the result (pass), only in operands (sum: the result is pending), or there is none
// for a dimension, which is then never cut.
#pragma once
#include <optional>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/partition/split.h"

namespace ridge {

// A letter cut by an axis: each of its dimensions has the cut in `blocks` times its own blocks.
struct LetterCut {
  size_t letter = 0;
  int axis = 0;
  int64_t blocks = 1;

  bool operator==(const LetterCut&) const = default;
};

// An operand or a result of a call.
struct Slot {
  bool is_output = false;
  size_t index = 0;
};

class Letters {
 public:
  // `mesh` must outlive it.
  Letters(const OpDef& op, OpCall call, const Mesh& mesh);

  const OpCall& call() const { return call_; }
  const std::vector<Factor>& factors() const { return factors_; }
  // Present operands, then results.
  const std::vector<Slot>& slots() const { return slots_; }
  const Dims& DimsOf(Slot slot) const;

  // The letter that a cut of this operand or result is one of; nullopt: of none.
  std::optional<LetterCut> Find(Slot slot, const Cut& cut) const;
  // The cut that a letter's makes of an operand or result; nullopt: it has not the letter.
  std::optional<Cut> CutOf(Slot slot, const LetterCut& cut) const;
  // Whether all extents and attributes are multiples.
  bool Allows(const LetterCut& cut) const;
  // How an operand or result lies when these letters are cut.
  Split SplitOf(Slot slot, const std::vector<LetterCut>& cuts) const;

 private:
  const OpDef& op_;
  const OpCall call_;
  const Mesh& mesh_;
  std::vector<Factor> factors_;
  std::vector<Slot> slots_;
};

// The operands and results of a node, by slot.
ValueId ValueAt(const Node& node, Slot slot);

}  // namespace ridge
