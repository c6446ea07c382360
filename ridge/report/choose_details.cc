#include "ridge/report/choose_details.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ridge/core/units.h"
#include "ridge/report/layout_report.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

using Rows = std::vector<std::pair<const char*, std::string>>;

std::string Money(double usd) {
  return usd < 100 ? fmt::format("{:.2f} USD", usd) : FormatCount(usd) + " USD";
}

std::string TimeText(const Offer& offer) {
  return fmt::format("{} ({} to {}); a step {}, of which {} wait for the other devices",
                     FormatSeconds(offer.time_s), FormatSeconds(offer.low_s),
                     FormatSeconds(offer.high_s), FormatSeconds(offer.step_s),
                     FormatSeconds(offer.exposed_s));
}

std::string BandwidthText(const Balance& balance) {
  return fmt::format(
      "moves {} of {}: headroom {}{}", FormatRate(balance.bytes_per_s, "B"),
      FormatRate(balance.memory_bytes_per_s, "B"), balance.HeadroomText(),
      balance.headroom() < kUsualHeadroom ? fmt::format(", less than {:g} x", kUsualHeadroom) : "");
}

std::string DensityText(const Balance& balance) {
  return fmt::format("{:.0f} flop a byte, the device's rates meet at {:.0f}: {}-bound",
                     balance.intensity, balance.ridge_point,
                     balance.is_memory_bound() ? "bandwidth" : "compute");
}

void AddBalance(const Offer& offer, Rows& rows) {
  if (offer.balance) {
    rows.emplace_back("bandwidth", BandwidthText(*offer.balance));
    rows.emplace_back("density", DensityText(*offer.balance));
  }
  if (offer.sustained_share < 1)
    rows.emplace_back("clock", fmt::format("sustains {:.0f} % of its sheet's peak within its power",
                                           100 * offer.sustained_share));
}

void AddSums(const Offer& offer, Rows& rows) {
  if (offer.count < 2) return;
  if (offer.layout) {
    rows.emplace_back(
        "layout",
        fmt::format("--mesh {} --shard {}, {} of {} samples{}", LayoutMeshText(*offer.layout),
                    LayoutShardText(*offer.layout),
                    FormatCountOf(offer.layout->micro_batches, "micro-batch"),
                    offer.layout->samples, offer.layout->recompute ? ", --recompute full" : ""));
  }
  if (!offer.layout)
    rows.emplace_back(
        "sums", fmt::format("of gradients {} a step, {} hidden ({})", FormatSeconds(offer.sum_s),
                            FormatSeconds(offer.sum_s - offer.exposed_s), offer.sum_source));
  rows.emplace_back("failures", fmt::format("{:.2g} % of the time", 100 * offer.lost_share));
}

void AddPlace(const Offer& offer, Rows& rows) {
  if (offer.power_w && offer.supply_w)
    rows.emplace_back("power", fmt::format("{:g} W at the plug, a supply of {:g} W", *offer.power_w,
                                           *offer.supply_w));
  if (offer.chassis.slots)
    rows.emplace_back("slots", fmt::format("{} of a chassis with {} or {}", *offer.chassis.slots,
                                           kAtxSlots, kMostSlots));
  if (offer.chassis.lanes)
    rows.emplace_back("lanes", fmt::format("{} of PCIe", *offer.chassis.lanes));
}

std::string OwnershipText(const Offer& offer, const OwnershipTerms& terms) {
  const Ownership& cost = *offer.ownership;
  std::string parts = Money(cost.devices_usd) + " devices, ";
  parts += cost.has_host ? Money(cost.host_usd) + " host, " : "host left out, ";
  parts += Money(cost.electricity_usd) + " electricity";
  std::string text = fmt::format(
      "{} in {:g} years at {:.0f} % of the time ({}): {} an hour, {} a "
      "training",
      Money(cost.usd), terms.years, 100 * terms.use, parts, Money(cost.usd_hour),
      Money(cost.usd_training));
  if (offer.rent_usd_hour)
    text += fmt::format("; rent {} an hour, {} a training", Money(*offer.rent_usd_hour),
                        Money(*offer.rent_usd_hour * offer.time_s / 3600));
  return text;
}

void AddCost(const Offer& offer, const OwnershipTerms& terms, Rows& rows) {
  if (offer.usd) rows.emplace_back("cost", fmt::format("{} ({})", Money(*offer.usd), offer.price));
  if (offer.energy_kwh) rows.emplace_back("energy", fmt::format("{:.3g} kWh", *offer.energy_kwh));
  if (offer.ownership) rows.emplace_back("owned", OwnershipText(offer, terms));
}

Rows DetailsOf(const Offer& offer, const OwnershipTerms& terms) {
  Rows rows;
  rows.emplace_back("time", TimeText(offer));
  rows.emplace_back("memory",
                    fmt::format("{} of {}, at least {}", FormatBytes(offer.peak_bytes),
                                FormatBytes(offer.limit_bytes), FormatBytes(offer.peak_low_bytes)));
  AddSums(offer, rows);
  AddBalance(offer, rows);
  AddPlace(offer, rows);
  AddCost(offer, terms, rows);
  for (const std::string& note : offer.notes) rows.emplace_back("note", note);
  if (!offer.refusals.empty())
    rows.emplace_back("refused by", fmt::format("{}", fmt::join(offer.refusals, ", ")));
  return rows;
}

}  // namespace

std::string OfferName(const Offer& offer) {
  std::string name = fmt::format("{} x {}", offer.count, offer.device);
  if (offer.nodes > 1) name += fmt::format(" in {} nodes", offer.nodes);
  return name;
}

std::string OfferDetails(const ChooseTable& table, const std::string& device,
                         const Terminal& terminal) {
  std::string text;
  for (const Offer& offer : table.offers) {
    if (offer.device != device) continue;
    if (!text.empty()) text += "\n";
    text += Styled(OfferName(offer), Style::kBold, terminal) + ", " + offer.precision + "\n";
    for (const auto& [name, what] : DetailsOf(offer, table.terms))
      text += fmt::format("  {:<10} {}\n", name, what);
  }
  return text;
}

std::vector<std::string> UpgradeLines(const ChooseTable& table) {
  std::vector<std::string> lines;
  for (const Upgrade& upgrade : table.upgrades) {
    std::string line =
        fmt::format("{}: time x {:.2f}", OfferName(upgrade.offer), upgrade.time_ratio);
    if (upgrade.cost_ratio) line += fmt::format(", cost x {:.2f}", *upgrade.cost_ratio);
    line += upgrade.missing.empty() ? ", same chassis" : "; " + upgrade.missing;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ridge
