// Only a launcher's own variables count: SLURM_* alone does not say which MPI is meant.
//
//   mpirun of Open MPI                       OMPI_COMM_WORLD_SIZE
//   mpirun of MPICH, srun --mpi=pmi2         PMI_RANK, PMI_SIZE           MPICH
//   srun --mpi=pmix, prterun                 PMIX_RANK                    Open MPI
//   srun --mpi=none                          SLURM_STEP_NUM_TASKS         nothing: refused
#include "ridge/dist/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace ridge {
namespace {

// The number in a variable; 0 where it is not set.
Result<int64_t> NumberIn(const Variables& variable, const char* name) {
  const char* given = variable(name);
  if (given == nullptr) return int64_t{0};
  const std::string_view text = given;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 1) return number;
  return InvalidArgument(
      fmt::format("{} is '{}'; it must be a number of ranks from 1", name, text));
}

Result<std::optional<Launcher>> Started(const char* name, Mpi mpi, const Variables& variable,
                                        const char* size_name) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t size, NumberIn(variable, size_name));
  return {Launcher{name, mpi, size}};
}

}  // namespace

Result<std::optional<Launcher>> DetectLauncher(const Variables& variable) {
  const auto is_set = [&](const char* name) { return variable(name) != nullptr; };
  if (is_set("OMPI_COMM_WORLD_SIZE"))
    return Started("mpirun of Open MPI", Mpi::kOpenMpi, variable, "OMPI_COMM_WORLD_SIZE");
  if (is_set("PMI_RANK") && is_set("PMI_SIZE")) {
    const bool slurm = is_set("SLURM_STEP_ID") && !is_set("MPI_LOCALNRANKS");
    return Started(slurm ? "srun --mpi=pmi2" : "mpirun of MPICH", Mpi::kMpich, variable,
                   "PMI_SIZE");
  }
  if (is_set("PMIX_RANK")) {
    return Started(is_set("SLURM_STEP_ID") ? "srun --mpi=pmix" : "prterun", Mpi::kOpenMpi, variable,
                   "SLURM_STEP_NUM_TASKS");
  }
  RIDGE_ASSIGN_OR_RETURN(const int64_t tasks, NumberIn(variable, "SLURM_STEP_NUM_TASKS"));
  if (tasks <= 1) return {std::nullopt};
  return InvalidArgument(
      fmt::format("srun started {} tasks that cannot find each other: each would be a training of "
                  "its own. hint: srun --mpi=pmix with Open MPI, srun --mpi=pmi2 with MPICH",
                  tasks));
}

Status CheckWorldSize(const Launcher& launcher, const std::string& library, int64_t size) {
  if (launcher.size == 0 || size == launcher.size) return Status();
  const std::string own = MpiName(launcher.mpi);
  const std::string hint =
      library.starts_with(own)
          ? fmt::format("mpirun and library must be of one {}; `ridge doctor cluster` shows both",
                        own)
          : fmt::format("unset RIDGE_MPI, which names the plug-in of another MPI than {}", own);
  return Status(ErrorCode::kDevice,
                fmt::format("{} started {} ranks; {} joined a world of {}: each would be a "
                            "training of its own. hint: {}",
                            launcher.name, launcher.size, library, size, hint));
}

}  // namespace ridge
