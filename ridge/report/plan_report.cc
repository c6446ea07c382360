// The report of a plan.  Numbers have three digits that count; the exact ones are in plan.json.
#include "ridge/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "ridge/core/units.h"
#include "ridge/plan/memory/phases.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/plan/workspaces.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/determinism.h"
#include "ridge/report/plan_tables.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

constexpr size_t kLongestNodes = 5;
constexpr int kShareColumns = 12;

// A node of one update, with the time of all its runs: as planned, and by the cost model alone.
struct TimedNode {
  const PlannedNode* node = nullptr;
  double seconds = 0, modelled_s = 0;
};

std::string Heading(const std::string& name, const std::string& rest, const Terminal& terminal) {
  return Styled(name, Style::kBold, terminal) + "  " + rest + "\n";
}

std::string Where(const MemoryEstimate& memory) {
  return fmt::format("{} node '{}'", memory.peak_step, memory.peak_node);
}

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// "10.1 GiB at the peak", "10.1 GiB (9.62 GiB to 10.9 GiB) at the peak"
std::string PeakText(const MemoryEstimate& memory) {
  std::string text = FormatBytes(memory.peak_bytes);
  if (memory.range)
    text += fmt::format(" ({} to {})", FormatBytes(memory.range->low_bytes),
                        FormatBytes(memory.range->high_bytes));
  return text + " at the peak";
}

std::string FitsLine(const PlanSummary& plan, const Terminal& terminal) {
  if (!plan.knows_limit()) return fmt::format("  {}\n", FitsText(plan));
  if (plan.fits) {
    return fmt::format("  {}: {} of {} available\n", Styled("fits", Style::kGreen, terminal),
                       FormatBytes(plan.memory.needed_bytes()), FormatBytes(plan.limit_bytes));
  }
  return fmt::format("  {}: needs {}, {} available\n",
                     Styled("does not fit", Style::kRed, terminal),
                     FormatBytes(plan.memory.needed_bytes()), FormatBytes(plan.limit_bytes));
}

// "  inputs: 2 workers read, their buffers may take 2.88 GiB"
std::string InputsLine(const PlanSummary& plan) {
  if (plan.read_workers == 0) return "";
  const std::string cap =
      plan.pipeline_cap_bytes == 0
          ? ""
          : fmt::format(", their buffers may take {}", FormatBytes(plan.pipeline_cap_bytes));
  return fmt::format("  inputs: {} read into two slots{}\n",
                     FormatCountOf(plan.read_workers, "worker"), cap);
}

// What equal bits in every run cost, as far as cuDNN tells without the device.
std::string DeterminismLine(const PlanSummary& plan, const WorkspaceSources& sources) {
  if (sources.other_engines == 0) return "";
  return fmt::format(
      "  deterministic: {} of {} are not cuDNN's first choice (largest workspace {}, by first "
      "choice {}); {}; what that costs in time is not known\n",
      sources.other_engines,
      FormatCountOf(static_cast<int64_t>(sources.answered()), "answered kernel"),
      FormatBytes(sources.largest_bytes), FormatBytes(sources.largest_first_bytes),
      DeterministicBytesText(*plan.program));
}

// Of a device that is not here.
std::string WorkspacesLine(const PlanSummary& plan) {
  const WorkspaceSources sources = WorkspaceSourcesOf(*plan.program);
  std::vector<std::string> parts = sources.libraries;
  if (const auto count = static_cast<int64_t>(sources.by_formula.size()); count > 0)
    parts.push_back("attention by formula: " + FormatCountOf(count, "kernel"));
  if (const auto bounded = static_cast<int64_t>(sources.bounded.size()); bounded > 0) {
    const char* one = sources.asked.empty() ? "is not in the table" : "has no answer";
    const char* more = sources.asked.empty() ? "are not in the table" : "have no answer";
    parts.push_back(
        fmt::format("bounded: {} {}", FormatCountOf(bounded, "kernel"), bounded == 1 ? one : more));
  }
  if (parts.empty()) return "";
  return fmt::format("  workspaces: {}\n", fmt::join(parts, ", ")) + DeterminismLine(plan, sources);
}

// "  offload: 1.20 TiB in the host's memory; its link takes 32.1 s of an update", or "  on the
// host: embed.weight, 3.00 GiB of its memory; 12.0 MiB to the device and 12.0 MiB back in an
// update"
std::string OffloadLine(const PlanSummary& plan) {
  if (!plan.offload) return "";
  const OffloadPlan& offload = *plan.offload;
  if (offload.placed.empty()) {
    return fmt::format("  offload: {} in the host's memory; its link takes {} of an update\n",
                       FormatBytes(offload.host_bytes), FormatSeconds(offload.transfer_s));
  }
  const size_t more = offload.placed.size() - 1;
  return fmt::format(
      "  on the host: {}{}, {} of its memory; {} to the device and {} back in an update\n",
      offload.placed.front(), more == 0 ? "" : fmt::format(" and {} more", more),
      FormatBytes(offload.host_bytes), FormatBytes(static_cast<int64_t>(offload.to_device_bytes)),
      FormatBytes(static_cast<int64_t>(offload.to_host_bytes)));
}

std::string MemoryPart(const PlanSummary& plan, const Terminal& terminal) {
  const MemoryEstimate& memory = plan.memory;
  std::vector<Bar> bars;
  for (const auto& [purpose, bytes] : memory.breakdown) {
    if (bytes == 0 && purpose == "communication") continue;  // one device
    bars.push_back({purpose, static_cast<double>(bytes), FormatBytes(bytes)});
  }
  std::string text = Heading("Memory", PeakText(memory), terminal);
  text += BarChart(bars, terminal);
  if (memory.range) text += fmt::format("  range: {}\n", memory.range->evidence);
  if (!memory.is_placed) return text + FitsLine(plan, terminal);
  text += fmt::format("  peak at {}\n", Where(memory));
  const double over = Ratio(static_cast<double>(memory.arena_bytes - memory.bound_bytes),
                            static_cast<double>(memory.bound_bytes));
  text += fmt::format("  arena {}, lower bound {} ({})\n", FormatBytes(memory.arena_bytes),
                      FormatBytes(memory.bound_bytes), FormatPercentChange(over));
  return text + WorkspacesLine(plan) + OffloadLine(plan) + InputsLine(plan) +
         FitsLine(plan, terminal);
}

std::vector<TimedNode> NodesByTime(const PlanSummary& plan) {
  std::vector<TimedNode> nodes;
  for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
    const std::vector<double> planned = PlannedNodeSeconds(*part.step);
    const std::vector<double> modelled = ModelledNodeSeconds(*part.step);
    for (size_t n = 0; n < planned.size(); ++n) {
      const PlannedNode& node = part.step->nodes[n];
      const auto runs = static_cast<double>(part.runs * RunsOf(*part.step, n));
      nodes.push_back({&node, planned[n] * runs, modelled[n] * runs});
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const TimedNode& a, const TimedNode& b) { return a.seconds > b.seconds; });
  return nodes;
}

std::string ErrorText(double planned, double measured) {
  return measured > 0 ? FormatPercentChange(planned / measured - 1) : "-";
}

std::vector<std::string> TimeRow(const TimedNode& timed, double step_s, const Terminal& terminal) {
  const PlannedNode& node = *timed.node;
  const double share = Ratio(timed.seconds, step_s);
  return {node.name,
          node.op,
          FormatSeconds(timed.seconds),
          FormatPercent(share),
          BarText(share, kShareColumns, terminal.unicode),
          BoundName(node.bound),
          node.measured_s ? "measured" : "modelled",
          node.measured_s ? ErrorText(timed.modelled_s, timed.seconds) : ""};
}

std::string LongestNodes(const PlanSummary& plan, const Terminal& terminal) {
  const std::vector<TimedNode> nodes = NodesByTime(plan);
  const bool alike = plan.lengths.empty();
  const double step_s = alike ? plan.step_s : plan.lengths.back().step_s;
  Table table({{alike ? "node" : fmt::format("node, {} tokens", plan.lengths.back().length)},
               {"operator"},
               {"time", Align::kRight},
               {"share", Align::kRight},
               {""},
               {"bound"},
               {"from"},
               {"model's error", Align::kRight}});
  double others_s = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i < kLongestNodes) {
      table.AddRow(TimeRow(nodes[i], step_s, terminal));
    } else {
      others_s += nodes[i].seconds;
    }
  }
  if (nodes.size() > kLongestNodes) {
    const double share = Ratio(others_s, step_s);
    table.AddRow({FormatCountOf(static_cast<int64_t>(nodes.size() - kLongestNodes), "other"), "",
                  FormatSeconds(others_s), FormatPercent(share),
                  BarText(share, kShareColumns, terminal.unicode)},
                 Style::kDim);
  }
  return table.ToText(terminal);
}

