#include "ridge/cli/choose_layouts.h"

#include <algorithm>

#include "ridge/cli/machine.h"
#include "ridge/cli/plan_mesh.h"
#include "ridge/plan/hardware/catalog_file.h"
#include "ridge/plan/hardware/planned_device.h"
#include "ridge/train/job/layout_search.h"
#include "ridge/train/load/folder_options.h"

namespace ridge::cli {
namespace {

// Nodes of graphs that are planned, about 4,000 a second: some 30 s.
constexpr int64_t kMostNodes = 120'000;
constexpr int64_t kGraphsOfSearch = 12;  // about so many does one device take

// The best layouts of the groups of one device that fit.  Fails as OpenPlannedMachine and
// SearchLayouts do.
Status AddLayouts(const ChooseVerb& verb, const WantedLayouts& wanted, const Training& training,
                  std::vector<Offer>& offers) {
  const std::string precision = PrecisionFor(verb, *wanted.hardware);
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenPlannedMachine(*wanted.hardware, precision, kOwnSoftware));
  const Machine& machine = opened.machine;
  LayoutRequest request;
  request.options = verb.train.options;
  request.options.device = wanted.hardware->id;
  request.options.precision = precision;
  std::vector<std::string> notes;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(request.options, &notes));
  request.limit_bytes =
      request.options.fit_bytes > 0 ? request.options.fit_bytes : machine.memory_bytes;
  request.refined = 1;
  request.only_sequence = true;
  request.links.wire_share = WireShare(machine, precision);
  request.links.all = *std::max_element(
      wanted.groups.begin(), wanted.groups.end(),
      [](const DeviceGroup& a, const DeviceGroup& b) { return a.per_node < b.per_node; });
  LocalSteps steps(request.options, request.links, machine);
  for (const DeviceGroup& group : wanted.groups) {
    request.links.all = group;
    RIDGE_ASSIGN_OR_RETURN(const LayoutsFound found, SearchLayouts(request, steps));
    if (found.fitting.empty()) continue;
    const Software& software = machine.software;
    offers.push_back(MakeOffer(LayoutStep(group, precision, found.fitting.front(),
                                          request.limit_bytes, software.low, software.high),
                               training.length, training.limits));
  }
  return Status();
}

// Even in equal parts the variables would not fit: no layout does.
void DropTooSmall(const Training& training, WantedLayouts& wanted) {
  std::erase_if(wanted.groups, [&](const DeviceGroup& group) {
    return wanted.hardware->memory_gb &&
           static_cast<double>(training.variable_bytes / group.count()) >
               *wanted.hardware->memory_gb * (1 << 30);
  });
}

// What the largest group would take if its products ran at its sheet's peak and nothing else did.
Offer PromiseOf(const ChooseVerb& verb, const WantedLayouts& wanted, const Training& training) {
  DeviceStep step;
  step.group = wanted.groups.back();
  step.precision = PrecisionFor(verb, *wanted.hardware);
  const Result<OpenedMachine> opened =
      OpenPlannedMachine(*wanted.hardware, step.precision, kOwnSoftware);
  const double peak = opened.ok() ? opened->machine.peak_flops_per_s : 0;
  const double devices = static_cast<double>(step.group.count());
  step.step_s = peak > 0 ? training.update_flops / devices / peak : 0;
  step.low_s = step.high_s = step.step_s;
  return MakeOffer(step, training.length, training.limits);
}

}  // namespace

SearchedOffers SearchOffers(const ChooseVerb& verb, std::vector<WantedLayouts> wanted,
                            const Training& training) {
  SearchedOffers searched;
  for (WantedLayouts& of : wanted) DropTooSmall(training, of);
  std::erase_if(wanted, [](const WantedLayouts& of) { return of.groups.empty(); });
  const int64_t nodes = std::max<int64_t>(1, training.nodes * kGraphsOfSearch);
  const auto most = static_cast<size_t>(std::max<int64_t>(1, kMostNodes / nodes));
  std::vector<Offer> promises;
  for (const WantedLayouts& of : wanted) promises.push_back(PromiseOf(verb, of, training));
  RankOffers(promises, training.order);
  for (const WantedLayouts& of : wanted) {
    const auto place = std::find_if(promises.begin(), promises.end(), [&](const Offer& offer) {
      return offer.device == of.hardware->id;
    });
    const bool is_searched = static_cast<size_t>(place - promises.begin()) < most;
    if (!is_searched || !AddLayouts(verb, of, training, searched.offers).ok())
      searched.not_searched.push_back(of.hardware->id);
  }
  return searched;
}

}  // namespace ridge::cli
