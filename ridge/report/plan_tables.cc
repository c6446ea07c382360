#include "ridge/report/plan_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "ridge/core/units.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/memory/phases.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/report/layout_report.h"

namespace ridge {
namespace {

GridCell Bytes(int64_t bytes) { return {FormatBytes(bytes), static_cast<double>(bytes)}; }
GridCell Seconds(double seconds) { return {FormatSeconds(seconds), seconds}; }
GridCell Share(double part, double whole) {
  const double share = whole > 0 ? part / whole : 0;
  return {FormatPercent(share), share};
}
// With a bar.
GridCell BarCell(double part, double whole) {
  GridCell cell = Share(part, whole);
  cell.bar = cell.value;
  return cell;
}
GridCell Count(double count) { return {FormatCount(count), count}; }
GridCell Optional(const std::optional<double>& number, std::string (*format)(double)) {
  return number ? GridCell{format(*number), number} : GridCell{"?", {}};
}

std::string UsdText(double usd) { return fmt::format("{:.2f} USD", usd); }
std::string KwhText(double kwh) { return fmt::format("{:.3g} kWh", kwh); }
std::string WattText(double watts) { return fmt::format("{:g} W", watts); }

// "2 notes", and which.
GridCell Folded(const std::vector<std::string>& items, const char* of) {
  if (items.empty()) return {""};
  const auto count = static_cast<int64_t>(items.size());
  return {FormatCountOf(count, of), static_cast<double>(count), {}, items};
}

std::string NamedBytes(const std::vector<std::pair<std::string, int64_t>>& list) {
  std::string text;
  for (const auto& [name, bytes] : list)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, FormatBytes(bytes));
  return text;
}

std::string ClassOf(const PlannedNode& node) {
  if (IsTreeNode(node)) return node.op;
  return node.def == nullptr ? "reorder" : CostClassName(node.def->cost_class);
}

// A node of an update, with all its runs.
struct UpdateNode {
  const StepPlan* step = nullptr;
  size_t index = 0;
  double seconds = 0, runs = 1;

  const PlannedNode& node() const { return step->nodes[index]; }
};

std::vector<UpdateNode> UpdateNodes(const PlanSummary& plan) {
  std::vector<UpdateNode> nodes;
  for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
    const std::vector<double> seconds = PlannedNodeSeconds(*part.step);
    for (size_t n = 0; n < seconds.size(); ++n) {
      const auto runs = static_cast<double>(part.runs * RunsOf(*part.step, n));
      nodes.push_back({part.step, n, seconds[n] * runs, runs});
    }
  }
  return nodes;
}

double SamplesPerSecond(const PlanSummary& plan) {
  return plan.step_s > 0 ? static_cast<double>(plan.batch * plan.accumulate) / plan.step_s : 0;
}

}  // namespace

std::string FitsText(const PlanSummary& plan) {
  if (!plan.knows_limit())
    return fmt::format("needs {}: how much memory {} has is not known. hint: --fit BYTES",
                       FormatBytes(plan.memory.needed_bytes()), plan.program->device);
  const std::string text =
      fmt::format("{} {} of {} available", plan.fits ? "fits:" : "does not fit: needs",
                  FormatBytes(plan.memory.needed_bytes()), FormatBytes(plan.limit_bytes));
  if (!plan.memory.range) return text;
  return fmt::format("{}; between {} and {} by what is estimated", text,
                     FormatBytes(plan.memory.range->low_bytes),
                     FormatBytes(plan.memory.range->high_bytes));
}

std::string StepText(const PlanSummary& plan) {
  std::string text = FormatSeconds(plan.step_s) + " a step";
  if (plan.range)
    text += fmt::format(" ({} to {})", FormatSeconds(plan.range->low_s),
                        FormatSeconds(plan.range->high_s));
  text += fmt::format(", {} samples/s", FormatCount(SamplesPerSecond(plan)));
  if (plan.epoch_s) text += fmt::format(", {} an epoch", FormatSeconds(*plan.epoch_s));
  return text;
}

std::vector<std::string> SourcesOf(std::vector<std::string> sources, const PlanSummary& plan) {
  if (plan.range && !plan.range->evidence.empty())
    sources.push_back("range of the seconds: " + plan.range->evidence);
  if (plan.memory.range) sources.push_back("range of the memory: " + plan.memory.range->evidence);
  if (plan.expected) {
    sources.push_back(fmt::format(
        "expected {} a step by {} here (planned x {:.2f})", FormatSeconds(plan.expected->step_s),
        FormatCountOf(plan.expected->runs, "earlier run"), plan.expected->scale));
  }
  return sources;
}

Grid MemoryGrid(const PlanSummary& plan) {
  Grid grid = {"Memory by purpose, at the peak", {"purpose", "bytes", "share"}, {}};
  const auto peak = static_cast<double>(plan.memory.peak_bytes);
  for (const auto& [purpose, bytes] : plan.memory.breakdown) {
    if (bytes == 0) continue;
    grid.rows.push_back({{purpose}, Bytes(bytes), BarCell(static_cast<double>(bytes), peak)});
  }
  grid.rows.push_back({{"all"}, Bytes(plan.memory.peak_bytes), Share(peak, peak)});
  return grid;
}

