// A group: several updates of one optimizer as one node.
//
//   adam_update_group(lr, step, apply?, grad_scale?, param, grad, m, v, param, grad, m, v, ...)
//
// All its updates have these attributes and the first inputs in common.  The outputs are those of
// the first update, then of the second, and so on.  Moments are of the parameters' type.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "ridge/graph/op_def.h"

namespace ridge {

inline constexpr size_t kMostUpdates = 128;  // of a group: one launch has all their addresses

struct UpdateGroup {
  const char* name;                // the operator of the group
  const char* update;              // of one update
  std::span<const size_t> shared;  // inputs of the update that all of a group have in common
  std::span<const size_t> own;     // and the others, the gradient second
  size_t outputs;                  // of one update

  // REQUIRES: the call has inputs of whole updates.
  size_t CountOf(const OpCall& group) const;
  // Input `i` of the update `at`, or its output `o`, in the group.
  size_t OwnInput(size_t at, size_t i) const { return shared.size() + at * own.size() + i; }
  size_t Output(size_t at, size_t o) const { return at * outputs + o; }
  // How many inputs an update has as a node of its own.
  size_t InputsOf(const OpCall& group) const;
  // The update `at` as a call of its own.
  OpCall UpdateOf(const OpCall& group, size_t at) const;
};

// A kernel of groups has the name of the one for single updates, and this behind it: it gives the
// same bits.
inline constexpr const char* kGroupKernelSuffix = ".group";
// Empty where the kernel is none of groups.
std::string KernelOfOneUpdate(std::string_view kernel);

// Groups of adam_update, sgd_update without and with a momentum buffer.
std::span<const UpdateGroup> AllUpdateGroups();
// REQUIRES: `op` is a group.
const UpdateGroup& GroupOf(const OpDef& op);
// Of which the call, of an operator for one update, may become a part; nullptr: of none.
const UpdateGroup* GroupFor(const OpDef& op, const OpCall& call);

}  // namespace ridge
