// A dimension of extent 1 beside larger ones of its letter broadcasts, so it has no letter.
#include "ridge/partition/letters.h"

#include <algorithm>

namespace ridge {
namespace {

constexpr int kNone = Factor::kNone;

void FillBlocks(Factor& factor) {
  factor.input_blocks.resize(factor.inputs.size(), 1);
  factor.output_blocks.resize(factor.outputs.size(), 1);
}

int64_t LargestExtent(const Factor& factor, const OpCall& call) {
  int64_t largest = 0;
  for (size_t i = 0; i < factor.inputs.size(); ++i) {
    if (factor.inputs[i] != kNone)
      largest = std::max(largest, call.inputs[i].dims[static_cast<size_t>(factor.inputs[i])]);
  }
  for (size_t k = 0; k < factor.outputs.size(); ++k) {
    if (factor.outputs[k] != kNone)
      largest = std::max(largest, call.outputs[k].dims[static_cast<size_t>(factor.outputs[k])]);
  }
  return largest;
}

// Whether anything is left to cut.
bool Normalize(Factor& factor, const OpCall& call) {
  if (factor.offset_attr != nullptr) return false;
  FillBlocks(factor);
  const int64_t largest = LargestExtent(factor, call);
  bool any = false;
  for (size_t i = 0; i < factor.inputs.size(); ++i) {
    int& dim = factor.inputs[i];
    if (dim != kNone && call.inputs[i].dims[static_cast<size_t>(dim)] != largest &&
        call.inputs[i].dims[static_cast<size_t>(dim)] == 1)
      dim = kNone;
    any = any || dim != kNone;
  }
  for (int dim : factor.outputs) any = any || dim != kNone;
  return any && largest > 1;
}

bool SameDims(const Factor& a, const Factor& b) {
  return a.inputs == b.inputs && a.outputs == b.outputs && a.input_blocks == b.input_blocks &&
         a.output_blocks == b.output_blocks;
}

}  // namespace

ValueId ValueAt(const Node& node, Slot slot) {
  return slot.is_output ? node.outputs[slot.index] : node.inputs[slot.index];
}

Letters::Letters(const OpDef& op, OpCall call, const Mesh& mesh)
    : op_(op), call_(std::move(call)), mesh_(mesh) {
  for (Factor factor : SharedAxesOf(op_, call_)) {
    if (!Normalize(factor, call_)) continue;
    const bool known = std::any_of(factors_.begin(), factors_.end(),
                                   [&](const Factor& f) { return SameDims(f, factor); });
    if (!known) factors_.push_back(std::move(factor));
  }
  for (size_t i = 0; i < call_.inputs.size(); ++i)
    if (call_.has_input(i)) slots_.push_back({false, i});
  for (size_t k = 0; k < call_.outputs.size(); ++k) slots_.push_back({true, k});
}

const Dims& Letters::DimsOf(Slot slot) const {
  return (slot.is_output ? call_.outputs : call_.inputs)[slot.index].dims;
}

std::optional<LetterCut> Letters::Find(Slot slot, const Cut& cut) const {
  std::optional<LetterCut> best;
  int64_t best_blocks = 0;
  for (size_t f = 0; f < factors_.size(); ++f) {
    const Factor& factor = factors_[f];
    const int dim = (slot.is_output ? factor.outputs : factor.inputs)[slot.index];
    const int64_t own = (slot.is_output ? factor.output_blocks : factor.input_blocks)[slot.index];
    if (dim != cut.dim || cut.blocks % own != 0 || own <= best_blocks) continue;
    const LetterCut found{f, cut.axis, cut.blocks / own};
    if (!Allows(found)) continue;
    best = found;
    best_blocks = own;
  }
  return best;
}

std::optional<Cut> Letters::CutOf(Slot slot, const LetterCut& cut) const {
  const Factor& factor = factors_[cut.letter];
  const int dim = (slot.is_output ? factor.outputs : factor.inputs)[slot.index];
  if (dim == kNone) return std::nullopt;
  const int64_t own = (slot.is_output ? factor.output_blocks : factor.input_blocks)[slot.index];
  return Cut{dim, cut.axis, own * cut.blocks};
}

bool Letters::Allows(const LetterCut& cut) const {
  const Factor& factor = factors_[cut.letter];
  const int64_t parts = cut.blocks * mesh_.size(cut.axis);
  if (cut.blocks != 1 && (factor.divided_attr != nullptr || op_.draws)) return false;
  if (factor.extent != 0 && factor.extent % parts != 0) return false;
  if (factor.divided_attr != nullptr && call_.integer(factor.divided_attr) % parts != 0)
    return false;
  return std::all_of(slots_.begin(), slots_.end(), [&](Slot slot) {
    const std::optional<Cut> own = CutOf(slot, cut);
    return !own || CanCut(DimsOf(slot), {}, *own, mesh_);
  });
}

Split Letters::SplitOf(Slot slot, const std::vector<LetterCut>& cuts) const {
  Split split;
  for (const LetterCut& cut : cuts)
    if (const std::optional<Cut> own = CutOf(slot, cut)) split.Add(*own);
  return split;
}

}  // namespace ridge
