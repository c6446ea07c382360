#include "ridge/report/serving_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

// Of a queue that grows without end.
std::string Seconds(double seconds) {
  return std::isfinite(seconds) ? FormatSeconds(seconds) : "no end";
}

std::string Range(const Spread& seconds) {
  return Seconds(seconds.low) + " to " + Seconds(seconds.high);
}

std::string LatencyText(const Spread& seconds) {
  if (!std::isfinite(seconds.mid)) return "the queue grows without end";
  return fmt::format("{} ({})", FormatSeconds(seconds.mid), Range(seconds));
}

std::string Or(const std::optional<double>& number, const char* form) {
  return number ? fmt::format(fmt::runtime(form), *number) : "?";
}

std::optional<double> Mid(const std::optional<Spread>& spread) {
  return spread ? std::optional(spread->mid) : std::nullopt;
}

bool HasRates(const ServingOffer& offer) { return offer.models[0].model.rate_s.has_value(); }

std::string Precisions(const ServingOffer& offer) {
  std::vector<std::string> names;
  for (const ModelOffer& m : offer.models) {
    if (std::find(names.begin(), names.end(), m.cost.precision) == names.end())
      names.push_back(m.cost.precision);
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

std::string Cost(const ServingOffer& offer) {
  return HasRates(offer) ? Or(offer.usd_hour, "{:.2f} USD/h")
                         : Or(offer.usd_million, "{:.3g} USD/M");
}

std::string OfferText(const ServingOffer& offer) {
  std::string text =
      fmt::format("{}, {}: {}", offer.device, Precisions(offer), LatencyText(offer.latency_s));
  if (HasRates(offer)) text += fmt::format(", {:.0f} % busy", 100 * offer.busy.mid);
  if (offer.power_w) text += fmt::format(", {:.0f} W", offer.power_w->mid);
  if (offer.usd_hour) text += fmt::format(", {} ({})", Cost(offer), offer.price);
  return text;
}

// ---- the best

using Key = std::function<std::optional<double>(const ServingOffer&)>;

const ServingOffer* Least(const std::vector<ServingOffer>& offers, const Key& key) {
  const ServingOffer* least = nullptr;
  for (const ServingOffer& offer : offers) {
    const std::optional<double> number = key(offer);
    if (!offer.is_allowed() || !number) continue;
    if (least == nullptr || *number < *key(*least)) least = &offer;
  }
  return least;
}

std::string BestLines(const std::vector<ServingOffer>& offers) {
  const std::vector<std::pair<const char*, Key>> keys = {
      {"cheapest", [](const ServingOffer& o) { return HasRates(o) ? o.usd_hour : o.usd_million; }},
      {"fastest", [](const ServingOffer& o) { return std::optional(o.latency_s.mid); }},
      {"least power", [](const ServingOffer& o) { return Mid(o.power_w); }}};
  std::string text;
  for (const auto& [by, key] : keys) {
    if (const ServingOffer* best = Least(offers, key); best != nullptr)
      text += fmt::format("  {:<12} {}\n", by, OfferText(*best));
  }
  return text;
}

// ---- the table of offers

struct OfferColumn {
  Column column;
  std::function<std::string(const ServingOffer&)> text;
};

std::string Memory(const ServingOffer& offer) {
  return fmt::format("{} of {}", FormatBytes(offer.peak_bytes), FormatBytes(offer.limit_bytes));
}

// Of an offer with one language model.  Its range is in the lines of the best and in the JSON.
void AddTokenColumns(bool copies, std::vector<OfferColumn>& columns) {
  const auto add = [&](const char* title, const std::function<std::string(const ModelOffer&)>& of) {
    columns.push_back(
        {{title, Align::kRight}, [of](const ServingOffer& o) { return of(o.models[0]); }});
  };
  add("tokens", [](const ModelOffer& m) {
    return fmt::format("{} + {}", FormatInteger(m.model.tokens->prompt),
                       FormatInteger(m.model.tokens->output));
  });
  add("sequences", [](const ModelOffer& m) { return FormatInteger(m.model.batch); });
  add("cache", [](const ModelOffer& m) { return FormatBytes(m.cost.cache_bytes); });
  add("prefill", [](const ModelOffer& m) { return FormatSeconds(m.cost.prefill_s); });
  add("token", [](const ModelOffer& m) { return FormatSeconds(m.cost.token_s); });
  add(copies ? "tokens/s each" : "tokens/s",
      [](const ModelOffer& m) { return FormatCount(m.per_s); });
}

// In 100 columns as a rule; types, price lists and all ranges are in the JSON.
std::vector<OfferColumn> ColumnsFor(const ServingOffer& example) {
  std::vector<OfferColumn> columns = {{{"device"}, [](const ServingOffer& o) { return o.device; }}};
  const bool one = example.models.size() == 1;
  const bool writes = one && example.models[0].model.tokens.has_value();
  if (writes) {
    AddTokenColumns(example.models[0].model.copies > 1, columns);
  } else if (one && !HasRates(example)) {
    columns.push_back({{"samples/s", Align::kRight},
                       [](const ServingOffer& o) { return FormatCount(o.models[0].per_s); }});
  }
  columns.push_back(
      {{"latency", Align::kRight}, [](const ServingOffer& o) { return Seconds(o.latency_s.mid); }});
  if (!writes)
    columns.push_back({{"range"}, [](const ServingOffer& o) { return Range(o.latency_s); }});
  if (!example.decoder.empty()) {
    columns.push_back({{"decoding", Align::kRight}, [](const ServingOffer& o) {
                         return o.decode_s ? FormatSeconds(*o.decode_s) : "?";
                       }});
    columns.push_back({{"by"}, [](const ServingOffer& o) { return o.decoder; }});
  }
  if (HasRates(example))
    columns.push_back({{"busy", Align::kRight}, [](const ServingOffer& o) {
                         return fmt::format("{:.0f} %", 100 * o.busy.mid);
                       }});
  columns.push_back({{"power", Align::kRight},
                     [](const ServingOffer& o) { return Or(Mid(o.power_w), "{:.0f} W"); }});
  columns.push_back({{"cost", Align::kRight}, Cost});
  columns.push_back({{"memory"}, Memory});
  return columns;
}

// "  l4, t4: passive: needs a server's fans", of the offers that are shown, each device once.
std::string NoteLines(const std::vector<const ServingOffer*>& shown) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_note;
  for (const ServingOffer* offer : shown) {
    for (const std::string& note : offer->notes) {
      auto known = std::find_if(by_note.begin(), by_note.end(),
                                [&](const auto& other) { return other.first == note; });
      if (known == by_note.end()) known = by_note.insert(known, {note, {}});
      std::vector<std::string>& devices = known->second;
      if (devices.empty() || devices.back() != offer->device) devices.push_back(offer->device);
    }
  }
  std::string text;
  for (const auto& [note, devices] : by_note)
    text += fmt::format("  {}: {}\n", fmt::join(devices, ", "), note);
  return text;
}

std::string OfferRows(const ServingTable& table, const Terminal& terminal) {
  const std::vector<OfferColumn> columns = ColumnsFor(table.offers[0]);
  std::vector<Column> titles;
  for (const OfferColumn& column : columns) titles.push_back(column.column);
  Table rows(titles);
  size_t allowed = 0;
  std::vector<const ServingOffer*> shown;
  for (const ServingOffer& offer : table.offers) {
    if (!offer.is_allowed() || ++allowed > table.rows) continue;
    shown.push_back(&offer);
    std::vector<std::string> cells;
    for (const OfferColumn& column : columns) cells.push_back(column.text(offer));
    rows.AddRow(std::move(cells));
  }
  std::string text = rows.ToText(terminal);
  if (allowed > table.rows) text += fmt::format("  {} more (--all)\n", allowed - table.rows);
  return text + NoteLines(shown);
}

// ---- the models of one offer

std::string UnitOf(const ModelOffer& m) { return m.model.tokens ? "tokens/s" : "samples/s"; }

std::string RunText(const ModelOffer& m) {
  if (!m.model.tokens) return FormatSeconds(m.cost.run_s);
  return FormatSeconds(m.cost.prefill_s) + " + " + FormatSeconds(m.cost.token_s) + " a token";
}

// Where there are several models: what each takes on the best device.
std::string ModelRows(const ServingOffer& offer, const Terminal& terminal) {
  if (offer.models.size() < 2 && offer.models[0].model.copies < 2) return "";
  Table rows({{"on " + offer.device},
              {"type"},
              {"copies", Align::kRight},
              {"batch", Align::kRight},
              {"a run", Align::kRight},
              {"busy", Align::kRight},
              {"each", Align::kRight},
              {"weights", Align::kRight},
              {"cache", Align::kRight},
              {"scratch", Align::kRight},
              {"context", Align::kRight}});
  for (const ModelOffer& m : offer.models) {
    rows.AddRow({m.model.model, m.cost.precision, FormatInteger(m.model.copies),
                 FormatInteger(m.model.batch), RunText(m), fmt::format("{:.1f} %", 100 * m.busy),
                 FormatCount(m.per_s) + " " + UnitOf(m), FormatBytes(m.cost.weight_bytes),
                 FormatBytes(m.cost.cache_bytes), FormatBytes(m.cost.scratch_bytes),
                 FormatBytes(m.cost.runtime_bytes)});
  }
  return "\n" + rows.ToText(terminal);
}

// ---- refusals

using Counts = std::map<std::string, int64_t>;

Counts CountRefusals(const std::vector<ServingOffer>& offers) {
  Counts counts;
  for (const ServingOffer& offer : offers) {
    for (const std::string& refusal : offer.refusals) ++counts[refusal];
  }
  return counts;
}

std::string RefusedLine(const std::vector<ServingOffer>& offers) {
  std::vector<std::string> parts;
  for (const auto& [what, count] : CountRefusals(offers))
    parts.push_back(fmt::format("{} {}", count, what));
  return parts.empty() ? "" : fmt::format("  refused by: {}\n", fmt::join(parts, ", "));
}

// ---- JSON

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }
Json Finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json ModelJson(const ModelOffer& m) {
  Json json = {{"model", m.model.model},
               {"precision", m.cost.precision},
               {"batch", m.model.batch},
               {"copies", m.model.copies},
               {"rate_s", OrNull(m.model.rate_s)}};
  const std::optional<TokenCounts>& tokens = m.model.tokens;
  json["prompt"] = tokens ? Json(tokens->prompt) : Json(nullptr);
  json["output"] = tokens ? Json(tokens->output) : Json(nullptr);
  json["run_s"] = tokens ? Json(nullptr) : Json(m.cost.run_s);
  json["prefill_s"] = tokens ? Json(m.cost.prefill_s) : Json(nullptr);
  json["token_s"] = tokens ? Json(m.cost.token_s) : Json(nullptr);
  json["service_s"] = m.service_s;
  json["answer_s"] = m.answer_s;
  json["busy"] = m.busy;
  json["per_s"] = m.per_s;
  json["weight_bytes"] = m.cost.weight_bytes;
  json["cache_bytes"] = m.cost.cache_bytes;
  json["scratch_bytes"] = m.cost.scratch_bytes;
  json["runtime_bytes"] = m.cost.runtime_bytes;
  return json;
}

