// `ridge bench collective`: how fast bytes move between ranks.
#include "ridge/measure/bench_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/measure.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/rank_times.h"
#include "ridge/cli/ranks.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/dist/core_share.h"
#include "ridge/report/table.h"
#include "ridge/runtime/sum_times_store.h"

namespace ridge::cli {
namespace {

struct CollectiveVerb {
  TrainFlags devices;  // of these: devices, threads
  std::optional<int64_t> most_bytes;
  OutputFlags output;
  bool json = false, quick = false;
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

// REQUIRES: it has one of so many bytes.
SumTime& SumOf(int64_t bytes, SumTimes& times) {
  return *std::find_if(times.sums.begin(), times.sums.end(),
                       [&](const SumTime& sum) { return sum.bytes == bytes; });
}

// The sums are what plans of so many ranks count; fewer sizes than usual do not replace them.
Status Keep(MpiCommunicator& ranks, const std::vector<CollectiveRate>& rates, int threads,
            int64_t grown_bytes) {
  RIDGE_ASSIGN_OR_RETURN(SumTimes times, SumTimesKey(ranks, CpuProfileId(threads)));
  times.join_bytes += std::max<int64_t>(0, grown_bytes);
  for (const CollectiveRate& rate : rates) {
    if (rate.collective == kTreeSumRate) times.sums.push_back({rate.bytes, rate.seconds});
    if (rate.collective == kBF16SumRate) SumOf(rate.bytes, times).bf16_seconds = rate.seconds;
  }
  if (ranks.rank() != 0 || times.sums.back().bytes < SumRequest().most_bytes) return Status();
  return SaveSumTimes(times);
}

Result<int> Measure(MpiCommunicator& ranks, const CollectiveVerb& verb, const Terminal& terminal) {
  CollectiveRequest request;
  request.most_bytes = verb.most_bytes.value_or(request.most_bytes);
  request.sums_alone = verb.quick;
  int64_t threads = verb.devices.options.threads;
  if (threads == 0) {
    RIDGE_ASSIGN_OR_RETURN(threads, ThreadsOfRank(ranks));
  }
  RIDGE_ASSIGN_OR_RETURN(const auto backend, MakeCpuBackend(static_cast<int>(threads)));
  RIDGE_RETURN_IF_ERROR(TakeCores(ranks, *backend).status());
  const int64_t before = ReadProcessMemory().resident_bytes;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<CollectiveRate> rates,
                         BenchCollective(ranks, *backend, backend->threads(), request));
  RIDGE_RETURN_IF_ERROR(
      Keep(ranks, rates, backend->threads(), ReadProcessMemory().resident_bytes - before));
  if (ranks.rank() == 0)
    PrintData(verb.json ? CollectiveJson(ranks, rates) : CollectiveReport(ranks, rates, terminal));
  return kExitOk;
}

Result<int> RunCollective(const CollectiveVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, ParseDevices(verb.devices.options.devices));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<MpiCommunicator> ranks,
                         JoinRanks({devices, verb.devices.Has("devices"), kLateAfter_s,
                                    /*may_be_virtual=*/true}));
  if (ranks == nullptr)
    return InvalidArgument("one rank has nobody to exchange with. hint: --devices 2");
  return EndRanks(*ranks, Measure(*ranks, verb, terminal));
}

}  // namespace

VerbBody AddBenchCollective(CLI::App& app) {
  auto verb = std::make_shared<CollectiveVerb>();
  AddOption(app, verb->devices, "devices",
            "How many ranks, on this machine; or a list of devices, such as 0,1");
  AddOption(app, verb->devices, "threads");
  AddSize(app, "--most", Into(verb->most_bytes), "Bytes of the largest exchange (16MiB)");
  AddSwitch(app, "--quick", verb->quick, "Sums alone, which plans count");
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [verb] { return RunCollective(*verb); };
}

}  // namespace ridge::cli
