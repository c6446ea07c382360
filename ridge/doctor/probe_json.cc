// Each record lists its fields once, in Fields(); writing and reading walk the same list.
#include <fmt/format.h>

#include "ridge/doctor/probe.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

template <typename V>
void Fields(V& v, Probe::System& r) {
  v("name", r.name), v("distribution", r.distribution), v("machine", r.machine);
  v("kernel", r.kernel), v("container", r.container), v("jetson", r.jetson), v("wsl", r.wsl);
}
template <typename V>
void Fields(V& v, Probe::Cpu& r) {
  v("name", r.name), v("isa", r.isa);
}
template <typename V>
void Fields(V& v, Probe::Threads& r) {
  v("used", r.used), v("because", r.because), v("online", r.online), v("affinity", r.affinity);
  v("omp_num_threads", r.omp_num_threads), v("omp_thread_limit", r.omp_thread_limit);
  v("settings", r.settings);
}
template <typename V>
void Fields(V& v, Probe::Memory& r) {
  v("total_bytes", r.total_bytes), v("available_bytes", r.available_bytes);
  v("usable_bytes", r.usable_bytes), v("shared_bytes", r.shared_bytes);
}
template <typename V>
void Fields(V& v, Probe::OneDnn& r) {
  v("version", r.version), v("isa", r.isa);
}
template <typename V>
void Fields(V& v, Probe::Gpu& r) {
  v("name", r.name), v("architecture", r.architecture), v("memory_bytes", r.memory_bytes);
  v("mig", r.mig), v("mig_instances", r.mig_instances);
}
template <typename V>
void Fields(V& v, Probe::Library& r) {
  v("version", r.version), v("path", r.path);
}
// Under cuDNN's names.
template <typename V>
void Fields(V& v, Probe::CudaProperties& r) {
  v("cudaDeviceId", r.device_id), v("deviceName", r.name), v("deviceVer", r.architecture);
  v("driverVer", r.driver_version), v("isTccDriver", r.tcc_driver), v("l2CacheSize", r.l2_bytes);
  v("maxBlockSize", r.most_block), v("maxCtasPerSM", r.most_blocks_of_sm);
  v("maxGridSize", r.most_grid), v("maxRegistersPerSM", r.registers_of_sm);
  v("maxSharedMemoryPerBlock", r.shared_bytes_of_block);
  v("maxSharedMemoryPerBlockOptin", r.most_shared_bytes_of_block);
  v("maxThreadsPerBlock", r.most_threads_of_block), v("maxThreadsPerSM", r.most_threads_of_sm);
  v("memClockRateKHz", r.memory_clock_khz), v("multiProcessorCount", r.sms);
  v("pciDeviceId", r.pci_device_id), v("regsPerBlock", r.registers_of_block);
  v("reservedSharedMemoryPerBlock", r.reserved_shared_bytes_of_block);
  v("smClockRateKHz", r.sm_clock_khz), v("supportCoopLaunch", r.cooperative_launch);
  v("totalGlobalMem", r.memory_bytes), v("warpSize", r.warp_threads);
}
template <typename V>
void Fields(V& v, Probe::CudaDevice& r) {
  v("name", r.name), v("architecture", r.architecture), v("memory_bytes", r.memory_bytes);
  v("uuid", r.uuid), v("properties", r.properties);
}
template <typename V>
void Fields(V& v, Probe::CudaAnswer& r) {
  v("library", r.library), v("version", r.version), v("failure", r.failure);
  v("devices", r.devices);
}
template <typename V>
void Fields(V& v, Probe::Cuda& r) {
  v("driver", r.driver), v("usable", r.usable), v("pci_gpus", r.pci_gpus);
  v("device_files", r.device_files), v("libraries", r.libraries);
  v("library_path", r.library_path);
  v("visible_devices", r.visible_devices), v("gpus", r.gpus), v("toolkits", r.toolkits);
  v("nvrtc", r.nvrtc), v("nvrtc_failure", r.nvrtc_failure), v("cublaslt", r.cublaslt);
  v("cudnn", r.cudnn), v("nccl", r.nccl), v("answer", r.answer);
}
template <typename V>
void Fields(V& v, Probe::Rocm& r) {
  v("version", r.version), v("pci_gpus", r.pci_gpus), v("device_file", r.device_file);
  v("device_access", r.device_access), v("gfx_override", r.gfx_override), v("gpus", r.gpus);
}
template <typename V>
void Fields(V& v, Probe::Package& r) {
  v("name", r.name), v("version", r.version), v("cuda", r.cuda), v("rocm", r.rocm);
}
template <typename V>
void Fields(V& v, Probe::Python& r) {
  v("version", r.version), v("folder", r.folder), v("packages", r.packages);
}
template <typename V>
void Fields(V& v, Probe::Mpi& r) {
  v("id", r.id), v("launcher", r.launcher), v("version", r.version), v("plugin", r.plugin);
  v("library", r.library), v("failure", r.failure);
}
template <typename V>
void Fields(V& v, Probe::Network& r) {
  v("interface", r.interface), v("subnet", r.subnet), v("megabit_per_s", r.megabit_per_s);
  v("of_containers", r.of_containers);
}
template <typename V>
void Fields(V& v, Probe::Cluster& r) {
  v("mpis", r.mpis), v("slurm", r.slurm), v("slurm_mpis", r.slurm_mpis);
  v("started_by", r.started_by), v("started_mpi", r.started_mpi);
  v("start_failure", r.start_failure), v("chosen_plugin", r.chosen_plugin);
  v("networks", r.networks), v("ranks", r.ranks), v("cores", r.cores), v("ptrace", r.ptrace);
  v("reads_process", r.reads_process);
}
template <typename V>
void Fields(V& v, Probe& r) {
  v("ridge", r.ridge), v("system", r.system), v("cpu", r.cpu), v("threads", r.threads);
  v("memory", r.memory), v("onednn", r.onednn), v("cuda", r.cuda), v("rocm", r.rocm);
  v("python", r.python), v("cluster", r.cluster);
}

