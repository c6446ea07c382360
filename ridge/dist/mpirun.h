// mpirun: the programs of an MPI that start ranks, and how this program replaces itself by one.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/dist/mpi_plugin.h"

namespace ridge {

struct Mpirun {
  Mpi mpi = Mpi::kOpenMpi;
  std::string path;     // "/usr/bin/mpirun.openmpi"
  std::string version;  // "4.1.4"; "" when it does not say
};

// The text that `PATH --version` prints.
using VersionOf = std::function<std::string(const std::string& path)>;
std::string AskVersion(const std::string& path);

// The first of each MPI in the folders of PATH, Open MPI first.  Debian names each; elsewhere
// `mpirun` is one of them, and says which.
std::vector<Mpirun> FindMpiruns(const std::string& folders, const VersionOf& version_of);

// The MPI and version that `mpirun --version` printed; false for another text.
bool ParseMpirunVersion(const std::string& text, Mpirun& mpirun);

// The first that has a plug-in; `has_plugin` is FindMpiPlugin's.  Fails with kDevice, and says what
// to install.
Result<Mpirun> ChooseMpirun(const std::vector<Mpirun>& found,
                            const std::function<bool(Mpi)>& has_plugin, int64_t ranks);

// The mpirun of this MPI, or of the first that can start ranks here; found in PATH.  Fails as
// ChooseMpirun.
Result<Mpirun> FindMpirun(std::optional<Mpi> mpi, int64_t ranks);

struct RankStart {
  int64_t ranks = 1;
  int64_t cores = 1;  // that have an own arithmetic unit: what Open MPI counts as places
  bool as_root = false;
};
// The words of a command that runs `program` as so many ranks on this machine.  Nothing binds them:
// each rank pins its own threads.
std::vector<std::string> MpirunWords(const Mpirun& mpirun, const RankStart& start,
                                     const std::vector<std::string>& program);

// Where this program's file is.  Fails with kUnavailable.
Result<std::string> OwnProgram();

// Cores of the machine among the CPUs that this process may use.
int64_t PhysicalCores(const std::string& system = "");

// Replaces this process by so many ranks of the same command.  Returns only when that fails:
// kDevice as ChooseMpirun, kUnavailable when mpirun cannot be started.
Status BecomeRanks(int64_t ranks);

}  // namespace ridge
