#include "ridge/report/choose_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/report/choose_details.h"
#include "ridge/report/layout_report.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

std::string Usd(const std::optional<double>& usd) {
  if (!usd) return "?";
  return *usd < 100 ? fmt::format("{:.2f} USD", *usd) : FormatCount(*usd) + " USD";
}

std::string Or(const std::optional<double>& number, const char* form, const char* unit) {
  return number ? fmt::format(fmt::runtime(form), *number) + unit : "?";
}

std::string Range(const Offer& offer) {
  return FormatSeconds(offer.low_s) + " to " + FormatSeconds(offer.high_s);
}

std::string OfferText(const Offer& offer) {
  const std::string layout = offer.layout ? ", " + LayoutShortText(*offer.layout) : "";
  std::string text = fmt::format("{}, {}{}: {} ({})", OfferName(offer), offer.precision, layout,
                                 FormatSeconds(offer.time_s), Range(offer));
  if (offer.usd) text += fmt::format(", {} ({})", Usd(offer.usd), offer.price);
  if (offer.energy_kwh) text += fmt::format(", {:.3g} kWh", *offer.energy_kwh);
  return text;
}

// "9.24 of 22.1 GiB"; both units where they differ.
std::string MemoryText(const Offer& offer) {
  std::string peak = FormatBytes(offer.peak_bytes);
  const std::string limit = FormatBytes(offer.limit_bytes);
  const size_t blank = peak.find(' ');
  if (limit.ends_with(peak.substr(blank))) peak.resize(blank);
  return peak + " of " + limit;
}

std::string UsdNumber(const std::optional<double>& usd) {
  if (!usd) return "?";
  return *usd < 100 ? fmt::format("{:.2f}", *usd) : FormatCount(*usd);
}

std::string LayoutText(const Offer& offer) {
  return offer.layout ? LayoutShortText(*offer.layout) : "";
}

// In 100 columns but for layouts; type, price list and notes are in the details.
std::vector<std::string> Row(const Offer& offer, bool with_layout) {
  std::vector<std::string> row = {
      OfferName(offer),     FormatSeconds(offer.time_s),        Range(offer),
      UsdNumber(offer.usd), Or(offer.energy_kwh, "{:.3g}", ""), Or(offer.supply_w, "{:g}", " W"),
      MemoryText(offer)};
  if (with_layout) row.insert(row.begin() + 1, LayoutText(offer));
  return row;
}

using Counts = std::map<std::string, int64_t>;

Counts CountRefusals(const std::vector<Offer>& offers) {
  Counts counts;
  for (const Offer& offer : offers) {
    for (const std::string& refusal : offer.refusals) ++counts[refusal];
  }
  return counts;
}

std::string RefusedLine(const std::vector<Offer>& offers) {
  const Counts counts = CountRefusals(offers);
  if (counts.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [what, count] : counts) parts.push_back(fmt::format("{} {}", count, what));
  return fmt::format("  refused by: {}\n", fmt::join(parts, ", "));
}

// The best of the allowed ones by `key`; none when it has no number there.
template <typename Key>
const Offer* Least(const std::vector<Offer>& offers, Key key) {
  const Offer* least = nullptr;
  for (const Offer& offer : offers) {
    const std::optional<double> number = key(offer);
    if (!offer.is_allowed() || !number) continue;
    if (least == nullptr || *number < *key(*least)) least = &offer;
  }
  return least;
}

struct BestOffer {
  const char* by;
  const Offer* offer;  // nullptr: nothing is known
};

std::vector<BestOffer> FindBest(const std::vector<Offer>& offers) {
  const auto time = [](const Offer& o) { return std::optional<double>(o.time_s); };
  const auto cost = [](const Offer& o) { return o.usd; };
  const auto energy = [](const Offer& o) { return o.energy_kwh; };
  return {{"cheapest", Least(offers, cost)},
          {"fastest", Least(offers, time)},
          {"least energy", Least(offers, energy)}};
}

std::string BestLines(const std::vector<Offer>& offers) {
  std::string text;
  for (const BestOffer& best : FindBest(offers)) {
    if (best.offer != nullptr)
      text += fmt::format("  {:<13} {}\n", best.by, OfferText(*best.offer));
  }
  return text;
}

