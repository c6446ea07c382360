// `ridge plan MODEL --why sums`: sums of gradients by an all-reduce and by a parameter server.
#include <fmt/format.h>

#include "ridge/cli/output.h"
#include "ridge/cli/plan_scaling.h"
#include "ridge/core/split.h"
#include "ridge/plan/cost/gradient_times.h"
#include "ridge/plan/hardware/planned_device.h"
#include "ridge/report/sums_report.h"

namespace ridge::cli {
namespace {

constexpr int64_t kUsualDevices = 8;

Result<SumsTable> SumsAt(const PlanVerb& verb, const std::string& name) {
  RIDGE_ASSIGN_OR_RETURN(const MeshTarget place, ParseMeshTarget(name));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountsOf(verb, kUsualDevices));
  RIDGE_ASSIGN_OR_RETURN(const DevicePlan plan,
                         PlanOn(place.device, verb, /*devices=*/1, BatchOf(verb.train, 1)));
  const Hardware* hardware = plan.opened.hardware.get();
  if (hardware == nullptr || IsCpu(*hardware)) {
    return InvalidArgument(fmt::format(
        "--why sums: nothing is known of the links of '{}'. hint: --on dgx-a100-80g", name));
  }
  double bytes = 0;
  const PlannedJob& job = plan.run.job;
  for (const GradientReady& gradient : GradientTimes(job.program, job.options.accumulate))
    bytes += static_cast<double>(gradient.bytes);
  const std::string& precision = verb.train.options.precision;
  bytes *= WireShare(plan.opened.machine, precision);
  SumsTable table = {fmt::format("{} on {}, {}", verb.train.options.model, name, precision), {}};
  for (const int64_t count : counts) {
    RIDGE_ASSIGN_OR_RETURN(const DeviceGroup group, DevicesAt(place, *hardware, count));
    const std::optional<SumWays> ways = CompareSums(group, bytes);
    if (!ways) {
      return InvalidArgument(fmt::format(
          "--why sums: the rate of the links of '{}' is not known. hint: --on dgx-a100-80g", name));
    }
    table.ways.push_back(*ways);
  }
  return table;
}

}  // namespace

Status PrintSums(const PlanVerb& verb, const Terminal& terminal) {
  std::vector<SumsTable> tables;
  const std::string places = verb.on.value_or(verb.train.options.device);
  for (const std::string_view place : SplitAt(places, ',')) {
    RIDGE_ASSIGN_OR_RETURN(SumsTable table, SumsAt(verb, std::string(place)));
    tables.push_back(std::move(table));
  }
  if (verb.json) {
    PrintData(SumsJson(tables) + "\n");
    return Status();
  }
  for (const SumsTable& table : tables)
    PrintData((&table == &tables.front() ? "" : "\n") + SumsReport(table, terminal));
  PrintData(
      "\n  each sends 2 (n - 1) / n of the gradients in a ring; a server's port carries those of "
      "all\n  senders in and their weights out, 2 n: devices of one machine, or machines that "
      "have added up\n");
  return Status();
}

}  // namespace ridge::cli