// What the cost model alone says; empty where nothing was measured.
std::string ModelLine(const PlanSummary& plan) {
  if (plan.modelled_step_s == plan.step_s) return "";
  return fmt::format("  modelled {} a step ({})\n", FormatSeconds(plan.modelled_step_s),
                     ErrorText(plan.modelled_step_s, plan.step_s));
}

// "  expected 1.31 s a step by 9 earlier runs of cnn here (x 1.07; 1.02 to 1.12)"
std::string ExpectedLine(const PlanSummary& plan) {
  if (!plan.expected) return "";
  const ExpectedStep& expected = *plan.expected;
  const std::string of = expected.model.empty() ? "" : " of " + expected.model;
  const std::string epoch =
      expected.epoch_s ? fmt::format(", {} an epoch", FormatSeconds(*expected.epoch_s)) : "";
  return fmt::format("  expected {} a step{} by {}{} here (planned x {:.2f}; {:.2f} to {:.2f})\n",
                     FormatSeconds(expected.step_s), epoch,
                     FormatCountOf(expected.runs, "earlier run"), of, expected.scale, expected.low,
                     expected.high);
}

// " (52.0 to 97.1 ms)"
std::string RangeText(const StepRange& range) {
  return fmt::format(" ({} to {})", FormatSeconds(range.low_s), FormatSeconds(range.high_s));
}

std::string EvidenceLine(const PlanSummary& plan) {
  if (!plan.range || plan.range->evidence.empty()) return "";
  return fmt::format("  range: {}\n", plan.range->evidence);
}

// "  rates: 2 kernels are not in the record (1.3 % of the step): cpu.gather, cpu.lstm"
std::string RatesLine(const PlanSummary& plan) {
  if (!plan.rates || plan.rates->missing.empty()) return "";
  const auto count = static_cast<int64_t>(plan.rates->missing.size());
  return fmt::format("  rates: {} {} not in the record ({} of the step): {}\n",
                     FormatCountOf(count, "kernel"), count == 1 ? "is" : "are",
                     FormatPercent(plan.rates->missing_share),
                     fmt::join(plan.rates->missing, ", "));
}

std::string WiresLine(const std::vector<WirePrice>& wires) {
  if (wires.empty()) return "";
  std::vector<std::string> texts;
  for (const WirePrice& of : wires)
    texts.push_back(fmt::format("--wire {} {}, {} sent", of.wire, FormatSeconds(of.busy_s),
                                FormatBytes(of.sent_bytes)));
  return fmt::format("  sums alone: {}\n", fmt::join(texts, "; "));
}

// "  ranks: rank 0 of 2 computes 4 of 8 slices
//   train: all_reduce of 1.71 MiB, this rank sends 1.71 MiB
//   train: 12 all_gather of 24.0 KiB, this rank sends 12.0 KiB
//   communication: 1.52 ms a step, 7.1 % of it (Open MPI 4.1.4, measured 2026-11-26)
//   sums alone: --wire f32 1.52 ms, 1.71 MiB sent; --wire bf16 1.10 ms, 876 KiB sent"
std::string RanksLines(const PlanSummary& plan) {
  std::string text;
  if (const std::optional<MeshPlace>& place = plan.program->place) {
    text = fmt::format("  ranks: rank {} of {}, mesh {}\n", place->device, place->mesh.devices(),
                       MeshText(place->mesh));
  } else if (const auto share = ShareOf(*plan.program); share && share->ranks > 1) {
    text = fmt::format("  ranks: rank {} of {} computes {} of {} slices\n", share->rank,
                       share->ranks, share->owned().count(), share->slices);
  } else {
    return "";
  }
  for (const Collective& of : CollectivesOf(*plan.program)) {
    const std::string op = of.count == 1 ? of.op : fmt::format("{} {}", of.count, of.op);
    text += fmt::format("  {}: {} of {}, this rank sends {}\n", of.step, op, FormatBytes(of.bytes),
                        FormatBytes(of.sent_bytes));
  }
  if (!plan.communication) return text;
  const PlanCommunication& of = *plan.communication;
  const std::string busy =
      of.busy_s > of.exposed_s ? fmt::format(" exposed of {}", FormatSeconds(of.busy_s)) : "";
  return text +
         fmt::format("  communication: {}{} a step, {} of it ({})\n", FormatSeconds(of.exposed_s),
                     busy, FormatPercent(plan.exposed_share()), of.source) +
         WiresLine(of.wires);
}