// Of the best offers, each once.
std::string NotesText(const std::vector<Offer>& offers) {
  std::string text;
  std::vector<const Offer*> seen;
  for (const BestOffer& best : FindBest(offers)) {
    if (best.offer == nullptr || std::find(seen.begin(), seen.end(), best.offer) != seen.end())
      continue;
    seen.push_back(best.offer);
    for (const std::string& note : best.offer->notes)
      text += fmt::format("  {:<18} {}\n", OfferName(*best.offer), note);
  }
  return text.empty() ? "" : "\n" + text;
}

std::string UpgradesText(const ChooseTable& table) {
  if (table.upgrades.empty()) return "";
  std::string text = fmt::format("\n  Then, after {}:\n", OfferName(table.offers.front()));
  for (const std::string& line : UpgradeLines(table)) text += "    " + line + "\n";
  return text;
}

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json OwnershipJson(const std::optional<Ownership>& cost) {
  if (!cost) return nullptr;
  return {{"hours", cost->hours},
          {"devices_usd", cost->devices_usd},
          {"host_usd", cost->has_host ? Json(cost->host_usd) : Json(nullptr)},
          {"electricity_usd", cost->electricity_usd},
          {"usd", cost->usd},
          {"usd_hour", cost->usd_hour},
          {"usd_training", cost->usd_training}};
}

Json BalanceJson(const std::optional<Balance>& balance) {
  if (!balance) return nullptr;
  return {{"bytes_per_s", balance->bytes_per_s},
          {"memory_bytes_per_s", balance->memory_bytes_per_s},
          {"headroom", balance->headroom()},
          {"intensity", balance->intensity},
          {"ridge_point", balance->ridge_point},
          {"bound", balance->is_memory_bound() ? "bandwidth" : "compute"}};
}

Json OrNull(const std::optional<int64_t>& number) { return number ? Json(*number) : Json(nullptr); }

Json LayoutOfOffer(const std::optional<LayoutChoice>& layout) {
  if (!layout) return nullptr;
  return {{"mesh", LayoutMeshText(*layout)},
          {"shard", LayoutShardText(*layout)},
          {"recompute", layout->recompute},
          {"batch", layout->data * layout->samples},
          {"accumulate", layout->micro_batches}};
}

Json OfferJson(const Offer& offer) {
  return {{"device", offer.device},
          {"count", offer.count},
          {"nodes", offer.nodes},
          {"precision", offer.precision},
          {"layout", LayoutOfOffer(offer.layout)},
          {"peak_bytes", offer.peak_bytes},
          {"peak_low_bytes", offer.peak_low_bytes},
          {"limit_bytes", offer.limit_bytes},
          {"step_s", offer.step_s},
          {"exposed_s", offer.exposed_s},
          {"sum_s", offer.sum_s},
          {"sum_source", offer.sum_source},
          {"lost_share", offer.lost_share},
          {"time_s", offer.time_s},
          {"time_low_s", offer.low_s},
          {"time_high_s", offer.high_s},
          {"samples_s", offer.samples_s},
          {"samples_low_s", offer.samples_low_s},
          {"samples_high_s", offer.samples_high_s},
          {"linear_share", OrNull(offer.linear_share)},
          {"usd", OrNull(offer.usd)},
          {"price", offer.price},
          {"rent_usd_hour", OrNull(offer.rent_usd_hour)},
          {"buy_usd", OrNull(offer.buy_usd)},
          {"pays_off_h", OrNull(offer.pays_off_h)},
          {"ownership", OwnershipJson(offer.ownership)},
          {"energy_kwh", OrNull(offer.energy_kwh)},
          {"power_w", OrNull(offer.power_w)},
          {"supply_w", OrNull(offer.supply_w)},
          {"balance", BalanceJson(offer.balance)},
          {"sustained_share", offer.sustained_share},
          {"slots", OrNull(offer.chassis.slots)},
          {"lanes", OrNull(offer.chassis.lanes)},
          {"refusals", offer.refusals},
          {"notes", offer.notes}};
}

Json UpgradeJson(const Upgrade& upgrade) {
  Json json = OfferJson(upgrade.offer);
  json["time_ratio"] = upgrade.time_ratio;
  json["cost_ratio"] = OrNull(upgrade.cost_ratio);
  json["same_chassis"] = upgrade.missing.empty();
  json["missing"] = upgrade.missing;
  return json;
}

