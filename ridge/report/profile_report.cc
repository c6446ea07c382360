// Two tables and a list.  Bars are of the step, so that they can be compared across both tables.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/units.h"
#include "ridge/report/bar_chart.h"
#include "ridge/report/profile.h"
#include "ridge/report/profile_causes.h"
#include "ridge/report/table.h"
#include "ridge/report/text.h"

namespace ridge {
namespace {

constexpr size_t kOperatorsShown = 6;
constexpr size_t kGroupsShown = 12;
constexpr size_t kCausesShown = 6;
constexpr int kBarColumns = 12;

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string LimitText(double limit_s, double seconds) {
  return limit_s > 0 ? fmt::format("{:.0f} %", 100 * Ratio(limit_s, seconds)) : "";
}

std::string Head(const StepProfile& profile, const Terminal& terminal) {
  const StepMeasurement& m = profile.measured;
  std::string text = Styled("Profile", Style::kBold, terminal);
  text += fmt::format("  {}, batch {}, {}, {}, on {}\n\n", Printable(m.model), m.batch, m.optimizer,
                      DTypeName(m.operands), m.limits.name);
  text += Styled("Step", Style::kBold, terminal);
  text += fmt::format("  {} ({} without node times, {} rounds), {} samples/s\n",
                      FormatSeconds(m.step_s), FormatSeconds(m.plain_step_s), m.steps,
                      FormatCount(Ratio(static_cast<double>(m.batch), m.plain_step_s)));
  text += fmt::format("  roofline {}: {}; FLOPs alone at the peak rate {}: {}\n\n",
                      FormatSeconds(profile.roofline_step_s),
                      FormatPercent(Ratio(profile.roofline_step_s, m.plain_step_s)),
                      FormatSeconds(profile.flops_floor_s),
                      FormatPercent(Ratio(profile.flops_floor_s, m.plain_step_s)));
  return text;
}

std::vector<std::string> Cells(const std::string& what, int nodes, double seconds, double limit_s,
                               double step_s, const Terminal& terminal) {
  const double share = Ratio(seconds, step_s);
  return {what,
          nodes > 0 ? fmt::format("{}", nodes) : "",
          FormatSeconds(std::max(0.0, seconds)),
          FormatPercent(share),
          BarText(share, kBarColumns, terminal.unicode),
          LimitText(limit_s, seconds)};
}

// The longest rows of a part, and the others together.
void AddOperators(const StepProfile& profile, ProfilePart part, const Terminal& terminal,
                  Table& table) {
  const double step_s = profile.measured.step_s;
  size_t shown = 0;
  ProfileRow others;
  for (const ProfileRow& row : profile.rows) {
    if (row.part != part || row.name.empty()) continue;
    if (shown++ < kOperatorsShown) {
      table.AddRow(Cells("  " + row.name, row.nodes, row.seconds, row.limit_s, step_s, terminal));
      continue;
    }
    others.nodes += row.nodes;
    others.seconds += row.seconds;
    others.limit_s += row.limit_s;
  }
  if (shown <= kOperatorsShown) return;
  table.AddRow(Cells("  " + FormatCountOf(static_cast<int64_t>(shown - kOperatorsShown), "other"),
                     others.nodes, others.seconds, others.limit_s, step_s, terminal),
               Style::kDim);
}

// A part with the sum of its rows, then the rows below it.
void AddPart(const StepProfile& profile, ProfilePart part, const Terminal& terminal, Table& table) {
  ProfileRow sum;
  for (const ProfileRow& row : profile.rows) {
    if (row.part != part) continue;
    sum.nodes += row.nodes;
    sum.seconds += row.seconds;
    sum.limit_s += row.limit_s;
  }
  const double step_s = profile.measured.step_s;
  const bool measured_input = part != ProfilePart::kInputWait || profile.measured.has_data;
  table.AddRow(Cells(ProfilePartName(part) + std::string(measured_input ? "" : " (no --data)"),
                     sum.nodes, sum.seconds, sum.limit_s, step_s, terminal),
               Style::kBold);
  AddOperators(profile, part, terminal, table);
}

std::string Parts(const StepProfile& profile, const Terminal& terminal) {
  Table table({{"where the time goes"},
               {"nodes", Align::kRight},
               {"time", Align::kRight},
               {"share", Align::kRight},
               {""},
               {"of limit", Align::kRight}});
  for (const ProfilePart part : {ProfilePart::kCompute, ProfilePart::kMemory, ProfilePart::kReorder,
                                 ProfilePart::kInputWait, ProfilePart::kRuntime}) {
    AddPart(profile, part, terminal, table);
  }
  table.AddRule();
  table.AddRow(Cells("step", static_cast<int>(profile.nodes.size()), profile.measured.step_s,
                     profile.limit_s, profile.measured.step_s, terminal));
  return table.ToText(terminal) + "\n";
}

std::string NameOf(const ProfileGroup& group) {
  if (group.nodes.size() == 1) return group.name;
  return fmt::format("{} x{}", group.name, group.nodes.size());
}

std::string Rate(double amount, double seconds) {
  const double giga = Ratio(amount, seconds) / 1e9;
  return amount <= 0 ? "" : fmt::format("{:.{}f}", giga, giga < 10 ? 1 : 0);
}

std::string Groups(const StepProfile& profile, const Terminal& terminal) {
  Table table({{"kernels, longest first"},
               {"operator"},
               {"time", Align::kRight},
               {"share", Align::kRight},
               {""},
               {"GF/s", Align::kRight},
               {"GB/s", Align::kRight},
               {"in"},
               {"of limit", Align::kRight}});
  const double step_s = profile.measured.step_s;
  double others_s = 0;
  for (size_t g = 0; g < profile.groups.size(); ++g) {
    const ProfileGroup& group = profile.groups[g];
    if (g >= kGroupsShown) {
      others_s += group.seconds;
      continue;
    }
    const double share = Ratio(group.seconds, step_s);
    table.AddRow({NameOf(group), group.op, FormatSeconds(group.seconds), FormatPercent(share),
                  BarText(share, kBarColumns, terminal.unicode), Rate(group.flops, group.seconds),
                  Rate(group.bytes, group.seconds), group.level,
                  LimitText(group.limit_s, group.seconds)});
  }
  if (profile.groups.size() > kGroupsShown) {
    const double share = Ratio(others_s, step_s);
    table.AddRow({fmt::format("{} others", profile.groups.size() - kGroupsShown), "",
                  FormatSeconds(others_s), FormatPercent(share),
                  BarText(share, kBarColumns, terminal.unicode)},
                 Style::kDim);
  }
  return table.ToText(terminal) + "\n";
}

std::string Causes(const StepProfile& profile, const Terminal& terminal) {
  std::string text;
  size_t shown = 0;
  for (const ProfileGroup& group : profile.groups) {
    if (group.cause.empty() || shown == kCausesShown) continue;
    if (group.seconds < 0.005 * profile.measured.step_s) break;
    ++shown;
    text += fmt::format("  {} ({}), {}\n    {}\n", Printable(NameOf(group)), group.op,
                        Printable(group.kernel), Printable(group.why));
  }
  if (text.empty()) return "";
  return Styled("Far from their limit", Style::kBold, terminal) +
         fmt::format("  (below {:.0f} %)\n", 100 * kFarFromLimit) + text + "\n";
}

std::string Advice(const StepProfile& profile, const Terminal& terminal) {
  if (profile.advice.empty()) return "";
  std::string text = Styled("What would help most", Style::kBold, terminal) + "\n";
  const double step_s = profile.measured.step_s;
  for (const ProfileAdvice& advice : profile.advice) {
    const std::string nodes = advice.nodes > 0 ? ", " + FormatCountOf(advice.nodes, "node") : "";
    text += fmt::format(
        "  {} of the step ({}): {}{}\n    {}\n",
        Styled(FormatPercentChange(-Ratio(advice.gain_s, step_s)), Style::kGreen, terminal),
        "-" + FormatSeconds(advice.gain_s), advice.what, nodes, Printable(advice.how));
  }
  return text;
}

}  // namespace

std::string ProfileReport(const StepProfile& profile, const Terminal& terminal) {
  return Head(profile, terminal) + Parts(profile, terminal) + Groups(profile, terminal) +
         Causes(profile, terminal) + Advice(profile, terminal);
}

}  // namespace ridge