// The steps of a run with batches of several lengths; "" for others.
std::string LengthTable(const PlanSummary& plan, const Terminal& terminal) {
  if (plan.lengths.empty()) return "";
  Table table({{"  tokens", Align::kRight},
               {"batch", Align::kRight},
               {"batches an epoch", Align::kRight},
               {"a step", Align::kRight}});
  for (const PlanLength& of : plan.lengths) {
    table.AddRow({std::to_string(of.length), std::to_string(of.batch),
                  of.batches > 0 ? FormatCount(static_cast<double>(of.batches)) : "",
                  FormatSeconds(of.step_s)});
  }
  return table.ToText(terminal);
}

std::string TimePart(const PlanSummary& plan, const Terminal& terminal) {
  std::string head = FormatSeconds(plan.step_s) + " a step";
  if (plan.range) head += RangeText(*plan.range);
  if (plan.step_s > 0) {
    head += fmt::format(", {} samples/s", FormatCount(plan.samples() / plan.step_s));
  }
  if (plan.epoch_s) head += fmt::format(", {} an epoch", FormatSeconds(*plan.epoch_s));
  return Heading("Time", head, terminal) + LengthTable(plan, terminal) +
         LongestNodes(plan, terminal) + RanksLines(plan) + ModelLine(plan) + ExpectedLine(plan) +
         EvidenceLine(plan) + RatesLine(plan);
}

std::string ValueText(const StepPlan& step, int index, const KernelQuery& layouts) {
  if (index < 0) return "-";
  const PlannedValue& value = step.values[static_cast<size_t>(index)];
  std::string text = fmt::format("{} {}", value.name, TypeToString(value.type));
  if (value.layout != kRowMajor) text += " " + layouts.LayoutName(value.layout);
  return text;
}

// A sum over ranks writes every gradient, and a table's column is as wide as its widest cell.
constexpr size_t kMostInCell = 8;

std::span<const int> InCell(const std::vector<int>& indices) {
  return std::span(indices).first(std::min(indices.size(), kMostInCell));
}

std::string RestText(const std::vector<int>& indices) {
  if (indices.size() <= kMostInCell) return "";
  return fmt::format(", {} others", indices.size() - kMostInCell);
}

std::string OutputPlaces(const StepPlan& step, const PlannedNode& node) {
  std::string text;
  for (const int index : InCell(node.outputs)) {
    const PlannedValue& value = step.values[static_cast<size_t>(index)];
    text += fmt::format("{}+{} {}", text.empty() ? "" : ", ", value.offset_bytes, value.size_bytes);
    text += fmt::format(" {}-{}", value.live.first, value.live.last);
  }
  return text + RestText(node.outputs);
}

std::string ValueTexts(const StepPlan& step, const std::vector<int>& indices,
                       const KernelQuery& layouts) {
  std::string text;
  for (const int index : InCell(indices)) {
    text += (text.empty() ? "" : ", ") + ValueText(step, index, layouts);
  }
  return text + RestText(indices);
}

std::string StepText(const StepPlan& step, const KernelQuery& layouts) {
  Table table({{"#", Align::kRight},
               {"operator"},
               {"outputs"},
               {"place: +offset bytes live"},
               {"workspace", Align::kRight},
               {"time", Align::kRight},
               {"bound"},
               {"kernel"},
               {"inputs"}});
  const std::vector<double> node_s = PlannedNodeSeconds(step);
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const PlannedNode& node = step.nodes[i];
    table.AddRow({fmt::format("{}", i), node.op, ValueTexts(step, node.outputs, layouts),
                  OutputPlaces(step, node), fmt::format("{}", node.choice.workspace_bytes),
                  FormatSeconds(node_s[i]), BoundName(node.bound), node.choice.kernel,
                  ValueTexts(step, node.inputs, layouts)});
  }
  return fmt::format("\n{}: {} nodes, scratch {} bytes, lower bound {} bytes, {}\n", step.name,
                     step.nodes.size(), step.scratch_bytes, step.bound_bytes,
                     FormatSeconds(PlannedSeconds(step))) +
         table.ToText(Terminal{});
}

