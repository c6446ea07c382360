#include "ridge/plan/choose/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "ridge/plan/hardware/prices.h"

namespace ridge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- power

// Of its board's power with a context and nothing to do: 122 of 700 W (H100 SXM), 80 of 300 W (A100
// PCIe), 102 of 350 W (L40S), measured (arXiv:2605.23918); the mean in the middle.
constexpr Spread kIdleShare = {0.17, 0.24, 0.29};
constexpr double kBusyShare =
    0.85;  // as in offer.cc: of its power that a board takes when it works

double WattsAt(double board_w, double idle_share, double busy) {
  return board_w * (idle_share + (kBusyShare - idle_share) * std::min(1.0, busy));
}

// ---- queues

// The longest time without a pause: what may be sent at its start, and what comes meanwhile.
double LongestBusySeconds(const std::vector<Arrivals>& arrivals) {
  constexpr int kMostRounds = 10000;
  double seconds = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    double work = 0;
    for (const Arrivals& a : arrivals) {
      const double period = static_cast<double>(a.count) / a.rate_s;
      const double rounds = std::max(1.0, std::ceil(seconds / period - 1e-9));
      work += static_cast<double>(a.count) * rounds * a.service_s;
    }
    if (work <= seconds * (1 + 1e-12)) return seconds;
    seconds = work;
  }
  return kInfinity;
}

// sum(rate (e^(x service) - 1)) - x, whose positive root x bounds the wait: P(wait > t) <= e^(-x t)
// (Kingman, 1964).
double KingmanGap(const std::vector<Arrivals>& arrivals, double x) {
  double sum = -x;
  for (const Arrivals& a : arrivals) sum += a.rate_s * std::expm1(x * a.service_s);
  return sum;
}

double WaitOfNinetyNine(const std::vector<Arrivals>& arrivals) {
  double high = 1;
  while (KingmanGap(arrivals, high) < 0) high *= 2;
  double low = 0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (KingmanGap(arrivals, middle) < 0 ? low : high) = middle;
  }
  return low > 0 ? std::log(100.0) / low : 0;
}

// ---- models

enum class End { kLow, kMid, kHigh };

double TimesOf(const ModelCost& cost, End end) {
  if (end == End::kMid) return 1;
  return end == End::kLow ? cost.low : cost.high;
}

template <typename Number>
Spread SpreadOf(Number number) {
  return {number(End::kLow), number(End::kMid), number(End::kHigh)};
}

double Senders(const ServingLoad& load, const ServedModel& model) {
  const int64_t count =
      model.stream < 0 ? model.copies : load.streams[static_cast<size_t>(model.stream)].count;
  return static_cast<double>(count);
}

double Sequences(const ServedModel& model) { return static_cast<double>(model.batch); }

// Samples, or tokens that are written, of a request.
double AmountOf(const ServedModel& model) {
  return model.tokens ? static_cast<double>(model.tokens->output) : 1;
}

// Of a language model a request: the tokens of a step are those of all sequences, so it costs its
// part of them.
double ServiceSeconds(const ServedModel& model, const ModelCost& cost) {
  if (!model.tokens) return cost.run_s;
  return cost.prefill_s + AmountOf(model) * cost.token_s / Sequences(model);
}

double AnswerSeconds(const ServedModel& model, const ModelCost& cost) {
  return model.tokens ? cost.prefill_s + AmountOf(model) * cost.token_s : cost.run_s;
}

// Requests that are answered by one service.
double RequestsOf(const ServedModel& model) { return model.tokens ? 1 : Sequences(model); }

ModelOffer OfferOf(const ServedModel& model, const ModelCost& cost) {
  ModelOffer offer;
  offer.model = model;
  offer.cost = cost;
  offer.service_s = ServiceSeconds(model, cost);
  offer.answer_s = AnswerSeconds(model, cost);
  return offer;
}

Arrivals ArrivalsOf(const ServingLoad& load, const ModelOffer& offer, End end) {
  const ServedModel& model = offer.model;
  const double senders = Senders(load, model), requests = RequestsOf(model);
  return {.service_s = offer.service_s * TimesOf(offer.cost, end),
          .rate_s = *model.rate_s * senders / requests,
          .count = static_cast<int64_t>(std::ceil(senders / requests)),
          .periodic = model.stream >= 0};
}

std::vector<Arrivals> AllArrivals(const ServingLoad& load, const std::vector<ModelOffer>& models,
                                  End end) {
  std::vector<Arrivals> all;
  for (const ModelOffer& offer : models) all.push_back(ArrivalsOf(load, offer, end));
  return all;
}

// Until the last sample of a batch is there.
double FillSeconds(const ServingLoad& load, const ServedModel& model) {
  if (model.tokens || model.batch < 2) return 0;
  const double senders = Senders(load, model);
  if (model.stream >= 0) return std::ceil(Sequences(model) / senders) / *model.rate_s;
  return (Sequences(model) - 1) / (*model.rate_s * senders);
}

