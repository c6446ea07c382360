#include "ridge/graph/ops/shared/update_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/moments.h"
#include "ridge/graph/ops/shared/optimizer.h"

namespace ridge {
namespace {

constexpr size_t kAdamShared[] = {4, 5, kAdamApply, kAdamApply + 1};
constexpr size_t kAdamOwn[] = {0, 1, kAdamM.input, kAdamV.input};
constexpr size_t kSgdShared[] = {2, kSgdApply, kSgdApply + 1};
constexpr size_t kSgdOwn[] = {0, 1}, kMomentumOwn[] = {0, 1, kSgdBuffer.input};

constexpr UpdateGroup kGroups[] = {
    {"adam_update_group", "adam_update", kAdamShared, kAdamOwn, 3},
    {"sgd_update_group", "sgd_update", kSgdShared, kSgdOwn, 1},
    {"momentum_update_group", "sgd_update", kSgdShared, kMomentumOwn, 2},
};

template <class Range>
bool Contains(const Range& range, size_t i) {
  return std::find(range.begin(), range.end(), i) != range.end();
}

// Whether the update has the group's inputs and no others, and moments of the parameter's type.
bool Fits(const UpdateGroup& group, const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && !Contains(group.shared, i) && !Contains(group.own, i)) return false;
  }
  return std::all_of(group.own.begin(), group.own.end(), [&](size_t i) {
    return call.has_input(i) && call.inputs[i] == call.inputs[0];
  });
}

}  // namespace

size_t UpdateGroup::CountOf(const OpCall& group) const {
  return (group.inputs.size() - shared.size()) / own.size();
}

size_t UpdateGroup::InputsOf(const OpCall& group) const {
  size_t last = own.back();
  for (size_t i = 0; i < shared.size(); ++i) {
    if (group.has_input(i)) last = std::max(last, shared[i]);
  }
  return last + 1;
}

OpCall UpdateGroup::UpdateOf(const OpCall& group, size_t at) const {
  OpCall call;
  call.where = fmt::format("{}, update {}", group.where, at);
  call.attrs = group.attrs;
  call.attrs["stream"] = int64_t{0};
  const size_t last = std::max(shared.back(), own.back());
  call.inputs.assign(last + 1, OpCall::Absent());
  for (size_t i = 0; i < shared.size(); ++i) call.inputs[shared[i]] = group.inputs[i];
  for (size_t i = 0; i < own.size(); ++i) call.inputs[own[i]] = group.inputs[OwnInput(at, i)];
  for (size_t o = 0; o < outputs && Output(at, o) < group.outputs.size(); ++o)
    call.outputs.push_back(group.outputs[Output(at, o)]);
  return call;
}

std::string KernelOfOneUpdate(std::string_view kernel) {
  if (!kernel.ends_with(kGroupKernelSuffix)) return "";
  return std::string(kernel.substr(0, kernel.size() - std::string_view(kGroupKernelSuffix).size()));
}

std::span<const UpdateGroup> AllUpdateGroups() { return kGroups; }

const UpdateGroup& GroupOf(const OpDef& op) {
  const auto* found = std::find_if(std::begin(kGroups), std::end(kGroups),
                                   [&](const UpdateGroup& g) { return op.name == g.name; });
  RIDGE_CHECK(found != std::end(kGroups), op.name + " is no group");
  return *found;
}

const UpdateGroup* GroupFor(const OpDef& op, const OpCall& call) {
  const auto* found = std::find_if(
      std::begin(kGroups), std::end(kGroups),
      [&](const UpdateGroup& group) { return op.name == group.update && Fits(group, call); });
  return found == std::end(kGroups) ? nullptr : found;
}

}  // namespace ridge
