#include "ridge/report/rules_of_thumb.h"

#include <fmt/format.h>

#include "ridge/core/units.h"
#include "ridge/plan/cost/times.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

constexpr double kConsumerBytes = 24e9;                                 // of an RTX 3090 or 4090
constexpr double kMuch = 100e6, kConsumerMost = 300e6, kLittle = 10e6;  // parameters

double Parameters(const Program& program) {
  double count = 0;
  for (const PersistentValue& value : program.persistent) {
    if (value.purpose == Purpose::kParameters) count += static_cast<double>(value.type.elements());
  }
  return count;
}

int64_t BytesOf(const PlanSummary& plan, Purpose purpose) {
  for (const auto& [name, bytes] : plan.memory.breakdown) {
    if (name == PurposeName(purpose)) return bytes;
  }
  return 0;
}

// Share of an update's seconds in nodes that memory bounds.
double MemoryBoundShare(const PlanSummary& plan) {
  double all_s = 0, bound_s = 0;
  for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
    const std::vector<double> node_s = PlannedNodeSeconds(*part.step);
    for (size_t n = 0; n < node_s.size(); ++n) {
      const double seconds = node_s[n] * static_cast<double>(RunsOf(*part.step, n) * part.runs);
      all_s += seconds;
      if (part.step->nodes[n].bound == Bound::kMemory) bound_s += seconds;
    }
  }
  return all_s > 0 ? bound_s / all_s : 0;
}

std::string Bytes(double bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

std::string YesNo(bool yes) { return yes ? "yes" : "no"; }

RuleOfThumb TrainingBytes(const PlanSummary& plan, double parameters) {
  const int64_t states = BytesOf(plan, Purpose::kParameters) + BytesOf(plan, Purpose::kGradients) +
                         BytesOf(plan, Purpose::kOptimizer);
  return {
      "training takes 16 bytes a parameter, and the activations", Bytes(16 * parameters),
      fmt::format("{} for parameters, gradients and optimizer; {} for activations",
                  FormatBytes(states), FormatBytes(BytesOf(plan, Purpose::kActivations))),
      "it counts a 16-bit copy of the weights and all gradients at once; SGD keeps no two means; "
      "most of a convolutional network's bytes are activations"};
}

RuleOfThumb WeightBytes(const PlanSummary& plan, double parameters) {
  return {"the weights alone take 2 bytes a parameter, 1 in int8",
          fmt::format("{}, {}", Bytes(2 * parameters), Bytes(parameters)),
          fmt::format("{} in f32 while training", FormatBytes(BytesOf(plan, Purpose::kParameters))),
          "it is inference's: a training keeps weights in f32, whatever its products read"};
}

RuleOfThumb Bandwidth(const PlanSummary& plan, double parameters) {
  return {"above 100 million parameters memory's bandwidth bounds a step",
          YesNo(parameters > kMuch),
          fmt::format("{} of the step in nodes that memory bounds",
                      FormatPercent(MemoryBoundShare(plan))),
          "what bounds a step is the work a byte, which grows with the batch, not the parameters"};
}

RuleOfThumb ConsumerCard(const PlanSummary& plan, double parameters) {
  const bool fits = static_cast<double>(plan.memory.needed_bytes()) <= kConsumerBytes;
  return {"a consumer card of 24 GB trains up to 300 million parameters",
          YesNo(parameters <= kConsumerMost),
          fmt::format("{}: needs {}", YesNo(fits), FormatBytes(plan.memory.needed_bytes())),
          "batch and length decide: activations of a small model on large pictures fill any card"};
}

RuleOfThumb OneCard(double parameters) {
  return {"below 10 million parameters one card suffices", YesNo(parameters < kLittle),
          fmt::format("{} parameters", FormatCount(parameters)),
          "it is about gradients to exchange; days of data may want several cards all the same"};
}

}  // namespace

std::vector<RuleOfThumb> RulesOfThumb(const PlanSummary& plan) {
  const double parameters = Parameters(*plan.program);
  return {TrainingBytes(plan, parameters), WeightBytes(plan, parameters),
          Bandwidth(plan, parameters), ConsumerCard(plan, parameters), OneCard(parameters)};
}

std::string RulesReport(const PlanSummary& plan, const Terminal& terminal) {
  std::string text;
  for (const RuleOfThumb& rule : RulesOfThumb(plan)) {
    if (!text.empty()) text += "\n";
    text +=
        fmt::format("{}\n  by the rule  {}\n  by the plan  {}\n  it fails     {}\n",
                    Styled(rule.rule, Style::kBold, terminal), rule.says, rule.plan, rule.fails);
  }
  return text;
}

}  // namespace ridge
