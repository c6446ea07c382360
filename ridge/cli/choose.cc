// `ridge choose`: which devices, and how many, for a training.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ridge/cli/choose_serving.h"
#include "ridge/cli/config_file.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/core/units.h"
#include "ridge/report/plan_page.h"

namespace ridge::cli {
namespace {

constexpr int64_t kMostSamples = int64_t{1} << 50;
constexpr int64_t kCounts[] = {1, 2, 4, 8};

struct ChooseVerb {
  TrainFlags train;
  OutputFlags output;
  std::optional<int64_t> data_size;
  std::optional<std::string> deadline, budget, power, electricity, own, buy, among, order, html;
  bool all = false, json = false, markdown = false;
  ServeFlags serve;
};

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

std::vector<std::string> ListOf(const std::optional<std::string>& text) {
  std::vector<std::string> names;
  if (!text) return names;
  for (const std::string_view name : SplitAt(*text, ',')) names.emplace_back(name);
  return names;
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
    RIDGE_ASSIGN_OR_RETURN(limits.usd_kwh, ParseAmount("--electricity", *verb.electricity, "USD"));
  }
  for (const std::string& device : ListOf(verb.own)) {
    RIDGE_ASSIGN_OR_RETURN(const Hardware own, FindHardware(device));
    limits.own.push_back(own.id);
  }
  RIDGE_ASSIGN_OR_RETURN(limits.buy, PurchasesOf(verb));
  RIDGE_RETURN_IF_ERROR(CheckPurchases(limits));
  return limits;
}

// Those of --among, else the catalog, and those of --own and --buy.
Result<std::vector<Hardware>> DevicesOf(const ChooseVerb& verb) {
  std::vector<Hardware> devices;
  if (!verb.among) devices = HardwareCatalog();
  std::vector<std::string> names = ListOf(verb.among);
  for (const std::string& own : ListOf(verb.own)) names.push_back(own);
  for (const std::string& buy : ListOf(verb.buy)) names.push_back(buy.substr(0, buy.rfind('=')));
  for (const std::string& name : names) {
    RIDGE_ASSIGN_OR_RETURN(Hardware device, FindHardware(name));
    const bool is_there = std::any_of(devices.begin(), devices.end(),
                                      [&](const Hardware& other) { return other.id == device.id; });
    if (!is_there) devices.push_back(std::move(device));
  }
  return devices;
}

OfferOrder OrderOf(const ChooseVerb& verb) {
  if (verb.order == "time") return OfferOrder::kTime;
  return verb.order == "energy" ? OfferOrder::kEnergy : OfferOrder::kCost;
}

// Without --precision the type that the device multiplies fastest.
std::string PrecisionFor(const ChooseVerb& verb, const Hardware& hardware) {
  if (verb.train.Has("precision")) return verb.train.options.precision;
  if (hardware.bf16_tflops) return "bf16";
  return hardware.fp16_tflops ? "f16" : "f32";
}

// Fails where nothing can be planned: an operator or a type that the device lacks.
Result<DeviceStep> PlanStep(const ChooseVerb& verb, const Hardware& hardware,
                            const Machine& machine, int64_t count) {
  DeviceStep step;
  step.hardware = &hardware;
  step.count = count;
  step.precision = PrecisionFor(verb, hardware);
  TrainOptions options = verb.train.options;
  options.device = hardware.id;
  options.precision = step.precision;
  options.batch /= count;
  RIDGE_ASSIGN_OR_RETURN(const PlannedRun run, PlanRun(options, machine));
  step.step_s = run.job.step_s;
  step.low_s = run.job.range->low_s;
  step.high_s = run.job.range->high_s;
  step.peak_bytes = run.job.memory.peak_bytes;
  step.limit_bytes = run.job.limit_bytes;
  step.gradient_bytes = run.job.parameter_count * BytesPerElement(DType::kF32);
  return step;
}

// Adds those of as many of the device as divide the batch.  Fails as PlanStep at the first number
// that fails, and where too little is known.
Status AddOffers(const ChooseVerb& verb, const Hardware& hardware, const ChooseLimits& limits,
                 std::vector<Offer>& offers) {
  const TrainOptions& options = verb.train.options;
  const TrainingLength length = {*verb.data_size, options.epochs.value_or(1),
                                 options.batch * options.accumulate};
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenPlannedMachine(hardware, PrecisionFor(verb, hardware), kOwnSoftware));
  for (const int64_t count : kCounts) {
    if (options.batch % count != 0) continue;
    RIDGE_ASSIGN_OR_RETURN(const DeviceStep step, PlanStep(verb, hardware, opened.machine, count));
    offers.push_back(MakeOffer(step, length, limits));
  }
  return Status();
}

struct Planned {
  std::vector<Offer> offers;
  std::vector<std::string> skipped;
};

Planned PlanOffers(const ChooseVerb& verb, const std::vector<Hardware>& devices,
                   const ChooseLimits& limits) {
  Planned planned;
  for (const Hardware& hardware : devices) {
    if (!AddOffers(verb, hardware, limits, planned.offers).ok())
      planned.skipped.push_back(hardware.id);
  }
  return planned;
}

