#include "ridge/dist/launcher.h"

#include <gtest/gtest.h>

#include <map>

namespace ridge {
namespace {

using Environment = std::map<std::string, std::string>;

Result<std::optional<Launcher>> Detect(const Environment& variables) {
  return DetectLauncher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// "NAME: MPI, SIZE", "alone", or the error.
std::string Seen(const Environment& variables) {
  const Result<std::optional<Launcher>> found = Detect(variables);
  if (!found.ok()) return found.status().message();
  if (!*found) return "alone";
  return (*found)->name + ": " + MpiName((*found)->mpi) + ", " + std::to_string((*found)->size);
}

TEST(LauncherTest, EachLauncherIsKnownByItsOwnVariables) {
  EXPECT_EQ(Seen({}), "alone");
  EXPECT_EQ(Seen({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}}),
            "mpirun of Open MPI: Open MPI, 4");
  EXPECT_EQ(Seen({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"MPI_LOCALNRANKS", "3"}}),
            "mpirun of MPICH: MPICH, 3");
  EXPECT_EQ(Seen({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"SLURM_STEP_ID", "0"}}),
            "srun --mpi=pmi2: MPICH, 2");
  EXPECT_EQ(Seen({{"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}),
            "srun --mpi=pmix: Open MPI, 8");
  EXPECT_EQ(Seen({{"PMIX_RANK", "0"}}), "prterun: Open MPI, 0");
}

// Slurm starts one of MPICH's daemons on each node; the ranks are those of PMI.
TEST(LauncherTest, AnMpirunInsideOfSlurmIsTheLauncher) {
  const Environment slurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  Environment hydra = slurm, open_mpi = slurm;
  hydra.insert({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALNRANKS", "4"}});
  EXPECT_EQ(Seen(hydra), "mpirun of MPICH: MPICH, 8");
  open_mpi.insert({{"OMPI_COMM_WORLD_SIZE", "8"}, {"PMIX_RANK", "5"}});
  EXPECT_EQ(Seen(open_mpi), "mpirun of Open MPI: Open MPI, 8");
}

TEST(LauncherTest, OneTaskOfSlurmIsAlone) {
  EXPECT_EQ(Seen({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), "alone");
  EXPECT_EQ(Seen({{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}), "alone");  // the job's script
}

TEST(LauncherTest, SeveralTasksWithoutAnMpiAreRefused) {
  const auto found = Detect({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_EQ(found.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(found.status().message(),
            "srun started 4 tasks that cannot find each other: each would be a training of its "
            "own. hint: srun --mpi=pmix with Open MPI, srun --mpi=pmi2 with MPICH");
}

TEST(LauncherTest, ANumberThatIsNoneIsNamed) {
  EXPECT_EQ(Seen({{"OMPI_COMM_WORLD_SIZE", "two"}}),
            "OMPI_COMM_WORLD_SIZE is 'two'; it must be a number of ranks from 1");
  EXPECT_EQ(Seen({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}),
            "PMI_SIZE is '0'; it must be a number of ranks from 1");
  EXPECT_EQ(Seen({{"SLURM_STEP_NUM_TASKS", "2 "}}),
            "SLURM_STEP_NUM_TASKS is '2 '; it must be a number of ranks from 1");
}

TEST(LauncherTest, WorldsOfOneAreRefused) {
  const Launcher open_mpi = {"mpirun of Open MPI", Mpi::kOpenMpi, 2};
  EXPECT_TRUE(CheckWorldSize(open_mpi, "Open MPI 4.1.4", 2).ok());
  const Status other = CheckWorldSize(open_mpi, "MPICH 4.0.2", 1);
  EXPECT_EQ(other.code(), ErrorCode::kDevice);
  EXPECT_EQ(other.message(),
            "mpirun of Open MPI started 2 ranks; MPICH 4.0.2 joined a world of 1: each would be a "
            "training of its own. hint: unset RIDGE_MPI, which names the plug-in of another MPI "
            "than Open MPI");
  EXPECT_EQ(CheckWorldSize(open_mpi, "Open MPI 5.0.8", 1).message(),
            "mpirun of Open MPI started 2 ranks; Open MPI 5.0.8 joined a world of 1: each would "
            "be a training of its own. hint: mpirun and library must be of one Open MPI; `ridge "
            "doctor cluster` shows both");
}

TEST(LauncherTest, ALauncherThatDoesNotSayItsSizeIsBelieved) {
  EXPECT_TRUE(CheckWorldSize({"prterun", Mpi::kOpenMpi, 0}, "Open MPI 5.0.8", 3).ok());
}

}  // namespace
}  // namespace ridge
