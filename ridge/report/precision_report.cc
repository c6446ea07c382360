#include "ridge/report/precision_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ridge/core/units.h"
#include "ridge/lower/autocast.h"
#include "ridge/plan/cost/times.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

constexpr size_t kMostRows = 12;

struct Nodes {
  int64_t count = 0;
  double seconds = 0;  // of an update

  void Add(double s) {
    ++count;
    seconds += s;
  }
};

template <typename Predicate>
bool AnyType(const OpCall& call, const Predicate& is) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), is) ||
         std::any_of(call.outputs.begin(), call.outputs.end(), is);
}

bool HasFloats(const OpCall& call) {
  return AnyType(call, [](const TensorType& type) { return IsFloat(type.dtype); });
}

bool HasNarrow(const OpCall& call) {
  return AnyType(call, [](const TensorType& type) { return Is16BitFloat(type.dtype); });
}

bool IsContraction(const OpDef& op, const OpCall& call) {
  const bool is = op.cost_class == CostClass::kMatmul || op.cost_class == CostClass::kConv;
  return is && call.inputs.size() >= 2;
}

// Of a node of f32 alone.
std::string WhyF32(const PlannedNode& node, const RewriteRules& rules) {
  if (node.def == nullptr) return "it copies f32 between layouts";
  const OpDef& op = *node.def;
  if (op.cost_class == CostClass::kOptimizer)
    return "weights and moments stay f32: 16 bits would round small updates away";
  if (IsContraction(op, node.call)) {
    const ReducedRates rates = rules.RatesOf(DType::kBF16);
    if (!PaysForCasts(op, node.call, rates))
      return fmt::format("fewer than {} FLOPs an element: casts would cost more than they save",
                         rates.least_flops_per_element);
    return "--precision-for keeps it, or the device has no kernel for its shape in 16 bits";
  }
  if (op.cost_class == CostClass::kElementwise) return "its neighbours read and write f32";
  if (rules.ReducedGroups(op).empty()) return "the device's kernels of it take f32";
  return "it reads f32: weights, or outputs, which --precision-for narrows";
}

struct Counted {
  Nodes narrow, wide, others;
  std::map<std::pair<std::string, std::string>, Nodes> by_reason;  // operator, why
};

Counted CountNodes(const PlanSummary& plan, const RewriteRules& rules) {
  Counted counted;
  for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
    const std::vector<double> node_s = PlannedNodeSeconds(*part.step);
    for (size_t n = 0; n < node_s.size(); ++n) {
      const PlannedNode& node = part.step->nodes[n];
      const double seconds = node_s[n] * static_cast<double>(RunsOf(*part.step, n) * part.runs);
      if (HasNarrow(node.call)) {
        counted.narrow.Add(seconds);
      } else if (!HasFloats(node.call)) {
        counted.others.Add(seconds);
      } else {
        counted.wide.Add(seconds);
        counted.by_reason[{node.op, WhyF32(node, rules)}].Add(seconds);
      }
    }
  }
  return counted;
}

std::string SharesText(const Counted& counted, const Terminal& terminal) {
  const double all_s = counted.narrow.seconds + counted.wide.seconds + counted.others.seconds;
  Table table({{"reads or writes"},
               {"nodes", Align::kRight},
               {"time", Align::kRight},
               {"share", Align::kRight}});
  const auto add = [&](const char* what, const Nodes& nodes) {
    if (nodes.count == 0) return;
    table.AddRow({what, FormatCount(static_cast<double>(nodes.count)), FormatSeconds(nodes.seconds),
                  FormatPercent(nodes.seconds / all_s)});
  };
  add("16 bits", counted.narrow);
  add("f32", counted.wide);
  add("no floats", counted.others);
  return table.ToText(terminal);
}

std::string ReasonsText(const Counted& counted, const Terminal& terminal) {
  using Row = std::pair<std::pair<std::string, std::string>, Nodes>;
  std::vector<Row> rows(counted.by_reason.begin(), counted.by_reason.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.second.seconds > b.second.seconds; });
  Table table({{"stay f32"}, {"nodes", Align::kRight}, {"time", Align::kRight}, {"why"}});
  for (size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    const auto& [key, nodes] = rows[i];
    table.AddRow({key.first, FormatCount(static_cast<double>(nodes.count)),
                  FormatSeconds(nodes.seconds), key.second});
  }
  std::string text = table.ToText(terminal);
  if (rows.size() > kMostRows) text += fmt::format("  and {} others\n", rows.size() - kMostRows);
  return text;
}

}  // namespace

std::string PrecisionReport(const PlanSummary& plan, DType operands, const RewriteRules& rules,
                            const Terminal& terminal) {
  const Counted counted = CountNodes(plan, rules);
  std::string text = Styled("Precision", Style::kBold, terminal) + "  of the nodes of an update\n";
  const bool any = counted.narrow.count > 0;
  if (!any && !Is16BitFloat(operands))
    return text + "  no node reads or writes 16 bits. hint: --precision bf16\n";
  if (!any)
    text +=
        fmt::format("  --precision {}: no node reads or writes 16 bits\n\n", DTypeName(operands));
  text += SharesText(counted, terminal);
  if (counted.wide.count > 0) text += "\n" + ReasonsText(counted, terminal);
  return text;
}

}  // namespace ridge
