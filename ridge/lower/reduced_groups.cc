#include "ridge/lower/reduced_groups.h"

namespace ridge {
namespace {

struct OpGroup {
  const char* op;
  DTypeGroup group;
};

const std::vector<OpGroup>& AllReducedGroups() {
  static const std::vector<OpGroup> all = {
      {"matmul", {{3}, {0}, /*rest=*/true}},
      {"conv", {{3}, {0}, /*rest=*/true}},
      {"conv_grad_input", {{}, {0}}},
      {"batch_norm", {{0}, {0}}},
      {"batch_norm_grad", {{0, 4}, {0}}},
      {"attention", {{0, 1, 2}, {0}}},
      {"attention_grad", {{0, 1, 2, 3, 5}, {0, 1, 2}}},
      {"layer_norm", {{}, {0}}},
      {"layer_norm_grad", {{3}, {}}},
      {"reduce_sum", {{0}, {}}},
      {"reduce_mean", {{0}, {}}},
      {"argmax", {{0}, {}}},
      {"softmax_cross_entropy", {{0}, {}}},
      {"softmax_cross_entropy_grad", {{0}, {0}}},
      {"rotary_embedding", {{0}, {0}}},
      {"max_pool", {{0}, {0}}},
      {"max_pool_grad", {{1}, {0}}},
      {"avg_pool", {{0}, {0}}},
      {"avg_pool_grad", {{0}, {0}}},
      {"reshape", {{0}, {0}}},
      {"transpose", {{0}, {0}}},
      {"slice", {{0}, {0}}},
      {"slice_grad", {{0}, {0}}},
      {"expand", {{0}, {0}}},
      {"pad", {{0}, {0}}},
      {"concat", {{0}, {0}, /*rest=*/true}},
  };
  return all;
}

}  // namespace

std::vector<DTypeGroup> UsualReducedGroups(const OpDef& op) {
  std::vector<DTypeGroup> groups;
  for (const OpGroup& row : AllReducedGroups()) {
    if (op.name == row.op) groups.push_back(row.group);
  }
  return groups;
}

std::vector<DTypeGroup> GpuReducedGroups(const OpDef& op) {
  if (op.name == "batch_norm") return {{{0, 3}, {0}, /*rest=*/true}};
  if (op.name == "batch_norm_inference") return {{{0, 5}, {0}, /*rest=*/true}};
  return UsualReducedGroups(op);
}

std::vector<DTypeGroup> CudaReducedGroups(const OpDef& op) {
  if (op.name == "softmax_cross_entropy_grad") return {{{0}, {}}, {{}, {0}}};
  if (op.name == "layer_norm") return {{{0}, {}}, {{}, {0}}};
  if (op.name == "layer_norm_grad") return {{{0}, {0}}, {{3}, {}}};
  if (op.name == "rms_norm") return {{{0}, {0}}};
  if (op.name == "rms_norm_grad") return {{{0, 2}, {0}}};
  return GpuReducedGroups(op);
}

}  // namespace ridge
