// A machine of files: what a probe finds in /proc, /sys, libraries and packages.
#include "ridge/doctor/find_probe.h"

#include <gtest/gtest.h>

#include <map>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

class FindProbeTest : public ::testing::Test {
 protected:
  void File(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path() + path).parent_path());
    std::ofstream(folder_.path() + path) << text;
  }
  void Link(const std::string& path, const std::string& to) {
    std::filesystem::create_directory_symlink(folder_.path() + to, folder_.path() + path);
  }
  ProbePlace Place() {
    return {folder_.path(),
            [this](const char* name) -> const char* {
              const auto found = variables_.find(name);
              return found == variables_.end() ? nullptr : found->second.c_str();
            },
            [this](const std::string& words) {
              for (const auto& [part, text] : outputs_) {
                if (words.find(part) != std::string::npos) return text;
              }
              return std::string();
            }};
  }
  Probe Find() { return FindProbe(Place()); }

  TempFolder folder_;
  std::map<std::string, std::string> variables_, outputs_;
};

TEST_F(FindProbeTest, AnEmptyMachineHasNothing) {
  const Probe probe = Find();
  EXPECT_EQ(probe.system.container, "");
  EXPECT_EQ(probe.cpu.name, "unknown");
  EXPECT_EQ(probe.cuda.driver, "");
  EXPECT_EQ(probe.cuda.pci_gpus, 0);
  EXPECT_TRUE(probe.cuda.cudnn.empty());
  EXPECT_FALSE(probe.cuda.visible_devices);
  EXPECT_EQ(probe.python.version, "");
}

