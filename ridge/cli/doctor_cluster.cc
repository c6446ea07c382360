// `ridge doctor cluster`: what ranks need of this machine, what is wrong, and what mends that.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ridge/cli/doctor_report.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/dist/mpi_plugin.h"
#include "ridge/doctor/find_probe.h"
#include "ridge/doctor/problems.h"
#include "ridge/report/table.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ClusterVerb {
  std::optional<std::string> probe, devices, color;
  bool json = false;
};

std::string OrNone(const std::string& text, const char* none) { return text.empty() ? none : text; }

void AddMpiRows(const Probe::Cluster& cluster, Table& table) {
  if (cluster.mpis.empty()) table.AddRow({"MPI", "none"});
  for (const Probe::Mpi& mpi : cluster.mpis) {
    const char* name = MpiName(mpi.id == MpiId(Mpi::kMpich) ? Mpi::kMpich : Mpi::kOpenMpi);
    table.AddRow({name, mpi.launcher.empty() ? "no mpirun in PATH"
                                             : fmt::format("{} ({})", mpi.launcher,
                                                           OrNone(mpi.version, "no version"))});
    table.AddRow({"", mpi.plugin.empty() ? "no plug-in"
                                         : fmt::format("{} ({})", mpi.plugin,
                                                       OrNone(mpi.library, "cannot be loaded"))});
  }
}

std::string SlurmText(const Probe::Cluster& cluster) {
  if (cluster.slurm.empty()) return "not here";
  return fmt::format("{}, srun --mpi={}", cluster.slurm, fmt::join(cluster.slurm_mpis, "|"));
}

std::string StartText(const Probe::Cluster& cluster) {
  if (!cluster.start_failure.empty()) return "srun without an MPI";
  return OrNone(cluster.started_by, "no launcher");
}

std::string NetworkText(const Probe::Network& network) {
  std::string text = fmt::format("{} {}", network.interface, network.subnet);
  if (network.megabit_per_s > 0) {
    text +=
        fmt::format(", {}", FormatRate(1e6 * static_cast<double>(network.megabit_per_s), "bit"));
  }
  return network.of_containers ? text + ", between containers" : text;
}

void AddNetworkRows(const Probe::Cluster& cluster, Table& table) {
  const char* name = "networks";
  for (const Probe::Network& network : cluster.networks) {
    table.AddRow({name, NetworkText(network)});
    name = "";
  }
  if (cluster.networks.empty()) table.AddRow({name, "none but the loopback"});
  if (const Probe::Network* best = BestNetwork(cluster))
    table.AddRow({"between machines", "mpirun --mca btl_tcp_if_include " + best->subnet});
}

std::string CopiesText(const Probe::Cluster& cluster) {
  const bool direct = cluster.reads_process.value_or(false) && cluster.ptrace.value_or(0) == 0;
  std::string text = direct ? "direct (process_vm_readv)" : "through /dev/shm";
  if (cluster.ptrace) text += fmt::format("; kernel.yama.ptrace_scope {}", *cluster.ptrace);
  return text;
}

std::string CoresText(const Probe& probe) {
  const Probe::Cluster& cluster = *probe.cluster;
  const std::string text = fmt::format("{}, {} to use", FormatCountOf(cluster.cores, "core"),
                                       FormatCountOf(probe.threads.used, "thread"));
  if (cluster.ranks == 0) return text;
  const int64_t each = std::max<int64_t>(1, probe.threads.used / cluster.ranks);
  return fmt::format("{}; {} of {}", text, FormatCountOf(cluster.ranks, "rank"),
                     FormatCountOf(each, "thread"));
}

std::string ClusterText(const Probe& probe, const Terminal& terminal) {
  const Probe::Cluster& cluster = *probe.cluster;
  Table table({{""}, {""}});
  table.AddRow({"ridge", probe.ridge});
  AddMpiRows(cluster, table);
  table.AddRow({"Slurm", SlurmText(cluster)});
  table.AddRow({"started by", StartText(cluster)});
  AddNetworkRows(cluster, table);
  table.AddRow({"/dev/shm", probe.memory.shared_bytes == 0
                                ? "not known"
                                : FormatBytes(probe.memory.shared_bytes)});
  table.AddRow({"long messages", CopiesText(cluster)});
  table.AddRow({"cores", CoresText(probe)});
  return table.ToText(terminal, /*indent=*/0);
}

// A recorded machine keeps the ranks that it was asked about, unless others are.
Result<Probe> ClusterProbeOf(const ClusterVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t ranks,
                         verb.devices ? ParseDevices(*verb.devices) : Result<int64_t>(0));
  RIDGE_ASSIGN_OR_RETURN(Probe probe, ProbeOf(verb.probe));
  if (!verb.probe) probe.cluster = FindCluster(ThisMachine(), ranks);
  if (!probe.cluster) {
    return Status(ErrorCode::kInvalidData,
                  *verb.probe + ": has no cluster. hint: `ridge doctor cluster --json` writes one");
  }
  if (ranks > 0) probe.cluster->ranks = ranks;
  return probe;
}

// Of those that the machine has, the ones of its cluster.
std::vector<Problem> ClusterProblems(const Probe& probe) {
  Judgement judgement = {probe, {}, {}};
  JudgeCluster(judgement);
  return SortedProblems(std::move(judgement));
}

Result<int> RunCluster(const ClusterVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const ColourChoice colour, ParseColourChoice(verb.color.value_or("auto")));
  RIDGE_ASSIGN_OR_RETURN(const Probe probe, ClusterProbeOf(verb));
  const std::vector<Problem> problems = ClusterProblems(probe);
  if (verb.json) {
    Json json = ProbeToJson(probe);
    json["problems"] = ProblemsJson(problems);
    PrintData(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    PrintData(ClusterText(probe, DetectTerminal(stdout, colour)) + ProblemsText(problems));
  }
  return AnyBlocking(problems) ? kExitDevice : kExitOk;
}

}  // namespace

VerbBody AddDoctorCluster(CLI::App& app) {
  auto verb = std::make_shared<ClusterVerb>();
  AddText(app, "--devices", verb->devices, "N|LIST", "Judge the machine for so many ranks");
  AddText(app, "--probe", verb->probe, "FILE",
          "Judges a machine that `ridge doctor cluster --json` recorded, not this one");
  AddSwitch(app, "--json", verb->json, "Print JSON");
  AddChoice(app, "--color", verb->color, {"auto", "always", "never"}, "Colour of the output");
  return [verb] { return RunCluster(*verb); };
}

}  // namespace ridge::cli
