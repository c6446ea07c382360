#include "ridge/report/device_bytes_report.h"

#include <fmt/format.h>

#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

std::string ErrorOf(int64_t planned, int64_t measured) {
  if (measured <= 0) return "-";
  return FormatPercentChange(static_cast<double>(planned) / static_cast<double>(measured) - 1);
}

void AddPart(Table& table, const std::string& part, int64_t planned, int64_t measured) {
  table.AddRow({part, FormatBytes(planned), FormatBytes(measured), ErrorOf(planned, measured)});
}

std::string SharedText(const DeviceBytes& bytes) {
  const OtherProcesses& others = bytes.others;
  if (others.count == 0) {
    return fmt::format("{} were given back during the run, by another process",
                       FormatBytes(bytes.given_back()));
  }
  const std::string who = FormatCountOf(others.count, "other process");
  const bool one = others.count == 1;
  if (!others.bytes)
    return fmt::format("{} {} it, and NVML does not tell how much", who, one ? "uses" : "use");
  return fmt::format("{} {} {}", who, one ? "holds" : "hold", FormatBytes(*others.bytes));
}

}  // namespace

std::string DeviceBytesVerdict(const DeviceBytes& bytes) {
  const DeviceReadings& used = bytes.used;
  switch (bytes.verdict()) {
    case BytesVerdict::kShared:
      return fmt::format("{}: shared, bytes not proven: {}", bytes.device, SharedText(bytes));
    case BytesVerdict::kLeak:
      return fmt::format("{}: a leak: {} more are in use at the end than before the first step{}",
                         bytes.device, FormatBytes(bytes.growth()),
                         used.before ? "" : ", or another process took them");
    case BytesVerdict::kMoreThanPlanned:
      return fmt::format("{}: more than planned: {} are in use at the end, {} were planned",
                         bytes.device, FormatBytes(used.end), FormatBytes(bytes.peak_bytes));
    case BytesVerdict::kProven:
      break;
  }
  return fmt::format("{}: bytes proven: {} planned, {} in use at the end", bytes.device,
                     FormatBytes(bytes.peak_bytes), FormatBytes(used.end));
}

std::string DeviceBytesReport(const DeviceBytes& bytes, const Terminal& terminal) {
  Table table({{"bytes of " + bytes.device},
               {"planned", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight}});
  const DeviceParts &planned = bytes.planned, measured = bytes.measured();
  table.AddRow(
      {"before the run", "-", bytes.used.before ? FormatBytes(*bytes.used.before) : "-", "-"});
  AddPart(table, "context", planned.context, measured.context);
  AddPart(table, "arena", planned.arena, measured.arena);
  AddPart(table, "kernels", planned.kernels, measured.kernels);
  AddPart(table, "graphs", planned.graphs, measured.graphs);
  AddPart(table, "growth in the run", 0, bytes.growth());
  AddPart(table, "locked on the host", bytes.planned_staging, bytes.staging);
  std::string text = table.ToText(terminal);
  if (!bytes.used.before) {
    text += fmt::format("{}: the context is counted with all that was in use before it: {}\n",
                        bytes.device, bytes.no_before);
  }
  return text + DeviceBytesVerdict(bytes) + "\n";
}

}  // namespace ridge