// Without rates: a copy answers all its requests of a turn, then the next copy does.
double TurnSeconds(const ModelOffer& offer, End end) {
  const double services = offer.model.tokens ? Sequences(offer.model) : 1;
  return services * offer.service_s * TimesOf(offer.cost, end);
}

double RoundSeconds(const std::vector<ModelOffer>& models, End end) {
  double seconds = 0;
  for (const ModelOffer& offer : models)
    seconds += static_cast<double>(offer.model.copies) * TurnSeconds(offer, end);
  return seconds;
}

double LatencyOf(const ServingLoad& load, const std::vector<ModelOffer>& models, End end) {
  if (!load.has_rates()) return RoundSeconds(models, end);
  const std::vector<Arrivals> all = AllArrivals(load, models, end);
  double slowest = 0;
  for (const ModelOffer& offer : models) {
    const double times = TimesOf(offer.cost, end);
    const double wait = WaitSeconds(all, offer.service_s * times);
    slowest = std::max(slowest, FillSeconds(load, offer.model) + wait + offer.answer_s * times);
  }
  return slowest;
}

// busy and per_s of each model.
void TakeShares(const ServingLoad& load, std::vector<ModelOffer>& models) {
  const double round_s = RoundSeconds(models, End::kMid);
  for (ModelOffer& offer : models) {
    const ServedModel& model = offer.model;
    const auto copies = static_cast<double>(model.copies);
    if (model.rate_s) {
      offer.busy = BusyShare({ArrivalsOf(load, offer, End::kMid)});
      offer.per_s = *model.rate_s * Senders(load, model) / copies * AmountOf(model);
    } else {
      offer.busy = copies * TurnSeconds(offer, End::kMid) / round_s;
      offer.per_s = Sequences(model) * AmountOf(model) / round_s;
    }
  }
}

// ---- decoding

struct DecodeLoad {
  bool known = true;
  double seconds = 0;  // of a picture, with those before it
  double engines = 0;  // share of all engines
  double cores = 0;    // of the host
  int64_t count = 0;   // engines of the device
};

// Pictures of all senders may come at one moment; a core of the host has one sender's.
DecodeLoad DecodeLoadOf(const Hardware& hardware, const ServingLoad& load) {
  DecodeLoad all;
  double engine_s = 0;
  for (const ServingStream& stream : load.streams) {
    const auto decoding = FindDecoding(hardware.id, stream.pictures);
    if (!decoding) all.known = false;
    if (!decoding) continue;
    const auto count = static_cast<double>(stream.count);
    const double work = count * stream.fps * decoding->picture_s;
    if (decoding->on_host()) {
      all.cores += work;
      all.seconds = std::max(all.seconds, decoding->picture_s);
      continue;
    }
    all.count = decoding->engines;
    all.engines += work / static_cast<double>(decoding->engines);
    engine_s += std::ceil(count / static_cast<double>(decoding->engines)) * decoding->picture_s;
  }
  all.seconds = std::max(all.seconds, engine_s);
  return all;
}

std::string DecoderText(const DecodeLoad& decode) {
  if (!decode.known) return "?";
  std::string text;
  if (decode.count > 0)
    text = fmt::format("{:.0f} % of {} engine{}", 100 * decode.engines, decode.count,
                       decode.count == 1 ? "" : "s");
  if (decode.cores > 0)
    text += fmt::format("{}{:.2g} cores of the host", text.empty() ? "" : ", ", decode.cores);
  return text;
}

void TakeDecoding(const DecodeLoad& decode, const ServingLoad& load, ServingOffer& offer) {
  offer.decoder = DecoderText(decode);
  if (decode.known && !load.streams.empty()) offer.decode_s = decode.seconds;
  if (decode.engines > 1 || (!decode.known && load.limits.latency_s))
    offer.refusals.emplace_back("decoding");
  if (!decode.known)
    offer.notes.emplace_back("how fast it decodes is not known, and not in the latency");
}

// ---- offers

void TakePower(const Hardware& hardware, ServingOffer& offer) {
  if (!hardware.power_w) return;
  offer.power_w = Spread{WattsAt(*hardware.power_w, kIdleShare.low, offer.busy.low),
                         WattsAt(*hardware.power_w, kIdleShare.mid, offer.busy.mid),
                         WattsAt(*hardware.power_w, kIdleShare.high, offer.busy.high)};
}

void TakePrice(const ServingPrice& price, ServingOffer& offer) {
  constexpr double kHour = 3600;
  if (price.own) {
    if (offer.power_w) offer.usd_hour = offer.power_w->mid / 1000 * price.usd_kwh;
    offer.price = "electricity";
  } else if (const auto rent = CheapestRent(offer.device, 1)) {
    offer.usd_hour = rent->usd_hour;
    offer.price = rent->price->provider + ", " + rent->price->date;
  }
  double per_s = 0;
  for (const ModelOffer& m : offer.models) per_s += m.per_s * static_cast<double>(m.model.copies);
  if (offer.usd_hour) offer.usd_million = *offer.usd_hour / kHour / per_s * 1e6;
}

