// Finds a Probe: reads /proc, /sys, library folders and the folders of Python's packages.
//
// A child process asks libcuda.  The programs that are started are nvidia-smi, where there is a
// driver, and for a cluster mpirun and srun, which say their version; Python is not.
#pragma once
#include <functional>
#include <string>

#include "ridge/dist/mpi_plugin.h"
#include "ridge/doctor/probe.h"

namespace ridge {

// Where to look: for tests another root folder, environment and nvidia-smi.
struct ProbePlace {
  std::string root;                                              // before every absolute path
  std::function<const char*(const char*)> variable;              // of the environment, as getenv
  std::function<std::string(const std::string& words)> command;  // output of "nvidia-smi ..."
  std::function<Probe::Mpi(Mpi mpi)> plugin = nullptr;      // with all but launcher and version
  std::function<Probe::CudaAnswer()> driver = nullptr;      // asked where there is a trace of one
  std::function<Result<Probe::Library>()> nvrtc = nullptr;  // opened where the driver is asked
};
ProbePlace ThisMachine();

Probe FindProbe(const ProbePlace& place);

// What so many ranks need; 0: any number.  No part of FindProbe: it starts more programs.
Probe::Cluster FindCluster(const ProbePlace& place, int64_t ranks);

// The parts of it that stand in files of their own.
Probe::Cuda FindCuda(const ProbePlace& place);
Probe::Rocm FindRocm(const ProbePlace& place);
Probe::Python FindPython(const ProbePlace& place);

// Opens libcuda as programs of this environment do, and asks it for its GPUs; 10 s at most.
Probe::CudaAnswer AskDriver();

// The NVRTC that a run on a GPU opens; else the error that ends such a run.
Result<Probe::Library> OpenNvrtc();

// What several of them need.  Paths are those within the root.
namespace probing {

bool Exists(const ProbePlace& place, const std::string& path);
// At most 64 KiB; "" where it can't be read.
std::string Text(const ProbePlace& place, const std::string& path);
std::string FirstLine(const ProbePlace& place, const std::string& path);
// Full paths in `folder` of the names that start and end so, in order; none without the folder.
std::vector<std::string> Names(const ProbePlace& place, const std::string& folder,
                               const std::string& prefix, const std::string& suffix = "");
std::string Variable(const ProbePlace& place, const char* name);  // "" when it is not set
int64_t DisplayControllers(const ProbePlace& place, const std::string& vendor);  // "0x10de"

}  // namespace probing

}  // namespace ridge
