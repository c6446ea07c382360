// GroupUpdates: small updates of an optimizer as one node, whose kernel is launched once.
//
//   p2, m2, v2 = adam_update(p, dp, m, v, lr, step), q2, n2, w2 = adam_update(q, dq, n, w, lr,
//   step)
//     -> p2, m2, v2, q2, n2, w2 = adam_update_group(lr, step, _, _, p, dp, m, v, q, dq, n, w)
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Updates of equal attributes and equal rates, steps and scales, where RewriteRules::GroupsUpdate()
// is true, at the place of the last of them.  # bitwise
Result<Graph> GroupUpdates(Graph graph, const RewriteRules& rules);

// What GPUs answer to RewriteRules::GroupsUpdate(): at most 64 Ki numbers of f32, in a tensor that
// no kernel wants in another layout.
bool IsSmallUpdate(const OpCall& update);

}  // namespace ridge
