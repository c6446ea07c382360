#include "ridge/lower/kernel_query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace ridge {

double KernelQuery::BestEfficiency(const OpDef& op, const OpCall& call) {
  const std::vector<LayoutId> row_major(call.inputs.size(), kRowMajor);
  double best = 0;
  for (const KernelChoice& choice : Candidates(op, call, row_major).choices)
    best = std::max(best, choice.efficiency);
  return best;
}

KernelChoice RowMajorChoice(const OpDef& op, const OpCall& call, const std::string& kernel) {
  KernelChoice choice;
  choice.kernel = kernel;
  choice.input_layouts.assign(call.inputs.size(), kRowMajor);
  choice.output_layouts.assign(call.outputs.size(), kRowMajor);
  for (const auto& [output, input] : op.in_place) {
    const auto out = static_cast<size_t>(output), in = static_cast<size_t>(input);
    if (out < call.outputs.size() && call.has_input(in) && call.inputs[in] == call.outputs[out])
      choice.in_place.emplace_back(output, input);
  }
  return choice;
}

namespace {

std::string AttrKey(const Attr& attr) {
  if (const auto* integer = std::get_if<int64_t>(&attr)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&attr)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&attr)) return *text;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attr)) return DimsToString(*list);
  if (const auto* list = std::get_if<std::vector<double>>(&attr))
    return fmt::format("[{}]", fmt::join(*list, ","));
  return AttrKindName(attr);
}

}  // namespace

std::string CallKey(const OpDef& op, const OpCall& call) {
  std::string key = op.name;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    key += call.has_input(i) ? " " + TypeToString(call.inputs[i]) : " _";
  for (const auto& [name, value] : call.attrs) {
    if (name != "stream") key += " " + name + "=" + AttrKey(value);  // a name's hash, not work
  }
  return key;
}

}  // namespace ridge
