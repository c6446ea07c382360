// Probe: what a machine is found to be, as a value.
//
// `ridge doctor --json` prints one, `ridge doctor --probe FILE` reads it: a machine can be judged
// on another one (problems.h).  Nothing here is judged and nothing is measured.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// An empty text stands for "not known" or "not there" and is null in JSON.
struct Probe {
  struct System {
    std::string name;          // "Debian GNU/Linux 12 (bookworm)"
    std::string distribution;  // "debian"
    std::string machine;       // "x86_64"
    std::string kernel;
    std::string container;  // "docker", "podman", "kubernetes", "container"
    std::string jetson;     // "R36 (release), REVISION: 4.0": the board's Linux
    bool wsl = false;
  };
  struct Cpu {
    std::string name = "unknown";
    std::vector<std::string> isa;  // of those that kernels care for
  };
  struct Threads {
    int64_t used = 1;  // by ridge
    std::string because;
    int64_t online = 1;                       // cores of the machine
    int64_t affinity = 1;                     // cores in the affinity mask
    std::optional<int64_t> omp_num_threads;   // none: not set
    std::optional<int64_t> omp_thread_limit;  // none: not set
    std::vector<std::string> settings;        // "MKL_NUM_THREADS=4", of OpenMP and libraries
  };
  struct Memory {
    int64_t total_bytes = 0;
    int64_t available_bytes = 0;  // by the system
    int64_t usable_bytes = 0;     // and the container's limit
    int64_t shared_bytes = 0;     // of /dev/shm; 0: not known
  };
  struct OneDnn {
    std::string version, isa;
  };
  struct Gpu {
    std::string name;
    std::string architecture;  // "8.0", "gfx90a"
    int64_t memory_bytes = 0;
    bool mig = false;                        // its mode is on
    std::vector<std::string> mig_instances;  // "MIG 1g.10gb"
  };
  // A file of a library with the version in its name, or a toolkit's folder.
  struct Library {
    std::string version, path;
  };
  // What cuDNN's description of a GPU has (plugins/cudnn/devices/*.json), as the driver answers. 0:
  // it does not know.  "sm" is a multiprocessor.
  struct CudaProperties {
    int64_t device_id = 0, pci_device_id = 0, driver_version = 0, tcc_driver = 0;
    std::string name;
    int64_t architecture = 0;  // 900 is 9.0
    int64_t sms = 0, sm_clock_khz = 0, memory_clock_khz = 0, memory_bytes = 0, l2_bytes = 0;
    std::vector<int64_t> most_block, most_grid;  // x, y, z
    int64_t warp_threads = 0, most_threads_of_block = 0, most_threads_of_sm = 0;
    int64_t most_blocks_of_sm = 0, registers_of_block = 0, registers_of_sm = 0;
    int64_t shared_bytes_of_block = 0, most_shared_bytes_of_block = 0;
    int64_t reserved_shared_bytes_of_block = 0, cooperative_launch = 0;
  };
  // A GPU as programs see it.
  struct CudaDevice {
    std::string name;
    std::string architecture;  // "9.0"
    int64_t memory_bytes = 0;
    std::string uuid;  // "GPU-6b2f0c4e-..."
    CudaProperties properties = {};
  };
  // What libcuda answers a program with this environment.
  struct CudaAnswer {
    std::string library;              // its path
    std::string version;              // of CUDA, the newest that it runs: "13.0"
    std::string failure;              // why there are no devices
    std::vector<CudaDevice> devices;  // those that CUDA_VISIBLE_DEVICES leaves, by ordinal
  };
  struct Cuda {
    std::string driver;              // of the kernel's module: "550.54.15"
    bool usable = false;             // by this version of ridge
    int64_t pci_gpus = 0;            // NVIDIA's display controllers on the bus
    bool device_files = false;       // /dev/nvidiactl, /dev/dxg of WSL, /dev/nvhost-gpu of Jetson
    std::vector<Library> libraries;  // libcuda; the loader takes the first
    std::string library_path;        // LD_LIBRARY_PATH
    std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
    std::vector<Gpu> gpus;
    std::vector<Library> toolkits, cublaslt, cudnn, nccl;  // in the order of the loader's search
    std::vector<Library> nvrtc;        // the one that a run opens; none: see nvrtc_failure
    std::string nvrtc_failure;         // "": it is there, or nothing was opened
    std::optional<CudaAnswer> answer;  // none: there is nothing to ask
  };
  struct Rocm {
    std::string version;
    int64_t pci_gpus = 0;
    bool device_file = false, device_access = false;  // /dev/kfd
    std::string gfx_override;                         // HSA_OVERRIDE_GFX_VERSION
    std::vector<Gpu> gpus;
  };
  struct Package {
    std::string name, version;
    std::string cuda, rocm;  // that a framework was built with
  };
  struct Python {
    std::string version, folder;  // of its packages
    std::vector<Package> packages;
  };
  // An MPI: its mpirun, its plug-in of ridge, and the library that the plug-in loads.
  struct Mpi {
    std::string id;        // "openmpi", "mpich"
    std::string launcher;  // "/usr/bin/mpirun.openmpi"
    std::string version;   // of the launcher
    std::string plugin;    // its path
    std::string library;   // "Open MPI 4.1.4", by the library itself
    std::string failure;   // why the plug-in cannot be loaded
  };
  // Of IPv4, other than the loopback.
  struct Network {
    std::string interface;       // "eth0"
    std::string subnet;          // "10.0.0.0/24"
    int64_t megabit_per_s = 0;   // 0: not known
    bool of_containers = false;  // a bridge between containers of this machine
  };
  // What ranks need.
  struct Cluster {
    std::vector<Mpi> mpis;                // those that a launcher or a plug-in was found of
    std::string slurm;                    // version
    std::vector<std::string> slurm_mpis;  // of `srun --mpi=list`: "pmix", "pmi2", "none"
    std::string started_by;               // the launcher of this process
    std::string started_mpi;              // the MPI that it needs: "openmpi"
    std::string start_failure;            // why it is none
    std::string chosen_plugin;            // RIDGE_MPI
    std::vector<Network> networks;
    int64_t ranks = 0;                  // that are asked about; 0: none
    int64_t cores = 1;                  // with own arithmetic units
    std::optional<int64_t> ptrace;      // kernel.yama.ptrace_scope
    std::optional<bool> reads_process;  // process_vm_readv is allowed
  };

  std::string ridge;
  System system;
  Cpu cpu;
  Threads threads;
  Memory memory;
  OneDnn onednn;
  Cuda cuda;
  Rocm rocm;
  Python python;
  std::optional<Cluster> cluster;  // none: not looked for
};

nlohmann::ordered_json ProbeToJson(const Probe& probe);

// Missing keys keep their defaults, unknown ones are ignored.  Fails with kInvalidData; `where` is
// the file's name.
Result<Probe> ParseProbe(const std::string& text, const std::string& where);

}  // namespace ridge
