// `ridge choose`: which devices, and how many, for a training.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ridge/cli/choose_layouts.h"
#include "ridge/cli/choose_serving.h"
#include "ridge/cli/choose_verb.h"
#include "ridge/cli/config_file.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/core/units.h"
#include "ridge/plan/hardware/catalog_file.h"
#include "ridge/plan/hardware/cluster.h"
#include "ridge/report/choose_details.h"
#include "ridge/report/plan_page.h"

namespace ridge::cli {
namespace {

constexpr int64_t kMostSamples = int64_t{1} << 50;
constexpr int64_t kCounts[] = {1, 2, 4, 8};
constexpr int64_t kMostNodes = 1 << 16;
constexpr int64_t kUsualNodes = 4;  // of a cluster that does not say how many it has

// One, two, four and eight in one machine.
std::vector<DeviceGroup> InOneMachine(const Hardware& hardware) {
  std::vector<DeviceGroup> groups;
  for (const int64_t count : kCounts) groups.push_back({&hardware, count});
  return groups;
}

// Whole nodes: one, two, four, ... and as many as there are.
std::vector<DeviceGroup> InCluster(const Hardware& hardware, const Cluster& cluster,
                                   int64_t most_nodes) {
  std::vector<DeviceGroup> groups;
  const auto add = [&](int64_t nodes) {
    groups.push_back({&hardware, cluster.per_node(), nodes, cluster.node_bytes_per_s()});
  };
  const bool is_usual = std::count(std::begin(kCounts), std::end(kCounts), cluster.per_node()) > 0;
  for (int64_t nodes = is_usual ? 2 : 1; nodes < most_nodes; nodes *= 2) add(nodes);
  if (most_nodes > 1 || !is_usual) add(most_nodes);
  return groups;
}

OfferOrder OrderOf(const ChooseVerb& verb) {
  if (verb.order == "time") return OfferOrder::kTime;
  return verb.order == "energy" ? OfferOrder::kEnergy : OfferOrder::kCost;
}

// Fails where nothing can be planned: an operator or a type that the device lacks.
Result<DeviceStep> PlanStep(const ChooseVerb& verb, const DeviceGroup& group,
                            const Machine& machine) {
  DeviceStep step;
  step.group = group;
  step.precision = PrecisionFor(verb, *group.hardware);
  TrainOptions options = verb.train.options;
  options.device = group.hardware->id;
  options.precision = step.precision;
  options.batch /= group.count();
  if (group.count() > 1) LeaveLossWhole(options);
  RIDGE_ASSIGN_OR_RETURN(const PlannedRun run, PlanRun(options, machine));
  step.step_s = run.job.step_s;
  step.low_s = run.job.range->low_s;
  step.high_s = run.job.range->high_s;
  step.peak_bytes = run.job.memory.needed_bytes();
  step.peak_low_bytes = run.job.memory.least_bytes();
  step.limit_bytes = run.job.limit_bytes;
  for (const PersistentValue& value : run.job.program.persistent) {
    if (value.kind != ValueKind::kInput) step.variable_bytes += value.size_bytes;
  }
  step.gradients = GradientTimes(run.job.program, run.job.options.accumulate);
  const Cost cost = UpdateCost(run.job.program, run.job.options.accumulate);
  step.flops = static_cast<double>(cost.flops);
  step.bytes = static_cast<double>(cost.bytes_read + cost.bytes_written);
  step.peak_flops_per_s = machine.peak_flops_per_s;
  for (const StepPlan& plan : run.job.program.steps)
    step.nodes += static_cast<int64_t>(plan.nodes.size());
  return step;
}

struct Planned {
  std::vector<Offer> offers;
  std::vector<WantedLayouts> wanted;              // that do not fit, or may be slower, in parts
  double update_flops = 0;                        // of all devices
  int64_t nodes = 0;                              // of the graph
  std::vector<std::string> not_searched;          // of these: SearchOffers
  std::vector<std::string> skipped;               // too little is known
  std::vector<std::string> too_small;             // for parameters and optimizer state alone
  std::map<std::string, int64_t> variable_bytes;  // by precision; the same on every device
};

// Whether what is known of other devices says that the variables exceed the memory.
bool IsTooSmall(const ChooseVerb& verb, const Hardware& hardware, const Planned& planned) {
  if (verb.train.Has("offload") || !hardware.memory_gb) return false;
  const auto known = planned.variable_bytes.find(PrecisionFor(verb, hardware));
  return known != planned.variable_bytes.end() &&
         static_cast<double>(known->second) > *hardware.memory_gb * (1 << 30);
}

TrainingLength LengthOf(const ChooseVerb& verb) {
  const TrainOptions& options = verb.train.options;
  return {*verb.data_size, options.epochs.value_or(1), options.batch * options.accumulate};
}

// Whether the best layout of these devices is wanted, which fit data parallel or not.
bool WantsLayout(const ChooseVerb& verb, int64_t count, bool fits) {
  if (count < 2 || verb.layouts == "data" || verb.train.Has("offload")) return false;
  return !fits || verb.layouts == "best";
}

// Adds those of the groups of the device whose number divides the batch.  Fails as PlanStep at the
// first group that fails, and where too little is known.
Status AddOffers(const ChooseVerb& verb, const Hardware& hardware,
                 const std::vector<DeviceGroup>& groups, const ChooseLimits& limits,
                 Planned& planned) {
  const TrainOptions& options = verb.train.options;
  const TrainingLength length = LengthOf(verb);
  const std::string precision = PrecisionFor(verb, hardware);
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenPlannedMachine(hardware, precision, kOwnSoftware));
  WantedLayouts wanted = {&hardware, {}};
  for (const DeviceGroup& group : groups) {
    if (options.batch % group.count() != 0) continue;
    bool fits = false;
    if (!IsTooSmall(verb, hardware, planned)) {
      RIDGE_ASSIGN_OR_RETURN(const DeviceStep step, PlanStep(verb, group, opened.machine));
      planned.variable_bytes[precision] = step.variable_bytes;
      planned.update_flops = step.flops * static_cast<double>(group.count());
      planned.nodes = step.nodes;
      planned.offers.push_back(MakeOffer(step, length, limits));
      fits = step.peak_bytes <= step.limit_bytes;
    }
    if (WantsLayout(verb, group.count(), fits)) wanted.groups.push_back(group);
  }
  if (!wanted.groups.empty()) planned.wanted.push_back(std::move(wanted));
  return Status();
}

// The nodes of --cluster, and their device.
struct ClusterNodes {
  Cluster cluster;
  std::string device;  // its id
  int64_t most_nodes = 1;
};

// The device of --cluster is among `devices` afterwards.  Fails as FindCluster and FindHardware,
// and for --nodes without --cluster.
Result<std::optional<ClusterNodes>> ClusterOf(const ChooseVerb& verb,
                                              std::vector<Hardware>& devices) {
  if (!verb.cluster && verb.nodes)
    return InvalidArgument(
        "--nodes is the number of a cluster's nodes, and --cluster names none. hint: --cluster "
        "dgx-h100");
  if (!verb.cluster) return std::optional<ClusterNodes>();
  RIDGE_ASSIGN_OR_RETURN(Cluster cluster, FindCluster(*verb.cluster));
  RIDGE_ASSIGN_OR_RETURN(Hardware device, FindHardware(cluster.device));
  const auto of_file = static_cast<int64_t>(cluster.nodes.value_or(kUsualNodes));
  ClusterNodes nodes = {std::move(cluster), device.id, verb.nodes.value_or(of_file)};
  if (FindById(devices, device.id) == nullptr) devices.push_back(std::move(device));
  return std::optional<ClusterNodes>(std::move(nodes));
}

void AddSearched(const ChooseVerb& verb, const ChooseLimits& limits, Planned& planned) {
  Training training = {LengthOf(verb), limits, OrderOf(verb), planned.update_flops, planned.nodes};
  for (const auto& [precision, bytes] : planned.variable_bytes)
    training.variable_bytes = std::max(training.variable_bytes, bytes);
  SearchedOffers searched = SearchOffers(verb, planned.wanted, training);
  for (Offer& offer : searched.offers) TakeLayout(std::move(offer), planned.offers);
  planned.not_searched = std::move(searched.not_searched);
}

bool HasFittingOffer(const Planned& planned, const std::string& device) {
  return std::any_of(planned.offers.begin(), planned.offers.end(), [&](const Offer& offer) {
    return offer.device == device && offer.peak_bytes <= offer.limit_bytes;
  });
}

Planned PlanOffers(const ChooseVerb& verb, const std::vector<Hardware>& devices,
                   const std::optional<ClusterNodes>& cluster, const ChooseLimits& limits) {
  Planned planned;
  for (const Hardware& hardware : devices) {
    std::vector<DeviceGroup> groups = InOneMachine(hardware);
    if (cluster && cluster->device == hardware.id) {
      for (const DeviceGroup& group : InCluster(hardware, cluster->cluster, cluster->most_nodes))
        groups.push_back(group);
    }
    if (!AddOffers(verb, hardware, groups, limits, planned).ok())
      planned.skipped.push_back(hardware.id);
  }
  AddSearched(verb, limits, planned);
  for (const Hardware& hardware : devices) {
    const auto& skipped = planned.not_searched;
    const bool is_open = std::count(skipped.begin(), skipped.end(), hardware.id) > 0;
    if (IsTooSmall(verb, hardware, planned) && !is_open && !HasFittingOffer(planned, hardware.id))
      planned.too_small.push_back(hardware.id);
  }
  return planned;
}

// What comes after the best offer: twice as many of its device, then later ones.
std::vector<Upgrade> PlanUpgrades(const ChooseVerb& verb, const std::vector<Hardware>& devices,
                                  const Offer& best, const ChooseLimits& limits) {
  const Hardware* from = FindById(devices, best.device);
  const auto plan = [&](const Hardware& to, int64_t count, std::vector<Upgrade>& upgrades) {
    Planned next;
    if (!AddOffers(verb, to, {{&to, count}}, limits, next).ok() || next.offers.empty()) return;
    upgrades.push_back(MakeUpgrade(*from, best, to, std::move(next.offers.front())));
  };
  std::vector<Upgrade> twice, later;
  if (best.count < kCounts[std::size(kCounts) - 1]) plan(*from, 2 * best.count, twice);
  for (const Hardware* successor : Successors(*from, HardwareCatalog()))
    plan(*successor, best.count, later);
  std::vector<Upgrade> upgrades = FasterOnes(best.time_s, std::move(twice));
  for (Upgrade& upgrade : FasterOnes(best.time_s, std::move(later)))
    upgrades.push_back(std::move(upgrade));
  return upgrades;
}

Status CheckWhy(const ChooseVerb& verb, const std::vector<Offer>& offers) {
  if (!verb.why) return Status();
  const bool found = std::any_of(offers.begin(), offers.end(),
                                 [&](const Offer& offer) { return offer.device == *verb.why; });
  if (found) return Status();
  return InvalidArgument(
      fmt::format("--why is '{}'; no offer has that device. hint: --all lists them", *verb.why));
}

void PrintChoice(const ChooseVerb& verb, const ChooseTable& table, const Terminal& terminal) {
  if (verb.why) {
    PrintData(OfferDetails(table, *verb.why, terminal));
  } else if (verb.json) {
    PrintData(ChooseJson(table) + "\n");
  } else if (verb.markdown) {
    PrintData(ChooseMarkdown(table));
  } else if (table.offers.front().is_allowed() && !IsStandardOutput(verb.html)) {
    PrintData(ChooseReport(table, terminal));
  }
}

ServingOrder ServingOrderOf(const ChooseVerb& verb) {
  if (verb.order == "time") return ServingOrder::kLatency;
  return verb.order == "energy" ? ServingOrder::kPower : ServingOrder::kCost;
}

// Refuses what only a training has.
Result<int> RunServe(const ChooseVerb& verb, const Terminal& terminal) {
  const std::pair<const char*, bool> of_training[] = {{"--data-size", verb.data_size.has_value()},
                                                      {"--deadline", verb.deadline.has_value()},
                                                      {"--budget", verb.budget.has_value()},
                                                      {"--buy", verb.buy.has_value()},
                                                      {"--html", verb.html.has_value()},
                                                      {"--markdown", verb.markdown},
                                                      {"--why", verb.why.has_value()},
                                                      {"--cluster", verb.cluster.has_value()},
                                                      {"--nodes", verb.nodes.has_value()},
                                                      {"--layouts", verb.layouts.has_value()},
                                                      {"--frameworks", verb.frameworks}};
  for (const auto& [flag, is_given] : of_training) {
    if (is_given) return InvalidArgument(fmt::format("{} is of trainings, not of --serve", flag));
  }
  if (verb.power) {
    return InvalidArgument(
        "--power is the supply of a machine that trains, not of --serve. hint: --board-power 70W, "
        "what the board takes on the mean");
  }
  RIDGE_ASSIGN_OR_RETURN(const ChooseLimits limits, LimitsOf(verb));
  RIDGE_ASSIGN_OR_RETURN(std::vector<Hardware> devices, DevicesOf(verb));
  return RunServing({verb.train, verb.serve, std::move(devices), limits.own, limits.terms.usd_kwh,
                     ServingOrderOf(verb), verb.all, verb.json},
                    terminal);
}

// REQUIRES: ranked offers.
ChooseTable TableOf(const ChooseVerb& verb, Planned planned, const std::vector<Hardware>& devices,
                    const ChooseLimits& limits) {
  ChooseTable table = {TitleOf(verb), std::move(planned.offers), std::move(planned.skipped)};
  if (verb.all) table.rows = SIZE_MAX;
  table.too_small = std::move(planned.too_small);
  table.not_searched = std::move(planned.not_searched);
  for (const auto& [precision, bytes] : planned.variable_bytes)
    table.variable_bytes = std::max(table.variable_bytes, bytes);
  table.terms = limits.terms;
  const Offer& best = table.offers.front();
  // Upgrades are of one machine, data parallel.
  if (best.is_allowed() && best.nodes == 1 && !best.layout && !verb.why)
    table.upgrades = PlanUpgrades(verb, devices, best, limits);
  return table;
}

Result<int> RunChoose(const CLI::App& app, const ChooseVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.train.Has("model"), "MODEL",
                                        "`ridge models` lists the built-in ones"));
  RIDGE_RETURN_IF_ERROR(CheckOutputs(verb));
  if (verb.serve.serve) return RunServe(verb, terminal);
  RIDGE_RETURN_IF_ERROR(RefuseServeFlags(verb.serve));
  RIDGE_RETURN_IF_ERROR(CheckModel(verb.train.options));
  if (verb.frameworks) return RunFrameworks(verb, terminal);
  if (!verb.data_size) {
    return InvalidArgument(
        "--data-size is missing: the samples of an epoch. hint: --data-size 1281167 is ImageNet's");
  }
  RIDGE_ASSIGN_OR_RETURN(const ChooseLimits limits, LimitsOf(verb));
  RIDGE_ASSIGN_OR_RETURN(std::vector<Hardware> devices, DevicesOf(verb));
  RIDGE_ASSIGN_OR_RETURN(const std::optional<ClusterNodes> cluster, ClusterOf(verb, devices));
  Planned planned = PlanOffers(verb, devices, cluster, limits);
  if (planned.offers.empty())
    return InvalidArgument("none of the devices can be planned for. hint: ridge devices");
  TakeLinearShares(planned.offers);
  RankOffers(planned.offers, OrderOf(verb));
  RIDGE_RETURN_IF_ERROR(CheckWhy(verb, planned.offers));
  const ChooseTable table = TableOf(verb, std::move(planned), devices, limits);
  if (verb.html) RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.html, ChoosePage(table)));
  PrintChoice(verb, table, terminal);
  if (table.offers.front().is_allowed()) return kExitOk;
  return Status(ErrorCode::kOutOfMemory,
                "choose: " + NothingAllowedText(table.offers) + TooSmallText(table));
}

}  // namespace