Json OfferJson(const ServingOffer& offer) {
  Json json;
  json["device"] = offer.device;
  json["models"] = Json::array();
  for (const ModelOffer& model : offer.models) json["models"].push_back(ModelJson(model));
  json["peak_bytes"] = offer.peak_bytes;
  json["limit_bytes"] = offer.limit_bytes;
  json["decode_s"] = OrNull(offer.decode_s);
  json["decoder"] = offer.decoder;
  json["busy"] = offer.busy.mid;
  json["busy_high"] = offer.busy.high;
  json["latency_s"] = Finite(offer.latency_s.mid);
  json["latency_low_s"] = Finite(offer.latency_s.low);
  json["latency_high_s"] = Finite(offer.latency_s.high);
  json["power_w"] = OrNull(Mid(offer.power_w));
  json["power_high_w"] = offer.power_w ? Json(offer.power_w->high) : Json(nullptr);
  json["usd_hour"] = OrNull(offer.usd_hour);
  json["usd_million"] = OrNull(offer.usd_million);
  json["price"] = offer.price;
  json["refusals"] = offer.refusals;
  json["notes"] = offer.notes;
  return json;
}

// ---- the title

std::string ModelTitle(const ServedModel& model) {
  std::string text = model.model;
  if (model.copies > 1) text = fmt::format("{} x {}", model.copies, text);
  if (model.batch > 1 && !model.tokens) text += fmt::format(", batch {}", model.batch);
  return text;
}

