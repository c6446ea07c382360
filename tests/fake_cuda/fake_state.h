// State of the fake driver: settings, counts, and the error that stays.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ridge/backend/cuda/driver_abi.h"

namespace ridge::fake_cuda {

using cuda::DriverCode;

struct Settings {
  int version = 13000;
  int devices = 1;
  uint64_t bytes = uint64_t{256} << 20;
  uint32_t most_delay_us = 200;
  bool maps_memory = true, maps_host_memory = true, maps_host_node = true;
  int nearest_node = 0, refused_node = -1;  // of the host
  size_t host_granule = size_t{2} << 20;
  bool alike = false;  // GPUs have one name
  bool lazy = false;
  int64_t left_out_edge = 0;  // of those that are told of a graph, counted from 1; 0: none
  // What is taken of a GPU: by other processes, by a context, by the code of a module and by each
  // piece of work of a graph, both when they are launched first.
  uint64_t others_bytes = 0, context_bytes = 0, module_bytes = 0, work_bytes = 0;
  std::string leak_function;  // "" none
  int64_t leak_call = 0;      // from this one on each takes so many more; they may be negative
  int64_t leak_bytes = 0;
  std::string fail_function;  // "" none
  int64_t fail_call = 0;      // counted from 1
  DriverCode fail_code = DriverCode::kSuccess;
  std::string late_function;  // the same of what its call enqueues, when a stream comes to it
  int64_t late_call = 0;
  DriverCode late_code = DriverCode::kSuccess;
  std::string fail_since;  // both count their calls from when this file is there; "" from the first
};

// A GPU that CUDA_VISIBLE_DEVICES leaves.
struct Gpu {
  int number = 0;      // of the machine
  bool slice = false;  // a MIG instance
  uint64_t bytes = 0, used = 0;
  uint64_t code = 0, graphs = 0;  // beside `used`; a driver takes them by 2 MiB
  uint64_t context_bytes = 0;     // of `used`
  int retained = 0;               // of its primary context
  char context = 0;               // its address is the context's
};

inline constexpr size_t kMostGpus = 64;

class State {
 public:
  // Reads the environment; begins all counts anew, except those of what is alive.
  void Configure();
  const Settings& settings() const { return settings_; }

  // The first lines of an entry point: the injected error.
  DriverCode Count(const char* function);
  // The same, or the one that stays.
  DriverCode Begin(const char* function);
  // The same where a context must be current on the calling thread.
  DriverCode BeginInContext(const char* function);

  // What the work fails with that the calling thread enqueues next; it is told once.
  DriverCode TakeLate();

  // The first error of a GPU stays with its context; nullptr: with those of all GPUs.
  void Stay(DriverCode code, const Gpu* gpu);
  DriverCode stays(const Gpu* gpu) const;

  int64_t Calls(const char* function);
  // Whether the edge that is told next is the one to be left out.
  bool LeavesOutEdge() { return ++told_edges_ == settings_.left_out_edge; }
  void Born() { ++alive_; }
  void Died() { --alive_; }
  int64_t alive() const { return alive_; }
  // Of all that is taken of a GPU; under memory_lock.
  uint64_t InUse(const Gpu& gpu) const;

  // Lists the GPUs that are visible now.  Earlier lists stay: a thread may have one of them
  // current.
  void TakeGpus();
  std::vector<Gpu> gpus;  // after cuInit
  std::mutex memory_lock;

 private:
  std::mutex lock_;
  std::vector<std::vector<Gpu>> gone_;
  Settings settings_;
  // Of calls that may fail.
  int64_t CountedCall(const std::string& function, int64_t call);

  std::map<std::string, int64_t> calls_;
  std::map<std::string, int64_t> before_;  // calls before Settings::fail_since was there
  std::array<std::atomic<int>, kMostGpus + 1> stays_{};  // with all, and by GPU
  std::atomic<int64_t> alive_{0};
  std::atomic<int64_t> leaked_{0}, told_edges_{0};
};

State& TheState();
// Of the calling thread; nullptr without one.
Gpu*& CurrentGpu();

// The GPUs that CUDA_VISIBLE_DEVICES leaves, by the driver's rule: the list ends before the first
// name that is none.
std::vector<Gpu> VisibleGpus(const Settings& settings);
cuda::Uuid UuidOf(const Gpu& gpu);

}  // namespace ridge::fake_cuda