std::vector<std::string> ListOf(const std::optional<std::string>& text) {
  std::vector<std::string> names;
  if (!text) return names;
  for (const std::string_view name : SplitAt(*text, ',')) names.emplace_back(name);
  return names;
}

Result<std::vector<Hardware>> DevicesOf(const ChooseVerb& verb) {
  std::vector<Hardware> devices;
  if (!verb.among) devices = HardwareCatalog();
  std::vector<std::string> names = ListOf(verb.among);
  for (const std::string& own : ListOf(verb.own)) names.push_back(own);
  for (const std::string& buy : ListOf(verb.buy)) names.push_back(buy.substr(0, buy.rfind('=')));
  for (const std::string& name : names) {
    RIDGE_ASSIGN_OR_RETURN(Hardware device, FindHardware(name));
    if (FindById(devices, device.id) == nullptr) devices.push_back(std::move(device));
  }
  return devices;
}

std::string PrecisionFor(const ChooseVerb& verb, const Hardware& hardware) {
  if (verb.train.Has("precision")) return verb.train.options.precision;
  return FastestPrecision(hardware);
}

std::string TitleOf(const ChooseVerb& verb) {
  const TrainOptions& options = verb.train.options;
  const std::string title =
      fmt::format("{}, batch {}", options.model, options.batch * options.accumulate);
  if (!verb.data_size) return title;
  return fmt::format("{}, {} of {} samples", title,
                     FormatCountOf(options.epochs.value_or(1), "epoch"),
                     FormatInteger(*verb.data_size));
}

