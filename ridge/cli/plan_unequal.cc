#include "ridge/cli/plan_unequal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <list>

#include "ridge/cli/output.h"
#include "ridge/core/split.h"
#include "ridge/plan/hardware/planned_device.h"
#include "ridge/report/unequal_report.h"
#include "ridge/train/job/layout_search.h"
#include "ridge/train/load/folder_options.h"

namespace ridge::cli {
namespace {

// "t4:2" -> t4 and 2.  A file's ":ID" is no count.
DeviceCount CountOf(std::string_view text, bool& has_count) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {std::string(text)};
  const std::string_view device = text.substr(0, colon), digits = text.substr(colon + 1);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || count < 1 || device.ends_with(".toml")) return {std::string(text)};
  has_count = true;
  return {std::string(device), count};
}

// A kind of device of the team.
struct Kind {
  DeviceCount of;
  OpenedMachine opened;
  int64_t limit_bytes = 0;
  std::optional<LocalSteps> steps;
};

// The slowest link between any two: another kind is reached over the host.
Hardware SlowestLink(const std::list<Kind>& kinds) {
  Hardware link = *kinds.front().opened.hardware;
  if (kinds.size() == 1) return link;
  link.id = "mixed";
  link.peer_link_gb_s.reset();
  for (const Kind& kind : kinds) {
    const auto rate = kind.opened.hardware->host_link_gb_s;
    if (!rate) link.host_link_gb_s.reset();
    if (rate && link.host_link_gb_s) link.host_link_gb_s = std::min(*link.host_link_gb_s, *rate);
  }
  return link;
}

std::string TeamText(const std::vector<DeviceCount>& team) {
  std::vector<std::string> parts;
  for (const DeviceCount& of : team) parts.push_back(fmt::format("{} x {}", of.count, of.device));
  return fmt::format("{}", fmt::join(parts, " and "));
}

class Team {
 public:
  Team(const PlanVerb& verb, const std::vector<DeviceCount>& team) : verb_(verb), team_(team) {}

  Result<UnequalPlan> Plan() {
    RIDGE_RETURN_IF_ERROR(Open());
    UnequalPlan plan;
    plan.title = fmt::format("{}, batch {}, {}, on {}", verb_.train.options.model, options_.batch,
                             options_.precision, TeamText(team_));
    plan.members = Members();
    RIDGE_ASSIGN_OR_RETURN(plan.deal, DealUnequal(plan.members, options_.batch));
    RIDGE_ASSIGN_OR_RETURN(plan.equal, DealEqual(plan.members, options_.batch));
    for (Kind& kind : kinds_) {
      RIDGE_ASSIGN_OR_RETURN(const std::optional<double> step_s, AloneSeconds(kind));
      if (step_s) plan.alone_s.emplace_back(kind.of.device, *step_s);
    }
    plan.command = fmt::format("ridge train {} --batch {} --slices {} --shares {} --devices {}",
                               verb_.train.options.model, options_.batch, plan.deal.slices(),
                               fmt::join(plan.deal.dealt, ","), plan.members.size());
    return plan;
  }

 private:
  Status Open() {
    options_ = verb_.train.options;
    options_.batch = BatchOf(verb_.train, Count()) * options_.accumulate;
    options_.accumulate = 1;
    std::vector<std::string> notes;
    RIDGE_RETURN_IF_ERROR(TakeModelFolder(options_, &notes));
    RIDGE_RETURN_IF_ERROR(CheckModel(options_));
    for (const DeviceCount& of : team_) {
      kinds_.emplace_back();
      Kind& kind = kinds_.back();
      kind.of = of;
      TrainOptions options = options_;
      options.device = of.device;
      RIDGE_ASSIGN_OR_RETURN(kind.opened, OpenFor(verb_, options, /*devices=*/1));
      if (kind.opened.hardware == nullptr || IsCpu(*kind.opened.hardware)) {
        return InvalidArgument(fmt::format(
            "--on {}: unequal devices are planned of `ridge devices`, but CPUs. hint: --on "
            "a100-sxm4-40g:1,t4:1",
            *verb_.on));
      }
      const Machine& machine = kind.opened.machine;
      kind.limit_bytes = options.fit_bytes > 0 ? options.fit_bytes : machine.memory_bytes;
      kind.steps.emplace(options, Alone(kind), machine);
    }
    link_ = SlowestLink(kinds_);
    return Status();
  }

  int64_t Count() const {
    int64_t count = 0;
    for (const DeviceCount& of : team_) count += of.count;
    return count;
  }

  MeshLinks Alone(const Kind& kind) const {
    return {{kind.opened.hardware.get(), 1}, WireShare(kind.opened.machine, options_.precision)};
  }

  Result<LayoutCost> CostOf(Kind& kind, int64_t slices, int64_t samples) {
    RIDGE_ASSIGN_OR_RETURN(const LocalStep step, kind.steps->At(1, false, samples));
    LayoutChoice choice = {.data = Count(), .samples = samples, .micro_batches = slices};
    const DeviceGroup all = {&link_, choice.data};
    const std::optional<LayoutCost> cost =
        ComposeLayout(step, choice, all, WireShare(kind.opened.machine, options_.precision));
    if (cost) return *cost;
    return InvalidArgument(fmt::format(
        "--on {}: the rate of the links is not known. hint: devices whose `ridge devices show` has "
        "host_link_gb_s",
        *verb_.on));
  }

  std::vector<UnequalMember> Members() {
    std::vector<UnequalMember> members;
    for (Kind& kind : kinds_) {
      UnequalMember member = {
          kind.of.device, kind.limit_bytes,
          [this, &kind](int64_t slices, int64_t samples) { return CostOf(kind, slices, samples); }};
      members.insert(members.end(), static_cast<size_t>(kind.of.count), member);
    }
    return members;
  }

  // With the whole batch; none where it does not fit.
  Result<std::optional<double>> AloneSeconds(Kind& kind) {
    LayoutRequest request;
    request.options = options_;
    request.links = Alone(kind);
    request.limit_bytes = kind.limit_bytes;
    request.refined = 1;
    RIDGE_ASSIGN_OR_RETURN(const LayoutsFound found, SearchLayouts(request, *kind.steps));
    if (found.fitting.empty()) return std::optional<double>();
    return std::optional(found.fitting.front().seconds.all());
  }

  const PlanVerb& verb_;
  const std::vector<DeviceCount>& team_;
  TrainOptions options_;
  std::list<Kind> kinds_;  // members point to them
  Hardware link_;
};

}  // namespace

std::vector<DeviceCount> ParseTeam(const std::string& on) {
  std::vector<DeviceCount> team;
  bool has_count = false;
  for (const std::string_view text : SplitAt(on, ',')) team.push_back(CountOf(text, has_count));
  if (!has_count) team.clear();
  return team;
}

Status PrintUnequal(const PlanVerb& verb, const std::vector<DeviceCount>& team,
                    const Terminal& terminal) {
  RIDGE_ASSIGN_OR_RETURN(const UnequalPlan plan, Team(verb, team).Plan());
  PrintData(verb.json ? UnequalJson(plan) + "\n" : UnequalReport(plan, terminal));
  return Status();
}

}  // namespace ridge::cli