std::string PersistentText(const Program& program) {
  Table table(
      {{"persistent"}, {"type"}, {"purpose"}, {"offset", Align::kRight}, {"bytes", Align::kRight}});
  for (const PersistentValue& value : program.persistent) {
    const std::string slot = value.slot > 0 ? fmt::format(" (slot {})", value.slot) : "";
    table.AddRow({value.name + slot, TypeToString(value.type), PurposeName(value.purpose),
                  fmt::format("{}", value.offset_bytes), fmt::format("{}", value.size_bytes)});
  }
  return "\n" + table.ToText(Terminal{}, /*indent=*/0);
}

void AddComparison(Table& table, const std::string& what, double planned, double measured,
                   std::string (*format)(double)) {
  table.AddRow({what, format(planned), format(measured), ErrorText(planned, measured)});
}

std::string BytesText(double bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

// "512 J", "1.23 kJ", "45.6 MJ".
std::string EnergyText(double joules) {
  if (joules >= 1e6) return fmt::format("{:.3g} MJ", joules / 1e6);
  return joules >= 1e3 ? fmt::format("{:.3g} kJ", joules / 1e3) : fmt::format("{:.3g} J", joules);
}

std::string BreakdownText(const MemoryEstimate& memory) {
  std::string text;
  for (const auto& [purpose, bytes] : memory.breakdown) {
    if (bytes > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", purpose, FormatBytes(bytes));
    }
  }
  return text;
}

std::string LargestText(const MemoryEstimate& memory) {
  std::string text;
  for (const auto& [name, bytes] : memory.largest) {
    text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", name, FormatBytes(bytes));
  }
  return text;
}

std::string SmallerText(const SmallerRun& run) {
  std::string text = run.flags;
  if (run.peak_bytes > 0) text += " needs " + FormatBytes(run.peak_bytes);
  return run.effect.empty() ? text : text + fmt::format(" ({})", run.effect);
}

std::string HelpText(const Refusal& refusal) {
  if (refusal.resumed)
    return "a resumed run keeps its batch; end other programs, raise --fit, or resume it where "
           "there is more memory";
  std::string text;
  for (const SmallerRun& run : refusal.smaller)
    text += (text.empty() ? "" : "; ") + SmallerText(run);
  if (!text.empty()) return text;
  const std::string& limit = refusal.limit_name;  // "--fit allows"
  const std::string more = limit.starts_with("--") ? "a larger " + limit.substr(0, limit.find(' '))
                                                   : "a machine with more memory";
  return "no batch is small enough; a smaller model, or " + more;
}

}  // namespace

std::string PlanReport(const std::string& title, const PlanSummary& plan,
                       const Terminal& terminal) {
  return Heading("Plan", title, terminal) + "\n" + MemoryPart(plan, terminal) + "\n" +
         TimePart(plan, terminal);
}

std::string CandidatesReport(const PlanSummary& plan, const Terminal& terminal) {
  Table table({{"slices", Align::kRight},
               {"recompute"},
               {"loss chunks", Align::kRight},
               {"memory", Align::kRight},
               {"step", Align::kRight},
               {""}});
  for (const PlanCandidate& c : plan.candidates) {
    table.AddRow({fmt::format("{}", c.slices), c.recompute, fmt::format("{}", c.loss_chunks),
                  FormatBytes(c.bytes), FormatSeconds(c.seconds),
                  c.chosen ? "chosen"
                  : c.fits ? ""
                           : "does not fit"});
  }
  return Heading("Compared", "by the nominal device, without data", terminal) +
         table.ToText(terminal);
}

