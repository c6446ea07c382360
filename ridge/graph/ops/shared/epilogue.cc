#include "ridge/graph/ops/shared/epilogue.h"

#include <fmt/format.h>

#include "ridge/core/split.h"

namespace ridge {
namespace {

constexpr const char* kHint =
    "a step is add or a pointwise operator of one input, such as relu, gelu, silu, tanh, sigmoid";

Status StepError(const std::string& where, const std::string& text, const std::string& step) {
  return Status(ErrorCode::kInvalidModel,
                fmt::format("{}: epilogue \"{}\" has the step '{}'; {}", where, text, step, kHint));
}

// Parts between commas; an empty text has none.
std::vector<std::string> SplitSteps(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<std::string_view> steps = SplitAt(text, ',');
  return {steps.begin(), steps.end()};
}

// The call that the step is by itself.
OpCall StepCall(const EpilogueStep& step, const std::string& where, const TensorType& out) {
  OpCall call{.where = where, .inputs = {out}, .outputs = {out}, .attrs = step.attrs};
  if (step.extra >= 0) call.inputs.push_back(out);
  return call;
}

void RoundTo(DType dtype, double* value) {
  if (dtype == DType::kF64) return;
  alignas(8) unsigned char bytes[8];
  StoreFromDouble(dtype, bytes, 0, *value);
  *value = LoadAsDouble(dtype, bytes, 0);
}

size_t ExtraCount(const OpCall& call, size_t first_extra_input) {
  return call.inputs.size() > first_extra_input ? call.inputs.size() - first_extra_input : 0;
}

}  // namespace

bool IsEpilogueStep(const OpDef& op) {
  return op.name == "add" || (op.elementwise != nullptr && op.input_names.size() == 1 &&
                              op.required_attrs.empty() && !op.input_names[0].ends_with("..."));
}

Result<std::vector<EpilogueStep>> ParseEpilogue(const std::string& text, const std::string& where) {
  std::vector<EpilogueStep> steps;
  int extras = 0;
  for (const std::string& name : SplitSteps(text)) {
    const OpDef* op = FindOp(name);
    if (op == nullptr || !IsEpilogueStep(*op)) return StepError(where, text, name);
    steps.push_back({op, op->attr_defaults, name == "add" ? extras++ : -1});
  }
  return steps;
}

Status CheckEpilogue(const OpCall& call, size_t first_extra_input, const TensorType& out) {
  const std::string& text = call.text("epilogue");
  RIDGE_ASSIGN_OR_RETURN(const std::vector<EpilogueStep> steps, ParseEpilogue(text, call.where));
  size_t adds = 0;
  for (const EpilogueStep& step : steps) {
    if (step.extra >= 0) ++adds;
    const std::string where = fmt::format("{}: epilogue step '{}'", call.where, step.op->name);
    RIDGE_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                           step.op->infer_types(StepCall(step, where, out)));
    if (types != std::vector<TensorType>{out}) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("{} gives {}; it must keep {}", where, TypeToString(types[0]),
                                TypeToString(out)));
    }
  }
  const size_t extras = ExtraCount(call, first_extra_input);
  if (extras != adds) {
    return CallError(call, fmt::format("epilogue \"{}\" adds {} extra inputs, {} are given", text,
                                       adds, extras));
  }
  for (size_t i = first_extra_input; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == out) continue;
    return CallError(call,
                     fmt::format("input {} is {}; the epilogue adds it to the output, so it "
                                 "must be {}",
                                 i, call.has_input(i) ? TypeToString(call.inputs[i]) : "absent",
                                 TypeToString(out)));
  }
  return Status();
}

void ApplyEpilogue(const OpCall& call, std::span<const double* const> in, size_t first_extra_input,
                   double* out) {
  const Result<std::vector<EpilogueStep>> steps = ParseEpilogue(call.text("epilogue"), call.where);
  RIDGE_CHECK(steps.ok(), "an epilogue that was not checked: " + steps.status().message());
  const TensorType& type = call.outputs[0];
  const int64_t count = type.elements();
  for (const EpilogueStep& step : *steps) {
    const double* extra =
        step.extra < 0 ? nullptr : in[first_extra_input + static_cast<size_t>(step.extra)];
    for (int64_t i = 0; i < count; ++i) {
      RoundTo(type.dtype, &out[i]);
      const double args[2] = {out[i], extra == nullptr ? 0 : extra[i]};
      out[i] = step.op->elementwise({args, extra == nullptr ? size_t{1} : size_t{2}}, step.attrs);
    }
  }
}

int64_t EpilogueFlops(const OpCall& call, const TensorType& out) {
  const Result<std::vector<EpilogueStep>> steps = ParseEpilogue(call.text("epilogue"), call.where);
  int64_t flops = 0;
  if (!steps.ok()) return flops;
  for (const EpilogueStep& step : *steps)
    flops += CallCost(*step.op, StepCall(step, call.where, out)).flops;
  return flops;
}

Axes FirstAxisWithExtras(const OpCall& call, size_t first_extra_input) {
  Factor batch = Mapped(call, {0}, 0);
  for (size_t i = first_extra_input; i < call.inputs.size(); ++i) batch.inputs[i] = 0;
  return {batch};
}

bool RefusesEpilogueGradient(GradBuilder& g, const char* op_name) {
  const auto& epilogue = g.text("epilogue");
  if (epilogue.empty()) return false;
  g.b().Fail(Status(ErrorCode::kUnsupported,
                    fmt::format("{}: no gradient with epilogue \"{}\": epilogues are made after "
                                "differentiation. hint: write the steps as nodes of their own",
                                op_name, epilogue)));
  return true;
}

}  // namespace ridge