Grid PhasesGrid(const PlanSummary& plan) {
  Grid grid = {
      "The most that is live, by phase", {"phase", "live", "at node", "largest tensors there"}, {}};
  for (const PhasePeak& peak : PhasePeaks(*plan.program)) {
    grid.rows.push_back(
        {{peak.phase}, Bytes(peak.bytes), {PlaceOf(peak)}, {NamedBytes(peak.largest)}});
  }
  return grid;
}

Grid ClassesGrid(const PlanSummary& plan) {
  struct Sum {
    double seconds = 0, flops = 0, nodes = 0;
  };
  std::map<std::string, Sum> sums;
  double total = 0;
  for (const UpdateNode& update : UpdateNodes(plan)) {
    Sum& sum = sums[ClassOf(update.node())];
    sum.seconds += update.seconds;
    sum.flops += update.runs * static_cast<double>(update.node().cost.flops);
    sum.nodes += 1;
    total += update.seconds;
  }
  Grid grid = {
      "Time of a step by class of operators", {"class", "time", "share", "FLOPs", "nodes"}, {}};
  for (const auto& [name, sum] : sums) {
    grid.rows.push_back({{name},
                         Seconds(sum.seconds),
                         BarCell(sum.seconds, total),
                         Count(sum.flops),
                         Count(sum.nodes)});
  }
  std::stable_sort(grid.rows.begin(), grid.rows.end(), [](const auto& a, const auto& b) {
    return a[1].value.value_or(0) > b[1].value.value_or(0);
  });
  return grid;
}

Grid NodesGrid(const PlanSummary& plan) {
  Grid grid = {"Nodes of a step, in order",
               {"node", "operator", "phase", "time", "share", "FLOPs", "bytes", "bound", "kernel",
                "live", "largest tensors"},
               {}};
  const StepPlan* step = nullptr;
  std::vector<NodeMemory> memory;
  for (const UpdateNode& update : UpdateNodes(plan)) {
    if (update.step != step) memory = MemoryByNode(*plan.program, *(step = update.step));
    const PlannedNode& node = update.node();
    const NodeMemory& live = memory[update.index];
    grid.rows.push_back({{node.name},
                         {node.op},
                         {live.phase},
                         Seconds(update.seconds),
                         Share(update.seconds, plan.step_s),
                         Count(update.runs * static_cast<double>(node.cost.flops)),
                         Bytes(static_cast<int64_t>(update.runs) *
                               (node.cost.bytes_read + node.cost.bytes_written)),
                         {BoundName(node.bound)},
                         {node.choice.kernel},
                         Bytes(live.bytes),
                         {NamedBytes(live.largest)}});
  }
  return grid;
}

Grid CandidatesGrid(const PlanSummary& plan) {
  Grid grid = {"By the nominal device, without data",
               {"slices", "recompute", "loss chunks", "memory", "step", "verdict"},
               {}};
  for (const PlanCandidate& c : plan.candidates) {
    grid.rows.push_back({{fmt::format("{}", c.slices), static_cast<double>(c.slices)},
                         {c.recompute},
                         {fmt::format("{}", c.loss_chunks), static_cast<double>(c.loss_chunks)},
                         Bytes(c.bytes),
                         Seconds(c.seconds),
                         {c.chosen ? "chosen"
                          : c.fits ? "fits"
                                   : "does not fit"}});
  }
  return grid;
}

Grid DevicesGrid(const std::vector<PlanSummary>& plans) {
  Grid grid = {"Devices",
               {"device", "verdict", "at least", "memory", "of", "step", "samples/s", "epoch"},
               {}};
  for (const PlanSummary& plan : plans) {
    grid.rows.push_back({{plan.program->device},
                         {!plan.knows_limit() ? "not known"
                          : plan.fits         ? "fits"
                                              : "does not fit"},
                         Bytes(plan.memory.least_bytes()),
                         Bytes(plan.memory.needed_bytes()),
                         plan.knows_limit() ? Bytes(plan.limit_bytes) : GridCell{"not known", {}},
                         Seconds(plan.step_s),
                         Count(SamplesPerSecond(plan)),
                         Optional(plan.epoch_s, FormatSeconds)});
  }
  return grid;
}

Grid OffersGrid(const std::vector<Offer>& offers) {
  Grid grid = {"Offers, best first; refused ones last",
               {"devices", "type", "time", "from", "to", "samples/s", "of linear", "cost",
                "price of", "energy", "supply", "memory a device", "of", "refused by", "notes"},
               {}};
  for (const Offer& offer : offers) {
    const std::string layout = offer.layout ? ", " + LayoutShortText(*offer.layout) : "";
    grid.rows.push_back({{fmt::format("{} x {}{}", offer.count, offer.device, layout)},
                         {offer.precision},
                         Seconds(offer.time_s),
                         Seconds(offer.low_s),
                         Seconds(offer.high_s),
                         Count(offer.samples_s),
                         Optional(offer.linear_share, FormatPercent),
                         Optional(offer.usd, UsdText),
                         {offer.price},
                         Optional(offer.energy_kwh, KwhText),
                         Optional(offer.supply_w, WattText),
                         Bytes(offer.peak_bytes),
                         Bytes(offer.limit_bytes),
                         {fmt::format("{}", fmt::join(offer.refusals, ", "))},
                         Folded(offer.notes, "note")});
  }
  return grid;
}

}  // namespace ridge
