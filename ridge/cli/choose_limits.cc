// The limits of `ridge choose`: what may be spent, what is there, what could be bought.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ridge/cli/choose_verb.h"
#include "ridge/cli/flags.h"

namespace ridge::cli {
namespace {

// "1500W" or "1500": a number above 0 with its unit or without.
Result<double> ParseAmount(const char* flag, const std::string& text, std::string_view unit) {
  std::string_view number = text;
  if (number.ends_with(unit)) number.remove_suffix(unit.size());
  double value = 0;
  const char* const end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, value);
  if (error == std::errc() && rest == end && value > 0) return value;
  return InvalidArgument(fmt::format(
      "{} is '{}'; it must be a number above 0 with {}, such as 500{}", flag, text, unit, unit));
}

// "rtx3090=900USD,l4=2500": each with its price.
Result<std::vector<Purchase>> PurchasesOf(const ChooseVerb& verb) {
  std::vector<Purchase> purchases;
  for (const std::string& text : ListOf(verb.buy)) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      return InvalidArgument(
          fmt::format("--buy has '{}'; it must be DEVICE=USD, such as rtx3090=900USD", text));
    }
    RIDGE_ASSIGN_OR_RETURN(const Hardware device, FindHardware(text.substr(0, equals)));
    RIDGE_ASSIGN_OR_RETURN(const double usd,
                           ParseAmount("the price of --buy", text.substr(equals + 1), "USD"));
    purchases.push_back({device.id, usd});
  }
  return purchases;
}

// A device is there or is to be bought.
Status CheckPurchases(const ChooseLimits& limits) {
  for (const Purchase& purchase : limits.buy) {
    if (std::find(limits.own.begin(), limits.own.end(), purchase.device) == limits.own.end())
      continue;
    return InvalidArgument(
        fmt::format("--own and --buy both name {}; leave it out of one", purchase.device));
  }
  return Status();
}

// --years asks for the cost of ownership; the other terms change what own and bought devices cost.
Status TakeOwnership(const ChooseVerb& verb, ChooseLimits& limits) {
  for (const auto& [flag, given] : {std::pair("--years", verb.years.has_value()),
                                    {"--use", verb.use.has_value()},
                                    {"--host-price", verb.host_price.has_value()}}) {
    if (given && limits.buy.empty())
      return InvalidArgument(fmt::format(
          "{} is about devices that are bought, and --buy names none. hint: --buy rtx3090=900USD",
          flag));
  }
  if (verb.use && !verb.years) {
    return InvalidArgument(
        "--use is the share of --years in which they train, and --years is missing. hint: --years "
        "3");
  }
  OwnershipTerms& terms = limits.terms;
  terms.years = verb.years.value_or(terms.years);
  terms.use = verb.use.value_or(terms.use);
  terms.pue = verb.pue.value_or(terms.pue);
  if (verb.host_price) {
    RIDGE_ASSIGN_OR_RETURN(terms.host_usd, ParseAmount("--host-price", *verb.host_price, "USD"));
  }
  limits.tells_ownership = verb.years.has_value();
  return Status();
}

void AddOwnership(CLI::App& app, ChooseVerb& verb) {
  constexpr const char* kGroup = "Ownership";
  AddNumber(app, "--years", verb.years, {0, /*minimum_allowed=*/false, 50}, "YEARS",
            "With --buy: what the devices cost over so many years, an hour and a training")
      ->group(kGroup);
  AddNumber(app, "--use", verb.use, {0, /*minimum_allowed=*/false, 1}, "SHARE",
            "Share of these years in which they train: 0.6 (1)")
      ->group(kGroup);
  AddText(app, "--host-price", verb.host_price, "USD",
          "Price of the machine around the bought devices (left out)")
      ->group(kGroup);
  AddNumber(app, "--pue", verb.pue, {1, /*minimum_allowed=*/true, 10}, "RATIO",
            "Power of the building over that of the machine, for electricity (1)")
      ->group(kGroup);
}

}  // namespace

Result<ChooseLimits> LimitsOf(const ChooseVerb& verb) {
  ChooseLimits limits;
  if (verb.deadline) {
    RIDGE_ASSIGN_OR_RETURN(const Interval deadline, ParseInterval("--deadline", *verb.deadline));
    if (deadline.seconds <= 0) {
      return InvalidArgument(
          fmt::format("--deadline is '{}'; it must be a time, such as 24h", *verb.deadline));
    }
    limits.deadline_s = deadline.seconds;
  }
  if (verb.budget) {
    RIDGE_ASSIGN_OR_RETURN(limits.budget_usd, ParseAmount("--budget", *verb.budget, "USD"));
  }
  if (verb.power) {
    RIDGE_ASSIGN_OR_RETURN(limits.power_w, ParseAmount("--power", *verb.power, "W"));
  }
  if (verb.electricity) {
    RIDGE_ASSIGN_OR_RETURN(limits.terms.usd_kwh,
                           ParseAmount("--electricity", *verb.electricity, "USD"));
  }
  for (const std::string& device : ListOf(verb.own)) {
    RIDGE_ASSIGN_OR_RETURN(const Hardware own, FindHardware(device));
    limits.own.push_back(own.id);
  }
  RIDGE_ASSIGN_OR_RETURN(limits.buy, PurchasesOf(verb));
  RIDGE_RETURN_IF_ERROR(CheckPurchases(limits));
  RIDGE_RETURN_IF_ERROR(TakeOwnership(verb, limits));
  return limits;
}

void AddLimits(CLI::App& app, ChooseVerb& verb) {
  constexpr const char* kGroup = "Limits";
  AddText(app, "--deadline", verb.deadline, "TIME",
          "The training must end in this time: 24h, 90min")
      ->group(kGroup);
  AddText(app, "--budget", verb.budget, "USD", "It may cost so much: 500USD")->group(kGroup);
  AddText(app, "--power", verb.power, "WATTS",
          "The machine's supply, which all boards, their host and headroom must keep: 1500W")
      ->group(kGroup);
  AddText(app, "--own", verb.own, "DEVICE[,DEVICE]",
          "Devices that are there: they cost their electricity alone")
      ->group(kGroup);
  AddText(app, "--buy", verb.buy, "DEVICE=USD[,...]",
          "Devices that could be bought, with the price of one: after how many hours buying is "
          "cheaper than rent")
      ->group(kGroup);
  AddText(app, "--among", verb.among, "DEVICE[,DEVICE]",
          "Devices to compare: those of `ridge devices`, or a file of your own (all)")
      ->group(kGroup);
  AddText(app, "--electricity", verb.electricity, "USD", "Price of a kWh (0.15)")->group(kGroup);
  AddOwnership(app, verb);
}

}  // namespace ridge::cli
