#include "ridge/cli/levers.h"

#include <fmt/format.h>

#include <vector>

#include "ridge/cli/planning.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

struct Lever {
  std::string flags;
  TrainOptions options;
};

// Those that the job does not use yet and its device has.
std::vector<Lever> LeversOf(const PlannedJob& job, const Machine& machine) {
  std::vector<Lever> levers;
  const auto add = [&](std::string flags, auto change) {
    Lever lever{std::move(flags), job.options};
    change(lever.options);
    levers.push_back(std::move(lever));
  };
  const TrainOptions& now = job.options;
  if (now.batch % 2 == 0 && now.bucket.empty()) {
    add(fmt::format("--batch {} --accumulate {}", now.batch / 2, 2 * now.accumulate),
        [](TrainOptions& o) {
          o.batch /= 2;
          o.accumulate *= 2;
          o.loss_chunks = "auto";
        });
  }
  for (const char* recompute : {"off", "all", "full"}) {
    if (now.recompute != recompute)
      add(fmt::format("--recompute {}", recompute),
          [&](TrainOptions& o) { o.recompute = recompute; });
  }
  const bool wide = job.operands == DType::kF32;
  if (wide && machine.query().Multiplies(DType::kBF16))
    add("--precision bf16", [](TrainOptions& o) { o.precision = "bf16"; });
  for (const char* state : {"bf16", "8bit"}) {
    if (now.optimizer.state == "f32")
      add(fmt::format("--optimizer-state {}", state),
          [&](TrainOptions& o) { o.optimizer.state = state; });
  }
  for (const char* offload : {"optimizer", "all"}) {
    if (now.offload == "none" && machine.host_link_bytes_per_s > 0)
      add(fmt::format("--offload {}", offload), [&](TrainOptions& o) { o.offload = offload; });
  }
  if (now.frozen_weights.empty())
    add("--frozen-weights nf4", [](TrainOptions& o) { o.frozen_weights = "nf4"; });
  return levers;
}

double SampleSeconds(const PlannedJob& job) {
  return job.step_s / static_cast<double>(job.options.batch * job.options.accumulate);
}

std::vector<std::string> RowOf(const std::string& flags, const PlannedJob& job,
                               const PlannedJob& base) {
  const auto bytes = static_cast<double>(job.memory.needed_bytes());
  const auto base_bytes = static_cast<double>(base.memory.needed_bytes());
  const bool is_base = &job == &base;
  return {flags,
          FormatBytes(job.memory.needed_bytes()),
          is_base ? "" : FormatPercentChange(bytes / base_bytes - 1),
          FormatSeconds(job.step_s),
          is_base ? "" : FormatPercentChange(SampleSeconds(job) / SampleSeconds(base) - 1),
          job.fits() ? "yes" : "no"};
}

}  // namespace

Result<std::string> LeversReport(const PlannedJob& job, const Machine& machine,
                                 const Terminal& terminal) {
  Table table({{"with"},
               {"peak", Align::kRight},
               {"", Align::kRight},
               {"step", Align::kRight},
               {"a sample", Align::kRight},
               {"fits"}});
  RIDGE_ASSIGN_OR_RETURN(const PlannedJob base, PlanWith(job.options, job, machine));
  table.AddRow(RowOf("as planned", base, base));
  for (const Lever& lever : LeversOf(job, machine)) {
    const Result<PlannedJob> other = PlanWith(lever.options, job, machine);
    if (other.ok()) table.AddRow(RowOf(lever.flags, *other, base));
  }
  return "\nLevers  each alone, planned and not rehearsed\n" + table.ToText(terminal);
}

}  // namespace ridge::cli