Json ToJson(bool value) { return value; }
Json ToJson(int64_t value) { return value; }
Json ToJson(const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); }
template <typename T>
Json ToJson(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
template <typename Record>
Json ToJson(const Record& record);
Json ToJson(const std::optional<Probe::Cluster>& value) {
  return value ? ToJson(*value) : Json(nullptr);
}
Json ToJson(const std::optional<Probe::CudaAnswer>& value) {
  return value ? ToJson(*value) : Json(nullptr);
}
template <typename T>
Json ToJson(const std::vector<T>& list) {
  Json json = Json::array();
  for (const T& item : list) json.push_back(ToJson(item));
  return json;
}

struct Writer {
  Json json = Json::object();
  template <typename T>
  void operator()(const char* key, const T& value) {
    json[key] = ToJson(value);
  }
};

template <typename Record>
Json ToJson(const Record& record) {
  Writer writer;
  Record copy = record;
  Fields(writer, copy);
  return writer.json;
}

// The first value of a wrong kind ends the reading; `path` says where it stands.
struct Reader {
  const Json* json;
  std::string path;
  std::string& error;

  template <typename T>
  void operator()(const char* key, T& value) {
    if (!error.empty() || !json->contains(key)) return;
    Read((*json)[key], path.empty() ? key : path + "." + key, value);
  }

  bool Is(bool right, const Json& found, const std::string& at, const char* kind) {
    if (right) return true;
    constexpr size_t kMostText = 40;
    std::string text = found.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > kMostText) text = text.substr(0, kMostText) + "...";
    error = fmt::format("{} is {}; it must be {}", at, text, kind);
    return false;
  }
  void Read(const Json& found, const std::string& at, bool& value) {
    if (Is(found.is_boolean(), found, at, "true or false")) value = found.get<bool>();
  }
  void Read(const Json& found, const std::string& at, int64_t& value) {
    const bool right = found.is_number_integer() &&
                       (!found.is_number_unsigned() || found.get<uint64_t>() <= INT64_MAX) &&
                       found.get<int64_t>() >= 0;
    if (Is(right, found, at, "a whole number from 0")) value = found.get<int64_t>();
  }
  void Read(const Json& found, const std::string& at, std::string& value) {
    if (found.is_null()) return value.clear();
    if (Is(found.is_string(), found, at, "a text or null")) value = found.get<std::string>();
  }
  template <typename T>
  void Read(const Json& found, const std::string& at, std::optional<T>& value) {
    if (!found.is_null()) Read(found, at, value.emplace(T{}));
  }
  template <typename T>
  void Read(const Json& found, const std::string& at, std::vector<T>& list) {
    if (!Is(found.is_array(), found, at, "a list")) return;
    list.clear();
    for (size_t i = 0; i < found.size() && error.empty(); ++i)
      Read(found[i], fmt::format("{}.{}", at, i), list.emplace_back());
  }
  template <typename Record>
  void Read(const Json& found, const std::string& at, Record& record) {
    if (!Is(found.is_object(), found, at, "an object")) return;
    Reader inner = {&found, at, error};
    Fields(inner, record);
  }
};

}  // namespace

Json ProbeToJson(const Probe& probe) { return ToJson(probe); }

Result<Probe> ParseProbe(const std::string& text, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: {}. hint: `ridge doctor --json` writes a probe", where, what));
  };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return refuse("not JSON; it must be a probe of a machine");
  if (!json.is_object()) return refuse("not an object; it must be a probe of a machine");
  Probe probe;
  std::string error;
  Reader reader = {&json, "", error};
  Fields(reader, probe);
  if (!error.empty()) return refuse(error);
  return probe;
}

}  // namespace ridge
