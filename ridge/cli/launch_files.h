// What starts the ranks of a training elsewhere: a batch script for Slurm, files for Kubernetes.
//
// Pure text.  Each runs the same command every time it is started, which goes on from the newest
// checkpoint.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/dist/mpi_plugin.h"

namespace ridge::cli {

struct LaunchJob {
  std::string name;                // "cnn-1": of letters, digits and '-'
  std::string program = "ridge";   // path where the job runs
  std::vector<std::string> words;  // behind the program: "train", ..., "--resume"
  std::string folder;              // the run's
  Mpi mpi = Mpi::kOpenMpi;
  int64_t devices = 1;
  int64_t devices_per_node = 1;
  int64_t cpus = 0;          // a device; 0: nobody said
  int64_t max_restarts = 3;  // after failures
  bool has_shares = false;   // one for each device, so fewer devices compute equal ones
  std::string image, claim;  // Kubernetes: the container, and the volume with data and runs

  int64_t nodes() const { return (devices + devices_per_node - 1) / devices_per_node; }
};

std::string SlurmScript(const LaunchJob& job);
std::string MpiJobYaml(const LaunchJob& job);
// A TrainingRuntime and the TrainJob that uses it.  REQUIRES: Open MPI, whose host files alone the
// published schema has.
std::string TrainJobYaml(const LaunchJob& job);

// A word of a command line for a shell.
std::string ShellWord(const std::string& word);
std::string ShellLine(const std::vector<std::string>& words);

}  // namespace ridge::cli
