// Launcher: what started this process as one rank of a job, by its environment variables.
//
// The trap: an MPI that does not understand its launcher finds a world of one, so N ranks become N
// trainings of their own in one run folder.  So the launcher's number is compared with the MPI's.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ridge/core/status.h"
#include "ridge/dist/mpi_plugin.h"

namespace ridge {

struct Launcher {
  std::string name;  // "mpirun of Open MPI", "srun --mpi=pmix"
  Mpi mpi = Mpi::kOpenMpi;
  int64_t size = 0;  // ranks that it started; 0: it does not say
};

// Of the environment, as getenv.
using Variables = std::function<const char*(const char* name)>;

// nullopt: nobody, this process is alone.  Fails with kInvalidArgument for a number that is none,
// and where Slurm started several tasks that cannot find each other.
Result<std::optional<Launcher>> DetectLauncher(const Variables& variable);

// Fails with kDevice when `library` ("MPICH 4.0.2") joined a world of another size than the
// launcher's.
Status CheckWorldSize(const Launcher& launcher, const std::string& library, int64_t size);

}  // namespace ridge
