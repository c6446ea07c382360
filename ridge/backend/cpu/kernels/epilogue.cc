#include "ridge/backend/cpu/kernels/epilogue.h"

#include <algorithm>

#include "ridge/core/split.h"

namespace ridge::cpu {
namespace {

struct EltwiseStep {
  const char* name;
  dnnl::algorithm algorithm;
  float alpha;
};
constexpr EltwiseStep kEltwise[] = {
    {"relu", dnnl::algorithm::eltwise_relu, 0},
    {"gelu", dnnl::algorithm::eltwise_gelu_erf, 0},
    {"silu", dnnl::algorithm::eltwise_swish, 1},
    {"tanh", dnnl::algorithm::eltwise_tanh, 0},
    {"sigmoid", dnnl::algorithm::eltwise_logistic, 0},
};

constexpr size_t kMostSteps = 16;  // oneDNN takes 32 in one primitive

const EltwiseStep* FindEltwise(const std::string& name) {
  for (const EltwiseStep& step : kEltwise) {
    if (name == step.name) return &step;
  }
  return nullptr;
}

bool AppendEltwise(const std::string& name, dnnl::post_ops& ops) {
  const EltwiseStep* step = FindEltwise(name);
  if (step == nullptr) return false;
  ops.append_eltwise(step->algorithm, step->alpha, 0);
  return true;
}

}  // namespace

std::vector<std::string> EpilogueSteps(const OpCall& call) {
  const std::string text = call.text("epilogue");
  if (text.empty()) return {};
  const std::vector<std::string_view> steps = SplitAt(text, ',');
  return {steps.begin(), steps.end()};
}

bool TakesEpilogue(const OpCall& call) {
  const std::vector<std::string> steps = EpilogueSteps(call);
  return steps.size() <= kMostSteps &&
         std::all_of(steps.begin(), steps.end(), [](const std::string& step) {
           return step == "add" || FindEltwise(step) != nullptr;
         });
}

std::optional<dnnl::primitive_attr> EpilogueAttr(const OpCall& call,
                                                 const dnnl::memory::desc& extra) {
  dnnl::post_ops ops;
  for (const std::string& step : EpilogueSteps(call)) {
    if (step == "add") {
      ops.append_binary(dnnl::algorithm::binary_add, extra);
    } else if (!AppendEltwise(step, ops)) {
      return std::nullopt;
    }
  }
  dnnl::primitive_attr attr = UserScratchpad();
  attr.set_post_ops(ops);
  return attr;
}

void BindEpilogue(const OpCall& call, int first_extra, const dnnl::memory::desc& row_major,
                  const dnnl::memory::desc& output, PrimitivePlan& plan) {
  int position = 0, input = first_extra;
  for (const std::string& step : EpilogueSteps(call)) {
    if (step == "add") {
      plan.BindInput(DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, input++, row_major,
                     output);
    }
    ++position;
  }
}

}  // namespace ridge::cpu