// The upper end of what is estimated decides.
void TakeRefusals(const ServingLoad& load, ServingOffer& offer) {
  const ServingLimits& limits = load.limits;
  const auto refuse = [&](bool breaks, const char* what) {
    if (breaks) offer.refusals.emplace_back(what);
  };
  refuse(offer.peak_bytes > offer.limit_bytes, "memory");
  refuse(load.has_rates() && offer.busy.high > kMostBusy, "rate");
  refuse(limits.latency_s && offer.latency_s.high > *limits.latency_s, "latency");
  refuse(limits.power_w && (!offer.power_w || offer.power_w->high > *limits.power_w), "power");
}

void TakeNotes(const Hardware& hardware, const ServingLoad& load, ServingOffer& offer) {
  const std::optional<double> limit_w = load.limits.power_w;
  if (limit_w && hardware.power_w && *hardware.power_w > *limit_w)
    offer.notes.push_back(fmt::format("its board may take {:g} W for moments", *hardware.power_w));
  if (hardware.dies.value_or(1) > 1)
    offer.notes.emplace_back("one die of its board; the power is the board's");
  if (hardware.cooling == "passive") offer.notes.emplace_back("passive: needs a server's fans");
}

double KeyOf(const ServingOffer& offer, ServingOrder order) {
  const bool has_rates = offer.models[0].model.rate_s.has_value();
  switch (order) {
    case ServingOrder::kCost:
      return (has_rates ? offer.usd_hour : offer.usd_million).value_or(kInfinity);
    case ServingOrder::kPower:
      return offer.power_w ? offer.power_w->mid : kInfinity;
    case ServingOrder::kLatency:
      return offer.latency_s.mid;
  }
  return kInfinity;
}

}  // namespace

double BusyShare(const std::vector<Arrivals>& arrivals) {
  double share = 0;
  for (const Arrivals& a : arrivals) share += a.rate_s * a.service_s;
  return share;
}

double WaitSeconds(const std::vector<Arrivals>& arrivals, double service_s) {
  if (BusyShare(arrivals) >= 1) return kInfinity;
  const bool periodic =
      std::all_of(arrivals.begin(), arrivals.end(), [](const Arrivals& a) { return a.periodic; });
  return periodic ? LongestBusySeconds(arrivals) - service_s : WaitOfNinetyNine(arrivals);
}

int64_t ServingBytes(const std::vector<ServedModel>& models, const std::vector<ModelCost>& costs) {
  double bytes = 0;  // exact below 2^53, and no number of copies overflows it
  int64_t scratch = 0, runtime = 0;
  for (size_t i = 0; i < models.size(); ++i) {
    const ModelCost& cost = costs[i];
    const auto held = static_cast<double>(cost.weight_bytes + cost.cache_bytes);
    if (models[i].copies > 1) {
      bytes += static_cast<double>(models[i].copies) *
               (held + static_cast<double>(cost.scratch_bytes + cost.runtime_bytes));
      continue;
    }
    bytes += held;
    scratch = std::max(scratch, cost.scratch_bytes);
    runtime = std::max(runtime, cost.runtime_bytes);
  }
  constexpr double kMost = 4e18;
  return static_cast<int64_t>(std::min(kMost, bytes + static_cast<double>(scratch + runtime)));
}

ServingOffer MakeServingOffer(const Hardware& hardware, const ServingLoad& load,
                              const std::vector<ModelCost>& costs, int64_t memory_bytes,
                              const ServingPrice& price) {
  ServingOffer offer;
  offer.device = hardware.id;
  for (size_t i = 0; i < costs.size(); ++i)
    offer.models.push_back(OfferOf(load.models[i], costs[i]));
  TakeShares(load, offer.models);
  offer.peak_bytes = ServingBytes(load.models, costs);
  offer.limit_bytes = std::min(memory_bytes, load.limits.memory_bytes.value_or(memory_bytes));
  const DecodeLoad decode = DecodeLoadOf(hardware, load);
  offer.busy = SpreadOf([&](End end) {
    return load.has_rates() ? BusyShare(AllArrivals(load, offer.models, end)) : 1.0;
  });
  offer.latency_s =
      SpreadOf([&](End end) { return decode.seconds + LatencyOf(load, offer.models, end); });
  TakePower(hardware, offer);
  TakePrice(price, offer);
  TakeRefusals(load, offer);
  TakeDecoding(decode, load, offer);
  TakeNotes(hardware, load, offer);
  return offer;
}

void RankServing(std::vector<ServingOffer>& offers, ServingOrder order) {
  const auto key = [&](const ServingOffer& offer) {
    return std::make_tuple(!offer.is_allowed(), KeyOf(offer, order), offer.latency_s.mid,
                           offer.device);
  };
  std::stable_sort(offers.begin(), offers.end(),
                   [&](const ServingOffer& a, const ServingOffer& b) { return key(a) < key(b); });
}

}  // namespace ridge