std::string PhasesReport(const PlanSummary& plan, const Terminal& terminal) {
  Table table({{"phase"}, {"live", Align::kRight}, {"at node"}, {"largest tensors there"}});
  for (const PhasePeak& peak : PhasePeaks(*plan.program)) {
    std::string largest;
    for (const auto& [name, bytes] : peak.largest)
      largest += fmt::format("{}{} {}", largest.empty() ? "" : ", ", name, FormatBytes(bytes));
    table.AddRow({peak.phase, FormatBytes(peak.bytes), PlaceOf(peak), largest});
  }
  const std::string arena = FormatBytes(plan.memory.arena_bytes);
  const int64_t beside = plan.memory.peak_bytes - plan.memory.arena_bytes;
  return Heading(
             "Memory",
             fmt::format("arena {}, and {} of the process beside it", arena, FormatBytes(beside)),
             terminal) +
         table.ToText(terminal);
}

std::string PlanText(const std::string& title, const PlanSummary& plan,
                     const KernelQuery& layouts) {
  std::string text = PlanReport(title, plan, Terminal{}) + PersistentText(*plan.program);
  for (const StepPlan& step : plan.program->steps) text += StepText(step, layouts);
  return text;
}

std::string ComparisonReport(const RunNumbers& planned, const RunNumbers& measured,
                             const Terminal& terminal) {
  Table table({{"planned against measured"},
               {"planned", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight}});
  AddComparison(table, "peak memory", static_cast<double>(planned.peak_bytes),
                static_cast<double>(measured.peak_bytes), BytesText);
  AddComparison(table, "arena", static_cast<double>(planned.arena_bytes),
                static_cast<double>(measured.arena_bytes), BytesText);
  if (planned.input_bytes && measured.input_bytes) {
    AddComparison(table, "inputs", static_cast<double>(*planned.input_bytes),
                  static_cast<double>(*measured.input_bytes), BytesText);
  }
  AddComparison(table, "step time", planned.step_s, measured.step_s, FormatSeconds);
  if (planned.modelled_step_s)
    AddComparison(table, "  modelled", *planned.modelled_step_s, measured.step_s, FormatSeconds);
  if (planned.communication_s && measured.communication_s) {
    AddComparison(table, "communication", *planned.communication_s, *measured.communication_s,
                  FormatSeconds);
  }
  if (planned.epoch_s && measured.epoch_s) {
    AddComparison(table, "epoch time", *planned.epoch_s, *measured.epoch_s, FormatSeconds);
  }
  if (measured.energy_j) table.AddRow({"energy", "-", EnergyText(*measured.energy_j), "-"});
  return table.ToText(terminal);
}

double RankNumbers::wait_share(double communication_s) const {
  return step_s > 0 ? std::max(0.0, collective_s - communication_s) / step_s : 0;
}

std::string RanksReport(const std::vector<RankNumbers>& ranks, double communication_s,
                        const Terminal& terminal) {
  Table table({{"rank", Align::kRight},
               {"peak planned", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight},
               {"step planned", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight},
               {"waits", Align::kRight}});
  const auto error = [](double planned, double measured) {
    return measured > 0 ? FormatPercentChange(planned / measured - 1) : "-";
  };
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankNumbers& of = ranks[r];
    table.AddRow(
        {std::to_string(r), FormatBytes(of.planned_peak_bytes), FormatBytes(of.peak_bytes),
         error(static_cast<double>(of.planned_peak_bytes), static_cast<double>(of.peak_bytes)),
         FormatSeconds(of.planned_step_s), FormatSeconds(of.step_s),
         error(of.planned_step_s, of.step_s), FormatPercent(of.wait_share(communication_s))});
  }
  return table.ToText(terminal);
}

Status DoesNotFit(const Refusal& refusal) {
  const MemoryEstimate& memory = refusal.memory;
  const std::string others =
      refusal.used_before > 0
          ? fmt::format(", both with {} in use before it", FormatBytes(refusal.used_before))
          : "";
  return Status(ErrorCode::kOutOfMemory,
                fmt::format("plan: the run needs {} on {}, {} {}{}. [R0101]\n"
                            "  peak at {}: {}\n"
                            "  largest values there: {}\n"
                            "  hint: {}",
                            FormatBytes(memory.needed_bytes()), refusal.device, refusal.limit_name,
                            FormatBytes(refusal.limit_bytes), others, Where(memory),
                            BreakdownText(memory), LargestText(memory), HelpText(refusal)));
}

}  // namespace ridge
