#include "ridge/dist/mpirun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ridge/core/test_folder.h"
#include "ridge/core/threads.h"

namespace ridge {
namespace {

constexpr char kOpenMpi4[] = "mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n";
constexpr char kOpenRte[] = "mpirun.openmpi (OpenRTE) 4.1.4\n";
constexpr char kOpenMpi5[] = "mpirun (Open MPI) 5.0.8\n";
constexpr char kMpich4[] = "HYDRA build details:\n    Version:                   4.0.2\n";

// Programs are empty files; what they say of themselves is in `says_`.
class MpirunTest : public ::testing::Test {
 protected:
  void Program(const std::string& name, const std::string& says) {
    const std::string path = folder_.File(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << "";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    says_[path] = says;
  }
  // "NAME MPI VERSION" of each that is found below the folders.
  std::vector<std::string> Found(const std::string& folders) {
    std::vector<std::string> names;
    for (const Mpirun& one :
         FindMpiruns(folders, [this](const std::string& path) { return says_[path]; }))
      names.push_back(fmt::format("{} {} {}", one.path.substr(folder_.path().size() + 1),
                                  MpiName(one.mpi), one.version));
    return names;
  }
  std::string Folders(const std::vector<std::string>& names) {
    std::string folders;
    for (const std::string& name : names) folders += ":" + folder_.File(name);
    return folders;
  }

  TempFolder folder_;
  std::map<std::string, std::string> says_;
};

TEST_F(MpirunTest, DebiansNamesSayWhoseTheyAre) {
  Program("bin/mpirun.mpich", kMpich4);
  Program("bin/mpirun.openmpi", kOpenRte);
  Program("bin/mpirun", kOpenMpi4);
  EXPECT_THAT(Found(Folders({"bin"})), ::testing::ElementsAre("bin/mpirun.openmpi Open MPI 4.1.4",
                                                              "bin/mpirun.mpich MPICH 4.0.2"));
}

TEST_F(MpirunTest, APlainMpirunIsAskedAndTheFirstFolderWins) {
  Program("a/mpirun", kMpich4);
  Program("b/mpirun", kOpenMpi5);
  Program("b/mpiexec", kMpich4);
  EXPECT_THAT(Found(Folders({"none", "a", "b"})),
              ::testing::ElementsAre("b/mpirun Open MPI 5.0.8", "a/mpirun MPICH 4.0.2"));
  Program("c/mpirun", "something else");
  EXPECT_THAT(Found(Folders({"c"})), ::testing::IsEmpty());
  Program("c/mpirun.mpich", "");  // its name is enough
  EXPECT_THAT(Found(Folders({"c"})), ::testing::ElementsAre("c/mpirun.mpich MPICH "));
}

TEST_F(MpirunTest, TheFirstWithAPluginIsChosen) {
  const std::vector<Mpirun> both = {{Mpi::kOpenMpi, "/bin/mpirun.openmpi", "4.1.4"},
                                    {Mpi::kMpich, "/bin/mpirun.mpich", "4.0.2"}};
  const auto choose = [&](std::vector<Mpi> plugins, const std::vector<Mpirun>& found) {
    const auto has = [&](Mpi mpi) {
      return std::find(plugins.begin(), plugins.end(), mpi) != plugins.end();
    };
    const Result<Mpirun> chosen = ChooseMpirun(found, has, 2);
    return chosen.ok() ? chosen->path : chosen.status().message();
  };
  EXPECT_EQ(choose({Mpi::kOpenMpi, Mpi::kMpich}, both), "/bin/mpirun.openmpi");
  EXPECT_EQ(choose({Mpi::kMpich}, both), "/bin/mpirun.mpich");
  EXPECT_EQ(choose({}, {both[1]}),
            "--devices is 2: /bin/mpirun.mpich is here, its plug-in libridge_mpi_mpich.so is not. "
            "hint: apt-get install mpich libmpich-dev, then `make build`");
  EXPECT_EQ(choose({}, {}),
            "--devices is 2, and there is no mpirun to start them. hint: apt-get install "
            "openmpi-bin libopenmpi-dev, then `make build`");
  EXPECT_EQ(choose({Mpi::kMpich}, {}),
            "--devices is 2, and there is no mpirun to start them. hint: apt-get install mpich");
}

TEST_F(MpirunTest, NothingIsBoundAndMoreRanksThanCoresAreAllowed) {
  const auto command = [](Mpi mpi, const RankStart& start) {
    return fmt::format("{}",
                       fmt::join(MpirunWords({mpi, "mpirun", ""}, start, {"ridge", "a b"}), "|"));
  };
  EXPECT_EQ(command(Mpi::kOpenMpi, {.ranks = 2, .cores = 2}),
            "mpirun|-n|2|--quiet|--bind-to|none|ridge|a b");
  EXPECT_EQ(command(Mpi::kOpenMpi, {.ranks = 3, .cores = 2, .as_root = true}),
            "mpirun|-n|3|--quiet|--bind-to|none|--allow-run-as-root|--oversubscribe|ridge|a b");
  EXPECT_EQ(command(Mpi::kMpich, {.ranks = 3, .cores = 2, .as_root = true}),
            "mpirun|-n|3|-bind-to|none|ridge|a b");
}

// Two threads of one core are one place for Open MPI.
TEST_F(MpirunTest, SiblingsAreOneCore) {
  const std::vector<int> cpus = AllowedCpus(AllowedCores());
  EXPECT_EQ(PhysicalCores(folder_.path()), std::ssize(cpus));  // nothing is known
  for (const int cpu : cpus) {
    const std::string topology =
        fmt::format("{}/sys/devices/system/cpu/cpu{}/topology", folder_.path(), cpu);
    std::filesystem::create_directories(topology);
    std::ofstream(topology + "/core_id") << "0\n";
    std::ofstream(topology + "/physical_package_id") << "0\n";
  }
  EXPECT_EQ(PhysicalCores(folder_.path()), 1);
}

}  // namespace
}  // namespace ridge
