#include "ridge/dist/mpi_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace ridge {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Places(const std::string& file) {
  if (const char* given = std::getenv("RIDGE_MPI")) return {given};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  return {program.parent_path() / "lib/ridge" / file, program / file};
}

// `found` is the plug-in's file; "" where there is none.
Status CannotLoad(Mpi mpi, const std::string& found) {
  const std::string reason = ::dlerror();
  if (!found.empty()) {
    return Status(ErrorCode::kDevice, fmt::format("{} cannot be loaded: {}. hint: {}", found,
                                                  reason, MpiRemedy(mpi, /*plugin=*/false)));
  }
  return Status(ErrorCode::kDevice,
                fmt::format("{} is reached by a plug-in, {}, which is not there. hint: {}",
                            MpiName(mpi), MpiPluginFile(mpi), MpiRemedy(mpi, /*plugin=*/true)));
}

}  // namespace

const char* MpiName(Mpi mpi) { return mpi == Mpi::kOpenMpi ? "Open MPI" : "MPICH"; }

const char* MpiId(Mpi mpi) { return mpi == Mpi::kOpenMpi ? "openmpi" : "mpich"; }

std::string MpiPluginFile(Mpi mpi) { return fmt::format("libridge_mpi_{}.so", MpiId(mpi)); }

std::string MpiRemedy(Mpi mpi, bool plugin) {
  const char* program = mpi == Mpi::kOpenMpi ? "openmpi-bin" : "mpich";
  if (!plugin) return fmt::format("apt-get install {}", program);
  return fmt::format("apt-get install {} lib{}-dev, then `make build`", program, MpiId(mpi));
}

std::string FindMpiPlugin(Mpi mpi) {
  std::error_code ignored;
  for (const std::string& place : Places(MpiPluginFile(mpi))) {
    if (fs::exists(place, ignored)) return place;
  }
  return "";
}

Result<const RidgeMpiApi*> LoadMpiPlugin(Mpi mpi) {
  const std::string found = FindMpiPlugin(mpi);
  const std::string place = found.empty() ? MpiPluginFile(mpi) : found;
  // Stays open: its functions are used as long as the program runs.
  void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return CannotLoad(mpi, found);
  const auto entry = reinterpret_cast<RidgeMpiEntry>(::dlsym(library, "ridge_mpi_api"));
  if (entry != nullptr && entry()->abi == RIDGE_MPI_ABI) return entry();
  return Status(
      ErrorCode::kDevice,
      fmt::format("{} has interface {}; this program has {}. hint: build it again: `make build`",
                  place, entry == nullptr ? 0 : entry()->abi, RIDGE_MPI_ABI));
}

// "Open MPI v4.1.4, package: Debian OpenMPI, ..." or "MPICH Version:\t4.0.2\nMPICH Release ...".
std::string MpiLibraryName(std::string_view version) {
  std::string name(version.substr(0, version.find_first_of(",\n")));
  for (const std::string_view extra : {"Version:", "v"}) {
    const size_t at = name.find(" " + std::string(extra));
    if (at != std::string::npos) name.erase(at + 1, extra.size());
  }
  std::replace(name.begin(), name.end(), '\t', ' ');
  const auto both_blank = [](char a, char b) { return a == ' ' && b == ' '; };
  name.erase(std::unique(name.begin(), name.end(), both_blank), name.end());
  return name;
}

}  // namespace ridge