TEST_F(FindProbeTest, SystemContainerAndBoard) {
  File("/etc/os-release", "PRETTY_NAME=\"Ubuntu 22.04.4 LTS\"\nID=ubuntu\n");
  File("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  File("/etc/nv_tegra_release", "# R36 (release), REVISION: 3.0, GCID: 36923193, BOARD: generic\n");
  File("/.dockerenv", "");
  const Probe::System system = Find().system;
  EXPECT_EQ(system.name, "Ubuntu 22.04.4 LTS");
  EXPECT_EQ(system.distribution, "ubuntu");
  EXPECT_EQ(system.container, "docker");
  EXPECT_EQ(system.jetson, "R36 (release), REVISION: 3.0");
  EXPECT_TRUE(system.wsl);
}

TEST_F(FindProbeTest, NvidiaDriverGpusAndInstances) {
  File("/proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n");
  File("/sys/bus/pci/devices/0000:00:04.0/class", "0x030200\n");
  File("/sys/bus/pci/devices/0000:00:04.0/vendor", "0x10de\n");
  File("/sys/bus/pci/devices/0000:00:05.0/class", "0x020000\n");
  File("/sys/bus/pci/devices/0000:00:05.0/vendor", "0x10de\n");
  File("/dev/nvidiactl", "");
  outputs_["--query-gpu=name"] = "NVIDIA H100 80GB HBM3, 9.0, 81559, Enabled\n";
  outputs_["-L"] =
      "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
      "  MIG 1g.10gb     Device  0: (UUID: MIG-2)\n";
  const Probe::Cuda cuda = Find().cuda;
  EXPECT_EQ(cuda.driver, "550.54.15");
  EXPECT_EQ(cuda.pci_gpus, 1);
  ASSERT_EQ(cuda.gpus.size(), 1u);
  EXPECT_EQ(cuda.gpus[0].architecture, "9.0");
  EXPECT_EQ(cuda.gpus[0].memory_bytes, int64_t{81559} << 20);
  EXPECT_EQ(cuda.gpus[0].mig_instances, std::vector<std::string>{"MIG 1g.10gb"});
}

TEST_F(FindProbeTest, TheDriverOfWindowsIsThatOfNvidiaSmi) {
  File("/dev/dxg", "");
  File("/usr/lib/wsl/lib/libcuda.so.1.1", "");
  outputs_["driver_version"] = "552.22\n";
  EXPECT_EQ(Find().cuda.driver, "552.22");
}

TEST_F(FindProbeTest, LibrariesInTheLoadersOrderAndLinksOnce) {
  File("/opt/cudnn/libcudnn.so.8.9.7", "");
  File("/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0", "");
  File("/usr/lib/x86_64-linux-gnu/libcudnn.so.9", "");
  File("/usr/local/cuda-12.4/version.json", R"({"cuda": {"version": "12.4.1"}})");
  File("/usr/local/cuda-11.8/version.json", "damaged");
  Link("/usr/local/cuda", "/usr/local/cuda-12.4");
  variables_["LD_LIBRARY_PATH"] = "/opt/cudnn/:relative";
  const Probe::Cuda cuda = Find().cuda;
  ASSERT_EQ(cuda.cudnn.size(), 2u);
  EXPECT_EQ(cuda.cudnn[0].version, "8.9.7");
  EXPECT_EQ(cuda.cudnn[1].path, "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0");
  ASSERT_EQ(cuda.toolkits.size(), 1u);
  EXPECT_EQ(cuda.toolkits[0].version, "12.4.1");
}

TEST_F(FindProbeTest, AmdGpusAreNamedByTheKernelsNumber) {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  File(nodes + "0/properties", "cpu_cores_count 16\ngfx_target_version 0\n");
  File(nodes + "1/properties", "cpu_cores_count 0\ngfx_target_version 90010\n");
  File(nodes + "1/name", "aldebaran\n");
  File(nodes + "1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68702699520\n");
  File(nodes + "2/properties", "gfx_target_version 110000\n");
  File("/opt/rocm/.info/version", "6.2.4-139\n");
  const Probe::Rocm rocm = Find().rocm;
  ASSERT_EQ(rocm.gpus.size(), 2u);
  EXPECT_EQ(rocm.gpus[0].architecture, "gfx90a");
  EXPECT_EQ(rocm.gpus[0].memory_bytes, 68702699520);
  EXPECT_EQ(rocm.gpus[1].architecture, "gfx1100");
  EXPECT_EQ(rocm.version, "6.2.4-139");
}

TEST_F(FindProbeTest, PackagesOfTheEnvironmentAndWhatTorchWasBuiltWith) {
  const std::string packages = "/opt/venv/lib/python3.11/site-packages/";
  variables_["VIRTUAL_ENV"] = "/opt/venv";
  File(packages + "torch-2.5.1.dist-info/METADATA", "");
  File(packages + "torch/version.py",
       "__version__ = '2.5.1+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\n"
       "hip: Optional[str] = None\n");
  File(packages + "nvidia_cudnn_cu12-9.1.0.70.dist-info/METADATA", "");
  File(packages + "requests-2.32.0.dist-info/METADATA", "");
  File("/usr/lib/python3/dist-packages/jax-0.4.1.dist-info/METADATA", "");
  const Probe::Python python = Find().python;
  EXPECT_EQ(python.version, "3.11");
  ASSERT_EQ(python.packages.size(), 2u);
  EXPECT_EQ(python.packages[0].name, "nvidia-cudnn-cu12");
  EXPECT_EQ(python.packages[1].version, "2.5.1+cu124");
  EXPECT_EQ(python.packages[1].cuda, "12.4");
  EXPECT_EQ(python.packages[1].rocm, "");
}

TEST_F(FindProbeTest, ClusterOfMpisSlurmAndNetworks) {
  for (const char* name : {"mpirun.openmpi", "mpirun.mpich", "srun"}) {
    File(std::string("/usr/bin/") + name, "");
    std::filesystem::permissions(folder_.path() + "/usr/bin/" + name,
                                 std::filesystem::perms::owner_all);
  }
  variables_ = {{"PATH", "/none:/usr/bin"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  outputs_["mpirun.openmpi' --version"] = "mpirun.openmpi (OpenRTE) 4.1.4\n";
  outputs_["mpirun.mpich' --version"] = "HYDRA build details:\n    Version:      4.0.2\n";
  outputs_["srun --version"] = "slurm 22.05.8\n";
  outputs_["srun --mpi=list"] =
      "MPI plugin types are...\n\tnone\n\tpmix\n\tpmi2\nspecific pmix plugin versions available: "
      "pmix_v4\n";
  File("/proc/net/route",
       "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
       "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n"
       "eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
       "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\n");
  File("/sys/class/net/eth0/speed", "10000\n");
  File("/sys/class/net/docker0/speed", "-1\n");
  File("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  const Probe::Cluster cluster = FindCluster(Place(), 4);
  ASSERT_EQ(cluster.mpis.size(), 2u);
  EXPECT_EQ(cluster.mpis[0].launcher, "/usr/bin/mpirun.openmpi");
  EXPECT_EQ(cluster.mpis[0].version, "4.1.4");
  EXPECT_EQ(cluster.mpis[0].plugin, "");
  EXPECT_EQ(cluster.mpis[1].id, "mpich");
  EXPECT_EQ(cluster.slurm, "22.05.8");
  EXPECT_EQ(cluster.slurm_mpis, (std::vector<std::string>{"none", "pmix", "pmi2"}));
  EXPECT_EQ(cluster.started_by, "mpirun of Open MPI");
  ASSERT_EQ(cluster.networks.size(), 2u);
  EXPECT_EQ(cluster.networks[0].subnet, "10.0.0.0/24");
  EXPECT_EQ(cluster.networks[0].megabit_per_s, 10000);
  EXPECT_EQ(cluster.networks[1].subnet, "172.17.0.0/16");
  EXPECT_EQ(cluster.networks[1].megabit_per_s, 0);
  EXPECT_TRUE(cluster.networks[1].of_containers);
  EXPECT_EQ(cluster.ptrace, 1);
  EXPECT_EQ(cluster.ranks, 4);
}

TEST_F(FindProbeTest, JsonKeepsACluster) {
  File("/proc/sys/kernel/yama/ptrace_scope", "0\n");
  Probe probe = Find();
  EXPECT_TRUE(ProbeToJson(probe)["cluster"].is_null());
  probe.cluster = FindCluster(Place(), 0);
  probe.cluster->mpis.push_back({"mpich", "/bin/mpirun", "4.0.2", "", "", "no reason"});
  const Result<Probe> read = ParseProbe(ProbeToJson(probe).dump(), "probe.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ProbeToJson(*read), ProbeToJson(probe));
  EXPECT_EQ(read->cluster->ptrace, 0);
}

TEST_F(FindProbeTest, TheDriverIsAskedWhereThereIsATraceOfOne) {
  int asked = 0;
  ProbePlace place = Place();
  place.driver = [&] {
    ++asked;
    return Probe::CudaAnswer{"/lib/libcuda.so.1", "13.0", "", {{"GPU", "9.0", 1 << 20, "GPU-a0"}}};
  };
  EXPECT_FALSE(FindProbe(place).cuda.answer);
  EXPECT_EQ(asked, 0);
  variables_["RIDGE_CUDA_PATH"] = "/somewhere";
  EXPECT_EQ(FindProbe(place).cuda.answer->devices.at(0).uuid, "GPU-a0");
  variables_.clear();
  File("/proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82  Tue\n");
  const Probe probe = FindProbe(place);
  EXPECT_EQ(asked, 2);
  const Result<Probe> read = ParseProbe(ProbeToJson(probe).dump(), "probe.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ProbeToJson(*read), ProbeToJson(probe));
  EXPECT_EQ(read->cuda.answer->version, "13.0");
}

TEST_F(FindProbeTest, TheCompilerOfKernelsIsThatOfARun) {
  ProbePlace place = Place();
  place.nvrtc = [] { return Probe::Library{"13.0", "/opt/venv/lib/libnvrtc.so.13"}; };
  EXPECT_TRUE(FindProbe(place).cuda.nvrtc.empty());  // no trace of NVIDIA: nothing is opened
  File("/dev/nvidiactl", "");
  Probe probe = FindProbe(place);
  ASSERT_EQ(probe.cuda.nvrtc.size(), 1u);
  EXPECT_EQ(probe.cuda.nvrtc[0].path, "/opt/venv/lib/libnvrtc.so.13");
  EXPECT_EQ(probe.cuda.nvrtc_failure, "");
  place.nvrtc = [] { return Status(ErrorCode::kDevice, "no NVRTC: why. hint: what to do"); };
  probe = FindProbe(place);
  EXPECT_TRUE(probe.cuda.nvrtc.empty());
  const Result<Probe> read = ParseProbe(ProbeToJson(probe).dump(), "probe.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->cuda.nvrtc_failure, "no NVRTC: why. hint: what to do");
}

TEST_F(FindProbeTest, JsonKeepsAProbe) {
  File("/etc/os-release", "PRETTY_NAME=\"Debian\"\n");
  File("/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5", "");
  variables_["CUDA_VISIBLE_DEVICES"] = "";
  variables_["OMP_NUM_THREADS"] = "3";
  const Probe probe = Find();
  const Result<Probe> read = ParseProbe(ProbeToJson(probe).dump(), "probe.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ProbeToJson(*read), ProbeToJson(probe));
  EXPECT_EQ(read->cuda.visible_devices, "");
  EXPECT_EQ(read->threads.omp_num_threads, 3);
  EXPECT_EQ(read->cuda.nccl.at(0).version, "2.21.5");
}

}  // namespace
}  // namespace ridge