Json TermsJson(const OwnershipTerms& terms) {
  return {
      {"years", terms.years},
      {"use", terms.use},
      {"pue", terms.pue},
      {"usd_kwh", terms.usd_kwh},
      {"host_usd", OrNull(terms.host_usd)},
      {"formula", "devices_usd + host_usd + years * 8760 * use * power_w / 1000 * pue * usd_kwh"}};
}

}  // namespace

std::string ChooseReport(const ChooseTable& table, const Terminal& terminal) {
  std::string text = Styled("Choose", Style::kBold, terminal) + "  " + table.title +
                     " (nothing was run: all numbers are modelled)\n\n";
  text += BestLines(table.offers) + "\n";
  const bool with_layout = std::any_of(
      table.offers.begin(), table.offers.end(),
      [](const Offer& offer) { return offer.is_allowed() && offer.layout.has_value(); });
  std::vector<Column> columns = {{"devices"},
                                 {"time", Align::kRight},
                                 {"range"},
                                 {"USD", Align::kRight},
                                 {"kWh", Align::kRight},
                                 {"supply", Align::kRight},
                                 {"memory a device"}};
  if (with_layout) columns.insert(columns.begin() + 1, {"layout"});
  Table rows(std::move(columns));
  size_t shown = 0, allowed = 0;
  for (const Offer& offer : table.offers) {
    if (!offer.is_allowed()) continue;
    ++allowed;
    if (shown == table.rows) continue;
    rows.AddRow(Row(offer, with_layout));
    ++shown;
  }
  text += rows.ToText(terminal);
  if (allowed > shown) text += fmt::format("  {} more (--all)\n", allowed - shown);
  text += RefusedLine(table.offers);
  if (!table.skipped.empty())
    text += fmt::format("  not planned, too little is known: {}\n", fmt::join(table.skipped, ", "));
  if (!table.not_searched.empty())
    text += fmt::format("  layouts not searched, others promised more (--among names them): {}\n",
                        fmt::join(table.not_searched, ", "));
  if (!table.too_small.empty())
    text += fmt::format("  too small for parameters and optimizer state alone ({}): {}\n",
                        FormatBytes(table.variable_bytes), fmt::join(table.too_small, ", "));
  if (allowed > 0) text += "  more of a device: --why DEVICE\n";
  return text + NotesText(table.offers) + UpgradesText(table);
}

std::vector<std::string> BestOffers(const std::vector<Offer>& offers) {
  std::vector<std::string> lines;
  for (const BestOffer& best : FindBest(offers)) {
    if (best.offer != nullptr)
      lines.push_back(fmt::format("{}: {}", best.by, OfferText(*best.offer)));
  }
  return lines;
}

std::string NothingAllowedText(const std::vector<Offer>& offers) {
  const Counts counts = CountRefusals(offers);
  std::vector<std::string> parts;
  const auto all = static_cast<int64_t>(offers.size());
  for (const auto& [what, count] : counts)
    parts.push_back(fmt::format("{} keep {}", all - count, what));
  const auto nearest =
      std::min_element(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
        return std::pair(a.refusals.size(), a.time_s) < std::pair(b.refusals.size(), b.time_s);
      });
  return fmt::format("of {} offers {}; none keeps all. Nearest is {}, refused by {}", all,
                     fmt::join(parts, ", "), OfferText(*nearest),
                     fmt::join(nearest->refusals, " and "));
}

std::string TooSmallText(const ChooseTable& table) {
  if (table.too_small.empty()) return "";
  const size_t count = table.too_small.size();
  return fmt::format(
      "; {} {} too small for parameters and optimizer state alone ({}). hint: --lora rank=16 "
      "--frozen-weights nf4, --optimizer-state 8bit, or --offload all",
      count, count == 1 ? "device is" : "devices are", FormatBytes(table.variable_bytes));
}

std::string ChooseJson(const ChooseTable& table) {
  Json json;
  json["title"] = table.title;
  json["offers"] = Json::array();
  for (const Offer& offer : table.offers) json["offers"].push_back(OfferJson(offer));
  json["upgrades"] = Json::array();
  for (const Upgrade& upgrade : table.upgrades) json["upgrades"].push_back(UpgradeJson(upgrade));
  json["ownership_terms"] = TermsJson(table.terms);
  json["skipped"] = table.skipped;
  json["too_small"] = table.too_small;
  json["not_searched"] = table.not_searched;
  json["variable_bytes"] = table.variable_bytes;
  return json.dump(1);
}

}  // namespace ridge
