// Ranks: does each MPI have its plug-in and its own library, does the launcher find one that it
// understands, and what do messages between ranks go through.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/core/units.h"
#include "ridge/dist/mpi_plugin.h"
#include "ridge/doctor/problems.h"

namespace ridge {
namespace {

Mpi MpiOf(const std::string& id) { return id == MpiId(Mpi::kMpich) ? Mpi::kMpich : Mpi::kOpenMpi; }
const char* NameOf(const std::string& id) { return MpiName(MpiOf(id)); }

void JudgeMpi(const Probe::Mpi& mpi, Judgement& judgement) {
  const std::string name = NameOf(mpi.id);
  if (mpi.plugin.empty()) {
    judgement.Add(Severity::kWarning, name,
                  fmt::format("{} has no plug-in, {}: ranks that it starts cannot join",
                              mpi.launcher, MpiPluginFile(MpiOf(mpi.id))),
                  MpiRemedy(MpiOf(mpi.id), /*plugin=*/true));
  } else if (!mpi.failure.empty()) {
    judgement.Add(Severity::kWarning, name, SplitHint(mpi.failure).first,
                  MpiRemedy(MpiOf(mpi.id), /*plugin=*/false));
  } else if (mpi.launcher.empty()) {
    judgement.Add(Severity::kWarning, name, "its plug-in is here, its mpirun is not in PATH",
                  MpiRemedy(MpiOf(mpi.id), /*plugin=*/false));
  } else if (!mpi.version.empty() && !mpi.library.empty() && mpi.library.starts_with(name) &&
             !mpi.library.ends_with(" " + mpi.version)) {
    judgement.Add(Severity::kWarning, name,
                  fmt::format("{} is of {} {}, the library is {}: each rank may find a world of "
                              "one",
                              mpi.launcher, name, mpi.version, mpi.library),
                  "put the folder of the library's own mpirun first in PATH");
  }
}

void JudgeMpis(Judgement& judgement) {
  const Probe::Cluster& cluster = *judgement.probe.cluster;
  if (cluster.mpis.empty()) {
    judgement.Add(Severity::kWarning, "MPI", "none is here: `ridge train --devices` needs one",
                  MpiRemedy(Mpi::kOpenMpi, /*plugin=*/true));
  }
  for (const Probe::Mpi& mpi : cluster.mpis) JudgeMpi(mpi, judgement);
}

// This process is a rank of a launcher.
void JudgeStart(Judgement& judgement) {
  const Probe::Cluster& cluster = *judgement.probe.cluster;
  if (!cluster.start_failure.empty()) {
    judgement.Add(Severity::kBlocking, "srun", SplitHint(cluster.start_failure).first,
                  "srun --mpi=pmix with Open MPI, srun --mpi=pmi2 with MPICH");
  }
  if (cluster.started_by.empty()) return;
  const std::string file = MpiPluginFile(MpiOf(cluster.started_mpi));
  const std::string& chosen = cluster.chosen_plugin;
  if (!chosen.empty() && !chosen.ends_with(file) &&
      chosen.find("ridge_mpi_") != std::string::npos) {
    judgement.Add(Severity::kBlocking, "RIDGE_MPI",
                  fmt::format("it is {}; {} needs {}: each rank would find a world of one", chosen,
                              cluster.started_by, file),
                  "unset RIDGE_MPI");
  }
  const bool has = std::any_of(cluster.mpis.begin(), cluster.mpis.end(), [&](const auto& mpi) {
    return mpi.id == cluster.started_mpi && !mpi.plugin.empty();
  });
  if (has) return;
  judgement.Add(
      Severity::kBlocking, NameOf(cluster.started_mpi),
      fmt::format("{} started this process; its plug-in {} is not here", cluster.started_by, file),
      MpiRemedy(MpiOf(cluster.started_mpi), /*plugin=*/true));
}

void JudgeSlurm(Judgement& judgement) {
  const Probe::Cluster& cluster = *judgement.probe.cluster;
  const auto offers = [&](const char* name) {
    const auto& all = cluster.slurm_mpis;
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  if (cluster.slurm.empty()) return;
  for (const Probe::Mpi& mpi : cluster.mpis) {
    const char* needed = MpiOf(mpi.id) == Mpi::kOpenMpi ? "pmix" : "pmi2";
    if (mpi.plugin.empty() || offers(needed)) continue;
    judgement.Add(Severity::kWarning, "Slurm",
                  fmt::format("srun offers {}; ranks of {} find each other by {}",
                              cluster.slurm_mpis.empty()
                                  ? "nothing"
                                  : fmt::format("{}", fmt::join(cluster.slurm_mpis, ", ")),
                              NameOf(mpi.id), needed),
                  fmt::format("install Slurm's plug-in for {}, or start ranks by mpirun within an "
                              "allocation",
                              needed));
  }
}

void JudgeNetworks(Judgement& judgement) {
  const Probe::Cluster& cluster = *judgement.probe.cluster;
  const Probe::Network* best = BestNetwork(cluster);
  if (best == nullptr) {
    judgement.Add(Severity::kNote, "network",
                  "none but the loopback: ranks of other machines are out of reach",
                  "docker run --network host ..., or connect the machine");
    return;
  }
  if (cluster.networks.size() == 1) return;
  std::vector<std::string> others;
  for (const Probe::Network& network : cluster.networks) {
    if (&network != best) others.push_back(network.interface);
  }
  judgement.Add(Severity::kNote, "network",
                fmt::format("ranks of several machines would also try {}", fmt::join(others, ", ")),
                fmt::format("mpirun --mca btl_tcp_if_include {} ...", best->subnet));
}

// Ranks of one machine hand their messages over in /dev/shm: some 20 MB each.
void JudgeSharedMemory(Judgement& judgement) {
  constexpr int64_t kEach = int64_t{32} << 20;
  const Probe& probe = judgement.probe;
  const int64_t ranks = std::max<int64_t>(probe.cluster->ranks, 2);
  const int64_t needed = ranks * kEach;
  if (probe.memory.shared_bytes == 0 || probe.memory.shared_bytes >= needed) return;
  judgement.Add(Severity::kWarning, "/dev/shm",
                fmt::format("it has {}; {} ranks hand their messages over in it, {} each",
                            FormatBytes(probe.memory.shared_bytes), ranks, FormatBytes(kEach)),
                probe.system.container == "kubernetes"
                    ? "a volume emptyDir with medium: Memory at /dev/shm"
                    : "docker run --shm-size=1g ...");
}

void JudgeCopies(Judgement& judgement) {
  const Probe::Cluster& cluster = *judgement.probe.cluster;
  constexpr char kTwice[] = "long messages between ranks of one machine are copied twice";
  if (cluster.reads_process == false) {
    judgement.Add(Severity::kNote, "process_vm_readv",
                  fmt::format("the system does not allow it: {}", kTwice),
                  "docker run --cap-add SYS_PTRACE ...");
  } else if (cluster.ptrace.value_or(0) > 0) {
    judgement.Add(Severity::kNote, "ptrace",
                  fmt::format("kernel.yama.ptrace_scope is {}: {}", *cluster.ptrace, kTwice),
                  "sudo sysctl kernel.yama.ptrace_scope=0");
  }
}

void JudgeCores(Judgement& judgement) {
  const Probe& probe = judgement.probe;
  const int64_t ranks = probe.cluster->ranks, threads = probe.threads.used;
  if (ranks <= threads) return;
  judgement.Add(Severity::kWarning, "cores",
                fmt::format("{} ranks share {}: they wait for each other to run", ranks,
                            FormatCountOf(threads, "CPU")),
                fmt::format("--devices {}", threads));
}

}  // namespace

const Probe::Network* BestNetwork(const Probe::Cluster& cluster) {
  const Probe::Network* best = nullptr;
  for (const Probe::Network& network : cluster.networks) {
    if (network.of_containers) continue;
    if (best == nullptr || network.megabit_per_s > best->megabit_per_s) best = &network;
  }
  return best;
}

void JudgeCluster(Judgement& judgement) {
  if (!judgement.probe.cluster) return;
  JudgeStart(judgement);
  JudgeMpis(judgement);
  JudgeSlurm(judgement);
  JudgeNetworks(judgement);
  JudgeSharedMemory(judgement);
  JudgeCopies(judgement);
  JudgeCores(judgement);
}

}  // namespace ridge