std::string TitleOf(const ChooseVerb& verb) {
  const TrainOptions& options = verb.train.options;
  return fmt::format(
      "{}, batch {}, {} of {} samples", options.model, options.batch * options.accumulate,
      FormatCountOf(options.epochs.value_or(1), "epoch"), FormatInteger(*verb.data_size));
}

ServingOrder ServingOrderOf(const ChooseVerb& verb) {
  if (verb.order == "time") return ServingOrder::kLatency;
  return verb.order == "energy" ? ServingOrder::kPower : ServingOrder::kCost;
}

// Refuses what only a training has.
Result<int> RunServe(const ChooseVerb& verb, const Terminal& terminal) {
  const std::pair<const char*, bool> of_training[] = {
      {"--data-size", verb.data_size.has_value()}, {"--deadline", verb.deadline.has_value()},
      {"--budget", verb.budget.has_value()},       {"--buy", verb.buy.has_value()},
      {"--html", verb.html.has_value()},           {"--markdown", verb.markdown}};
  for (const auto& [flag, is_given] : of_training) {
    if (is_given) return InvalidArgument(fmt::format("{} is of trainings, not of --serve", flag));
  }
  RIDGE_ASSIGN_OR_RETURN(const ChooseLimits limits, LimitsOf(verb));
  RIDGE_ASSIGN_OR_RETURN(std::vector<Hardware> devices, DevicesOf(verb));
  return RunServing({verb.train, verb.serve, std::move(devices), limits.own, limits.usd_kwh,
                     verb.power, ServingOrderOf(verb), verb.all, verb.json},
                    terminal);
}

Result<int> RunChoose(const CLI::App& app, const ChooseVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.train.Has("model"), "MODEL",
                                        "`ridge models` lists the built-in ones"));
  if (verb.serve.serve) return RunServe(verb, terminal);
  RIDGE_RETURN_IF_ERROR(RefuseServeFlags(verb.serve));
  if (!verb.data_size) {
    return InvalidArgument(
        "--data-size is missing: the samples of an epoch. hint: --data-size 1281167 is ImageNet's");
  }
  RIDGE_RETURN_IF_ERROR(OneOnStandardOutput({{"--json", verb.json},
                                             {"--markdown", verb.markdown},
                                             {"--html", IsStandardOutput(verb.html)}}));
  RIDGE_RETURN_IF_ERROR(CheckModel(verb.train.options));
  RIDGE_ASSIGN_OR_RETURN(const ChooseLimits limits, LimitsOf(verb));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Hardware> devices, DevicesOf(verb));
  Planned planned = PlanOffers(verb, devices, limits);
  if (planned.offers.empty())
    return InvalidArgument("none of the devices can be planned for. hint: ridge devices");
  RankOffers(planned.offers, OrderOf(verb));
  const bool any = planned.offers.front().is_allowed();
  const ChooseTable table = {TitleOf(verb), std::move(planned.offers), std::move(planned.skipped),
                             verb.all ? SIZE_MAX : ChooseTable().rows};
  if (verb.html) RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.html, ChoosePage(table)));
  if (verb.json) {
    PrintData(ChooseJson(table) + "\n");
  } else if (verb.markdown) {
    PrintData(ChooseMarkdown(table));
  } else if (any && !IsStandardOutput(verb.html)) {
    PrintData(ChooseReport(table, terminal));
  }
  if (any) return kExitOk;
  return Status(ErrorCode::kOutOfMemory, "choose: " + NothingAllowedText(table.offers));
}

void AddLimits(CLI::App& app, ChooseVerb& verb) {
  constexpr const char* kGroup = "Limits";
  AddText(app, "--deadline", verb.deadline, "TIME",
          "The training must end in this time: 24h, 90min")
      ->group(kGroup);
  AddText(app, "--budget", verb.budget, "USD", "It may cost so much: 500USD")->group(kGroup);
  AddText(app, "--power", verb.power, "WATTS",
          "The machine's supply, which all boards, their host and headroom must keep: 1500W; with "
          "--serve what the board takes on the mean")
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
}

}  // namespace

VerbBody AddChoose(CLI::App& app) {
  auto verb = std::make_shared<ChooseVerb>();
  AddTrainFlags(app, verb->train);
  AddInteger(app, "--data-size", verb->data_size, {1, kMostSamples}, "N", "Samples of an epoch")
      ->group("Training");
  AddLimits(app, *verb);
  AddServeFlags(app, verb->serve);
  AddChoice(app, "--order", verb->order, {"cost", "time", "energy"},
            "What the table is sorted by (cost)")
      ->group(kOutputGroup);
  AddSwitch(app, "--all", verb->all, "Print all offers")->group(kOutputGroup);
  CLI::Option* json = AddSwitch(app, "--json", verb->json, "Print JSON");
  json->group(kOutputGroup);
  AddText(app, "--html", verb->html, "FILE", "Write a page with all offers, sortable")
      ->group(kOutputGroup);
  CLI::Option* markdown =
      AddSwitch(app, "--markdown", verb->markdown, "Print all offers as Markdown");
  markdown->group(kOutputGroup);
  Exclude(json, markdown);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  AddConfigFlag(app);
  return [&app, verb] { return RunChoose(app, *verb); };
}

}  // namespace ridge::cli
