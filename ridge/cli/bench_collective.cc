// `ridge bench collective`: how fast bytes move between ranks.
#include "ridge/measure/bench_collective.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/ranks.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

struct CollectiveVerb {
  TrainFlags devices;  // of these: devices
  std::optional<int64_t> most_bytes;
  OutputFlags output;
  bool json = false;
};

std::string CollectiveReport(const MpiCommunicator& ranks, const std::vector<CollectiveRate>& rates,
                             const Terminal& terminal) {
  Table table({{"collective"},
               {"ranks", Align::kRight},
               {"bytes", Align::kRight},
               {"time", Align::kRight},
               {"each sends", Align::kRight}});
  for (const CollectiveRate& rate : rates) {
    table.AddRow({rate.collective, std::to_string(rate.ranks), FormatBytes(rate.bytes),
                  FormatSeconds(rate.seconds), FormatRate(rate.bytes_per_s(), "B")});
  }
  return fmt::format("{} ranks, {}\n\n", ranks.size(), ranks.library()) + table.ToText(terminal);
}

std::string CollectiveJson(const MpiCommunicator& ranks, const std::vector<CollectiveRate>& rates) {
  nlohmann::ordered_json json = {{"mpi", ranks.library()}, {"ranks", ranks.size()}};
  json["rates"] = nlohmann::ordered_json::array();
  for (const CollectiveRate& rate : rates) {
    json["rates"].push_back({{"collective", rate.collective},
                             {"ranks", rate.ranks},
                             {"bytes", rate.bytes},
                             {"s", rate.seconds},
                             {"bytes_per_s", rate.bytes_per_s()}});
  }
  return json.dump(1) + "\n";
}

Result<int> Measure(MpiCommunicator& ranks, const CollectiveVerb& verb, const Terminal& terminal) {
  CollectiveRequest request;
  request.most_bytes = verb.most_bytes.value_or(request.most_bytes);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<CollectiveRate> rates, BenchCollective(ranks, request));
  if (ranks.rank() == 0)
    PrintData(verb.json ? CollectiveJson(ranks, rates) : CollectiveReport(ranks, rates, terminal));
  return kExitOk;
}

Result<int> RunCollective(const CollectiveVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, ParseDevices(verb.devices.options.devices));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<MpiCommunicator> ranks,
                         JoinRanks({devices, verb.devices.Has("devices")}));
  if (ranks == nullptr)
    return InvalidArgument("one rank has nobody to exchange with. hint: --devices 2");
  return EndRanks(*ranks, Measure(*ranks, verb, terminal));
}

}  // namespace

VerbBody AddBenchCollective(CLI::App& app) {
  auto verb = std::make_shared<CollectiveVerb>();
  AddOption(app, verb->devices, "devices",
            "How many ranks, on this machine; or a list of devices, such as 0,1");
  AddSize(app, "--most", Into(verb->most_bytes), "Bytes of the largest exchange (16MiB)");
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [verb] { return RunCollective(*verb); };
}

}  // namespace ridge::cli
