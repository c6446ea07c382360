#include "ridge/dist/mpi_plugin.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

class MpiPluginTest : public ::testing::Test {
 protected:
  ~MpiPluginTest() override { unsetenv("RIDGE_MPI"); }

  void Name(const std::string& path) { setenv("RIDGE_MPI", path.c_str(), /*replace=*/1); }

  TempFolder folder_;
};

TEST_F(MpiPluginTest, LibrariesAreNamedShortly) {
  EXPECT_EQ(MpiLibraryName("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"),
            "Open MPI 4.1.4");
  EXPECT_EQ(MpiLibraryName("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr 7"), "MPICH 4.0.2");
  EXPECT_EQ(MpiLibraryName("MPICH Version:      4.2.1"), "MPICH 4.2.1");
}

TEST_F(MpiPluginTest, AMissingPluginSaysWhatBringsIt) {
  Name("/no/such.so");
  EXPECT_EQ(FindMpiPlugin(Mpi::kMpich), "");
  const Status status = LoadMpiPlugin(Mpi::kMpich).status();
  EXPECT_EQ(status.code(), ErrorCode::kDevice);
  EXPECT_EQ(
      status.message(),
      "MPICH is reached by a plug-in, libridge_mpi_mpich.so, which is not there. hint: apt-get "
      "install mpich libmpich-dev, then `make build`");
}

TEST_F(MpiPluginTest, ALibraryThatIsNoPluginIsNamed) {
  Dl_info libc;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&gnu_get_libc_version), &libc), 0);
  Name(libc.dli_fname);
  EXPECT_EQ(LoadMpiPlugin(Mpi::kOpenMpi).status().message(),
            libc.dli_fname + std::string(" has interface 0; this program has 2. hint: build it "
                                         "again: `make build`"));
}

TEST_F(MpiPluginTest, TheNamedFileIsTheOneThatIsFound) {
  Name(folder_.File("mine.so"));
  EXPECT_EQ(FindMpiPlugin(Mpi::kOpenMpi), "");
  std::ofstream(folder_.File("mine.so")) << "no library";
  EXPECT_EQ(FindMpiPlugin(Mpi::kOpenMpi), folder_.File("mine.so"));
  const std::string mine = folder_.File("mine.so");
  EXPECT_EQ(
      LoadMpiPlugin(Mpi::kOpenMpi).status().message(),
      mine + " cannot be loaded: " + mine + ": file too short. hint: apt-get install openmpi-bin");
}

}  // namespace
}  // namespace ridge
