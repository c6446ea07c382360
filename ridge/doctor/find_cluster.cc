// What ranks need: the MPIs, Slurm, networks, and what the system lets processes share.
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>
#include <sstream>

#include "ridge/core/split.h"
#include "ridge/dist/launcher.h"
#include "ridge/dist/mpirun.h"
#include "ridge/doctor/find_probe.h"

namespace ridge {
namespace {

using probing::Exists;
using probing::FirstLine;
using probing::Text;
using probing::Variable;

std::optional<int64_t> Number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The folders of PATH below the place's root.
std::string ProgramFolders(const ProbePlace& place) {
  std::string folders;
  const std::string path = Variable(place, "PATH");
  for (const std::string_view folder : SplitAt(path, ':'))
    folders += fmt::format("{}{}{}", folders.empty() ? "" : ":", place.root, folder);
  return folders;
}

std::vector<Probe::Mpi> FindMpis(const ProbePlace& place) {
  const std::vector<Mpirun> launchers = FindMpiruns(
      ProgramFolders(place),
      [&](const std::string& path) { return place.command(fmt::format("'{}' --version", path)); });
  std::vector<Probe::Mpi> mpis;
  for (const Mpi mpi : kAllMpis) {
    Probe::Mpi found = place.plugin ? place.plugin(mpi) : Probe::Mpi{};
    found.id = MpiId(mpi);
    for (const Mpirun& launcher : launchers) {
      if (launcher.mpi != mpi) continue;
      found.launcher = launcher.path.substr(place.root.size());
      found.version = launcher.version;
    }
    if (!found.launcher.empty() || !found.plugin.empty()) mpis.push_back(std::move(found));
  }
  return mpis;
}

// "slurm 22.05.8"; "MPI plugin types are...\n\tnone\n\tpmi2\n" with a list of pmix versions behind.
void FindSlurm(const ProbePlace& place, Probe::Cluster& cluster) {
  const std::string folders = ProgramFolders(place);
  const std::vector<std::string_view> all = SplitAt(folders, ':');
  if (std::none_of(all.begin(), all.end(), [](std::string_view folder) {
        return access(fmt::format("{}/srun", folder).c_str(), X_OK) == 0;
      }))
    return;
  std::istringstream version(place.command("srun --version"));
  version >> cluster.slurm >> cluster.slurm;
  std::istringstream words(place.command("srun --mpi=list 2>&1"));
  std::set<std::string> known;
  for (std::string word; words >> word;) {
    for (const char* name : {"none", "pmi2", "pmix", "cray_shasta"}) {
      if (word.starts_with(name) && known.insert(name).second)
        cluster.slurm_mpis.emplace_back(name);
    }
  }
}

void FindStart(const ProbePlace& place, Probe::Cluster& cluster) {
  const Result<std::optional<Launcher>> launcher = DetectLauncher(place.variable);
  if (!launcher.ok()) {
    cluster.start_failure = launcher.status().message();
  } else if (*launcher) {
    cluster.started_by = (*launcher)->name;
    cluster.started_mpi = MpiId((*launcher)->mpi);
  }
  cluster.chosen_plugin = Variable(place, "RIDGE_MPI");
}

// Eight hexadecimal digits, the first byte of the address last.
std::optional<uint32_t> Address(const std::string& digits) {
  uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || end != digits.data() + 8) return std::nullopt;
  return number;
}

bool IsOfContainers(const ProbePlace& place, const std::string& interface) {
  for (const char* start : {"docker", "veth", "virbr", "cni", "flannel", "cali", "br-"}) {
    if (interface.starts_with(start)) return true;
  }
  return Exists(place, fmt::format("/sys/class/net/{}/bridge", interface));
}

// Routes that need no gateway are the networks that the machine is in.
std::vector<Probe::Network> FindNetworks(const ProbePlace& place) {
  std::vector<Probe::Network> networks;
  std::istringstream lines(Text(place, "/proc/net/route"));
  std::string line;
  std::getline(lines, line);  // the names of the columns
  while (std::getline(lines, line)) {
    std::string interface, to, gateway, flags, count, use, metric, mask_digits;
    std::istringstream(line) >> interface >> to >> gateway >> flags >> count >> use >> metric >>
        mask_digits;
    const std::optional<uint32_t> net = Address(to), mask = Address(mask_digits);
    if (!net || !mask || *mask == 0 || gateway != "00000000" || interface == "lo") continue;
    Probe::Network network;
    network.interface = interface;
    network.subnet = fmt::format("{}.{}.{}.{}/{}", *net & 255, *net >> 8 & 255, *net >> 16 & 255,
                                 *net >> 24, std::popcount(*mask));
    const std::string speed = FirstLine(place, fmt::format("/sys/class/net/{}/speed", interface));
    network.megabit_per_s = std::max<int64_t>(0, Number(speed).value_or(0));
    network.of_containers = IsOfContainers(place, interface);
    networks.push_back(std::move(network));
  }
  return networks;
}

// Whether the system lets a process read another's memory at all: a filter of a container may not.
bool ReadsProcess() {
  char from = 'x', to = 0;
  const iovec source = {&from, 1}, target = {&to, 1};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == 1;
}

}  // namespace

Probe::Cluster FindCluster(const ProbePlace& place, int64_t ranks) {
  Probe::Cluster cluster;
  cluster.mpis = FindMpis(place);
  FindSlurm(place, cluster);
  FindStart(place, cluster);
  cluster.networks = FindNetworks(place);
  cluster.ranks = ranks;
  cluster.cores = PhysicalCores(place.root);
  cluster.ptrace = Number(FirstLine(place, "/proc/sys/kernel/yama/ptrace_scope"));
  cluster.reads_process = ReadsProcess();
  return cluster;
}

}  // namespace ridge