Status CheckOutputs(const ChooseVerb& verb) {
  return OneOnStandardOutput({{"--json", verb.json},
                              {"--markdown", verb.markdown},
                              {"--html", IsStandardOutput(verb.html)}});
}

VerbBody AddChoose(CLI::App& app) {
  auto verb = std::make_shared<ChooseVerb>();
  AddTrainFlags(app, verb->train);
  AddInteger(app, "--data-size", verb->data_size, {1, kMostSamples}, "N", "Samples of an epoch")
      ->group("Training");
  AddText(app, "--cluster", verb->cluster, "CLUSTER",
          "Also whole nodes of a cluster: one of `ridge devices clusters`, or a file of your own")
      ->group("Limits");
  AddInteger(app, "--nodes", verb->nodes, {1, kMostNodes}, "N",
             "Nodes of it at most (its file's, else 4)")
      ->group("Limits");
  AddChoice(app, "--layouts", verb->layouts, {"data", "fit", "best"},
            "Several devices: data parallel; the best layout where that does not fit (fit); or the "
            "faster of both everywhere, which takes longer to plan")
      ->group("Limits");
  AddLimits(app, *verb);
  AddServeFlags(app, verb->serve);
  AddChoice(app, "--order", verb->order, {"cost", "time", "energy"},
            "What the table is sorted by (cost)")
      ->group(kOutputGroup);
  AddSwitch(app, "--frameworks", verb->frameworks,
            "Instead of offers: which programs (ridge, PyTorch, TensorFlow, JAX, Paddle) train it "
            "on the devices of --among, with versions, memory, time and size")
      ->group(kOutputGroup);
  AddSwitch(app, "--all", verb->all, "Print all offers; with --frameworks all sources")
      ->group(kOutputGroup);
  CLI::Option* why = AddText(app, "--why", verb->why, "DEVICE",
                             "Print all that is known of its offers: bandwidth, density, clock, "
                             "power, slots, cost");
  why->group(kOutputGroup);
  CLI::Option* json = AddSwitch(app, "--json", verb->json, "Print JSON");
  json->group(kOutputGroup);
  AddText(app, "--html", verb->html, "FILE", "Write a page with all offers, sortable")
      ->group(kOutputGroup);
  CLI::Option* markdown =
      AddSwitch(app, "--markdown", verb->markdown, "Print all offers as Markdown");
  markdown->group(kOutputGroup);
  Exclude(json, markdown);
  Exclude(why, json);
  Exclude(why, markdown);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  AddConfigFlag(app);
  return [&app, verb] { return RunChoose(app, *verb); };
}

}  // namespace ridge::cli
