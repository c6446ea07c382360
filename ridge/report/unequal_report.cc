#include "ridge/report/unequal_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

double KernelSeconds(const LayoutCost& cost) { return cost.seconds.kernels + cost.seconds.update; }

const std::pair<std::string, double>* FastestAlone(const UnequalPlan& plan) {
  const auto fastest =
      std::min_element(plan.alone_s.begin(), plan.alone_s.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return fastest == plan.alone_s.end() ? nullptr : &*fastest;
}

double ShareOf(const UnequalDeal& deal, size_t member) {
  return static_cast<double>(deal.dealt[member]) / static_cast<double>(deal.slices());
}

std::string MembersText(const UnequalPlan& plan, const Terminal& terminal) {
  Table table({{"device"},
               {"slices", Align::kRight},
               {"samples", Align::kRight},
               {"share", Align::kRight},
               {"kernels", Align::kRight},
               {"sums", Align::kRight},
               {"waits", Align::kRight},
               {"memory", Align::kRight}});
  const UnequalDeal& deal = plan.deal;
  for (size_t i = 0; i < plan.members.size(); ++i) {
    const LayoutCost& cost = deal.costs[i];
    const double idle_s = deal.IdleSeconds(i);
    table.AddRow({plan.members[i].device, std::to_string(deal.dealt[i]),
                  std::to_string(deal.dealt[i] * deal.samples), FormatPercent(ShareOf(deal, i)),
                  FormatSeconds(KernelSeconds(cost)), FormatSeconds(cost.seconds.data),
                  idle_s > 0 ? FormatSeconds(idle_s) : "-", FormatBytes(cost.bytes.all())});
  }
  return table.ToText(terminal);
}

std::string VerdictText(const UnequalPlan& plan) {
  std::string text =
      fmt::format("{:.2f} times the samples a second of equal shares", TimesEqual(plan));
  if (const auto* alone = FastestAlone(plan); alone != nullptr) {
    text += fmt::format(", {:.2f} times those of {} alone", TimesAlone(plan), alone->first);
    if (TimesAlone(plan) < 1) text += ", which is faster without the others";
  }
  return text + ".\n";
}

Json MemberJson(const UnequalPlan& plan, size_t i) {
  const LayoutCost& cost = plan.deal.costs[i];
  return {{"device", plan.members[i].device},
          {"slices", plan.deal.dealt[i]},
          {"samples", plan.deal.dealt[i] * plan.deal.samples},
          {"share", ShareOf(plan.deal, i)},
          {"kernel_s", KernelSeconds(cost)},
          {"sum_s", cost.seconds.data},
          {"straggler_s", cost.seconds.stragglers},
          {"idle_s", plan.deal.IdleSeconds(i)},
          {"peak_bytes", cost.bytes.all()},
          {"limit_bytes", plan.members[i].limit_bytes}};
}

}  // namespace

double TimesEqual(const UnequalPlan& plan) { return plan.equal.step_s / plan.deal.step_s; }

double TimesAlone(const UnequalPlan& plan) {
  const auto* alone = FastestAlone(plan);
  return alone == nullptr ? 0 : alone->second / plan.deal.step_s;
}

std::string UnequalReport(const UnequalPlan& plan, const Terminal& terminal) {
  const UnequalDeal& deal = plan.deal;
  std::string text = plan.title + "\n" + VerdictText(plan) + "\n";
  text += MembersText(plan, terminal);
  text +=
      fmt::format("\n  {} of {} samples, {} a step, {} samples/s\n",
                  FormatCountOf(deal.slices(), "slice"), deal.samples, FormatSeconds(deal.step_s),
                  FormatCount(static_cast<double>(deal.batch()) / deal.step_s));
  text += fmt::format("  equal shares: {} a step", FormatSeconds(plan.equal.step_s));
  for (const auto& [device, seconds] : plan.alone_s)
    text += fmt::format("; {} alone: {}", device, FormatSeconds(seconds));
  return text + "\n\n  " + plan.command + "\n";
}

std::string UnequalJson(const UnequalPlan& plan) {
  Json devices = Json::array(), alone = Json::array();
  for (size_t i = 0; i < plan.members.size(); ++i) devices.push_back(MemberJson(plan, i));
  for (const auto& [device, seconds] : plan.alone_s)
    alone.push_back({{"device", device}, {"step_s", seconds}});
  const UnequalDeal& deal = plan.deal;
  const Json json = {{"title", plan.title},
                     {"batch", deal.batch()},
                     {"slices", deal.slices()},
                     {"slice_samples", deal.samples},
                     {"step_s", deal.step_s},
                     {"samples_s", static_cast<double>(deal.batch()) / deal.step_s},
                     {"devices", std::move(devices)},
                     {"equal_step_s", plan.equal.step_s},
                     {"alone", std::move(alone)},
                     {"times_equal", TimesEqual(plan)},
                     {"times_alone", plan.alone_s.empty() ? Json(nullptr) : Json(TimesAlone(plan))},
                     {"command", plan.command}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge
