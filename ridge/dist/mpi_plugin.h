// The plug-ins for MPI: libridge_mpi_openmpi.so and libridge_mpi_mpich.so (plugins/mpi).
//
// Looked for at $RIDGE_MPI (a plug-in's path), then in ../lib/ridge and the folder of the program,
// then where the system looks for libraries.
#pragma once
#include <string>
#include <string_view>

#include "ridge/core/status.h"
#include "ridge/dist/mpi_abi.h"

namespace ridge {

enum class Mpi { kOpenMpi, kMpich };
inline constexpr Mpi kAllMpis[] = {Mpi::kOpenMpi, Mpi::kMpich};  // the first is preferred

const char* MpiName(Mpi mpi);        // "Open MPI"
const char* MpiId(Mpi mpi);          // "openmpi", as in the plug-in's name
std::string MpiPluginFile(Mpi mpi);  // "libridge_mpi_openmpi.so"

// What installs its mpirun; with `plugin` the plug-in too.
std::string MpiRemedy(Mpi mpi, bool plugin);

// The path of the plug-in's file; "" where there is none.  Does not open it.
std::string FindMpiPlugin(Mpi mpi);

// Loads the plug-in, and the MPI's library with it.  Fails with kDevice where there is none, where
// the library is missing, and for one of another interface.
Result<const RidgeMpiApi*> LoadMpiPlugin(Mpi mpi);

// "Open MPI 4.1.4" of what MPI_Get_library_version says.
std::string MpiLibraryName(std::string_view version);

}  // namespace ridge