std::string StreamTitle(const ServingStream& stream) {
  const std::string what = fmt::format("{} {}x{} at {:g}/s", stream.pictures.codec,
                                       stream.pictures.width, stream.pictures.height, stream.fps);
  return stream.count > 1 ? fmt::format("{} x {}", stream.count, what) : what;
}

}  // namespace

std::string ServingTitle(const ServingLoad& load) {
  std::vector<std::string> models, parts;
  for (const ServedModel& model : load.models) models.push_back(ModelTitle(model));
  if (!load.name.empty())
    parts.push_back(load.name + ": " + fmt::format("{}", fmt::join(models, " and ")));
  else
    parts.push_back(fmt::format("{}", fmt::join(models, " and ")));
  for (const ServingStream& stream : load.streams) parts.push_back(StreamTitle(stream));
  const ServedModel& first = load.models[0];
  if (load.streams.empty() && load.models.size() == 1 && first.rate_s)
    parts.push_back(fmt::format("{:g} requests/s", *first.rate_s));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ServingReport(const ServingTable& table, const Terminal& terminal) {
  std::string text = Styled("Serve", Style::kBold, terminal) + "  " + table.title +
                     " (nothing was run: all numbers are modelled)\n\n";
  text += BestLines(table.offers) + "\n" + OfferRows(table, terminal);
  text += RefusedLine(table.offers);
  if (!table.skipped.empty())
    text += fmt::format("  not planned, too little is known: {}\n", fmt::join(table.skipped, ", "));
  return text + ModelRows(table.offers[0], terminal);
}

std::string NothingServesText(const std::vector<ServingOffer>& offers) {
  std::vector<std::string> parts;
  const auto all = static_cast<int64_t>(offers.size());
  for (const auto& [what, count] : CountRefusals(offers))
    parts.push_back(fmt::format("{} keep {}", all - count, what));
  const auto key = [](const ServingOffer& offer) {
    return std::make_tuple(offer.refusals.size(), offer.latency_s.high);
  };
  const auto nearest = std::min_element(
      offers.begin(), offers.end(),
      [&](const ServingOffer& a, const ServingOffer& b) { return key(a) < key(b); });
  return fmt::format("of {} offers {}; none keeps all. Nearest is {}, refused by {}", all,
                     fmt::join(parts, ", "), OfferText(*nearest),
                     fmt::join(nearest->refusals, " and "));
}

std::string ServingJson(const ServingTable& table) {
  Json json;
  json["title"] = table.title;
  json["offers"] = Json::array();
  for (const ServingOffer& offer : table.offers) json["offers"].push_back(OfferJson(offer));
  json["skipped"] = table.skipped;
  return json.dump(1);
}

}  // namespace ridge
