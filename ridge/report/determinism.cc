// Bytes are cuDNN's own answers.  Seconds are known for gradients of attention alone: nobody
// publishes both engines of a convolution side by side.
#include "ridge/report/determinism.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "ridge/core/units.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/workspaces.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

// Of gradients of attention, heads of 128 and 8192 keys, causal: 575 and 474 TFLOP/s on an H100
// (github:Dao-AILab/flash-attention, issue 1893), 2.274 and 2.505 ms on Blackwell (pull request
// 2280 there).
constexpr double kMostSlower = 575.0 / 474.0, kLeastSlower = 2.505 / 2.274;
constexpr const char* kSlowerSource =
    "FlashAttention's deterministic ones take 1.10 (Blackwell) to 1.21 times (H100) as long: "
    "github:Dao-AILab/flash-attention, pull request 2280 and issue 1893";
constexpr size_t kMostRows = 10;

// A kernel whose deterministic engine takes other bytes than cuDNN's first choice.
struct OtherEngine {
  const PlannedNode* node = nullptr;
  std::string step;
  int64_t more_bytes = 0;
};

std::vector<OtherEngine> OtherEngines(const Program& program) {
  std::vector<OtherEngine> all;
  std::set<std::string> seen;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      const KernelChoice& choice = node.choice;
      if (!choice.answer || choice.workspace_bytes == choice.answer->first_bytes) continue;
      if (!seen.insert(QuestionOf(node)).second) continue;
      all.push_back({&node, step.name, choice.workspace_bytes - choice.answer->first_bytes});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const OtherEngine& a, const OtherEngine& b) {
    return std::abs(a.more_bytes) > std::abs(b.more_bytes);
  });
  return all;
}

// Of an update, in gradients of attention.
double AttentionGradSeconds(const PlanSummary& plan) {
  double seconds = 0;
  for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
    const std::vector<double> node_s = PlannedNodeSeconds(*part.step);
    for (size_t n = 0; n < node_s.size(); ++n) {
      if (part.step->nodes[n].op == "attention_grad")
        seconds += node_s[n] * static_cast<double>(RunsOf(*part.step, n) * part.runs);
    }
  }
  return seconds;
}

std::string TimeText(const PlanSummary& plan, const WorkspaceSources& sources) {
  std::string text;
  if (sources.other_engines > 0) {
    text += fmt::format("  time: of {} not known: no measurement of both engines is published\n",
                        FormatCountOf(sources.other_engines, "kernel"));
  }
  if (const double grads_s = AttentionGradSeconds(plan); grads_s > 0) {
    text += fmt::format("  time: gradients of attention {}, of which {} to {} are the price: {}\n",
                        FormatSeconds(grads_s), FormatSeconds(grads_s * (1 - 1 / kLeastSlower)),
                        FormatSeconds(grads_s * (1 - 1 / kMostSlower)), kSlowerSource);
  }
  return text.empty() ? "  time: nothing where engines are known: first choices are deterministic\n"
                      : text;
}

bool RunsCudnn(const Program& program) {
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (node.choice.kernel.starts_with("cudnn.")) return true;
    }
  }
  return false;
}

}  // namespace

bool OtherEnginesUntold(const Program& program) {
  return WorkspaceSourcesOf(program).empty() && RunsCudnn(program);
}

std::string DeterministicBytesText(const Program& program) {
  const int64_t more = DeterministicBytes(program);
  if (more == 0) return "the peak is no larger for it";
  return fmt::format("the peak is {} {} for it", FormatBytes(std::abs(more)),
                     more > 0 ? "larger" : "smaller");
}

std::string DeterminismReport(const PlanSummary& plan, const Terminal& terminal) {
  const WorkspaceSources sources = WorkspaceSourcesOf(*plan.program);
  std::string text = Styled("Determinism", Style::kBold, terminal) + "  ";
  if (OtherEnginesUntold(*plan.program)) {
    return text +
           "cuDNN gives deterministic kernels alone here; what they cost is known of devices that "
           "are not here. hint: --on h200-sxm\n";
  }
  if (sources.empty()) return text + "costs nothing here: every kernel gives equal bits\n";
  text += fmt::format("what equal bits in every run cost on {}\n", plan.program->device);
  text += fmt::format("  memory: of {} whose engines are known {} differ; {}\n",
                      FormatCountOf(static_cast<int64_t>(sources.answered()), "kernel"),
                      sources.other_engines, DeterministicBytesText(*plan.program));
  if (sources.unanswered() > 0) {
    text += fmt::format("  not known: what cuDNN's first choice takes for {}\n",
                        FormatCountOf(static_cast<int64_t>(sources.unanswered()), "kernel"));
  }
  text += TimeText(plan, sources);
  std::vector<OtherEngine> others = OtherEngines(*plan.program);
  if (others.empty()) return text;
  if (others.size() > kMostRows) others.resize(kMostRows);
  Table table({{"node"}, {"op"}, {"workspace", Align::kRight}, {"first choice", Align::kRight}});
  for (const OtherEngine& other : others) {
    const KernelChoice& choice = other.node->choice;
    table.AddRow({other.step + " " + other.node->name, other.node->op,
                  FormatBytes(choice.workspace_bytes), FormatBytes(choice.answer->first_bytes)});
  }
  return text + table.ToText(terminal);
}

}  // namespace ridge
