#include "tests/fake_cuda/fake_state.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

namespace ridge::fake_cuda {
namespace {

int64_t NumberOf(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

struct AtCall {
  std::string function;  // "" none
  int64_t call = 0, number = 0;
};

// "cuMemMap:2:700"
AtCall ReadAtCall(const char* variable) {
  AtCall at;
  const char* text = std::getenv(variable);
  if (text == nullptr) return at;
  std::istringstream in(text);
  std::string call, number;
  std::getline(in, at.function, ':');
  std::getline(in, call, ':');
  std::getline(in, number);
  at.call = std::atoll(call.c_str());
  at.number = std::atoll(number.c_str());
  return at;
}

void ReadFailure(Settings& settings) {
  const AtCall at = ReadAtCall("RIDGE_FAKE_CUDA_FAIL");
  settings.fail_function = at.function;
  settings.fail_call = at.call;
  settings.fail_code = static_cast<DriverCode>(at.number);
  const AtCall late = ReadAtCall("RIDGE_FAKE_CUDA_FAIL_LATE");
  settings.late_function = late.function;
  settings.late_call = late.call;
  settings.late_code = static_cast<DriverCode>(late.number);
  const char* since = std::getenv("RIDGE_FAKE_CUDA_FAIL_SINCE");
  settings.fail_since = since == nullptr ? "" : since;
}

void ReadUse(Settings& settings) {
  const auto bytes = [](const char* variable) {
    return static_cast<uint64_t>(NumberOf(variable, 0));
  };
  settings.others_bytes = bytes("RIDGE_FAKE_CUDA_OTHERS_BYTES");
  settings.context_bytes = bytes("RIDGE_FAKE_CUDA_CONTEXT_BYTES");
  settings.module_bytes = bytes("RIDGE_FAKE_CUDA_MODULE_BYTES");
  settings.work_bytes = bytes("RIDGE_FAKE_CUDA_WORK_BYTES");
  const AtCall at = ReadAtCall("RIDGE_FAKE_CUDA_LEAK");
  settings.leak_function = at.function;
  settings.leak_call = at.call;
  settings.leak_bytes = at.number;
}

// After these a process has no use of the GPU any more.
bool Stays(DriverCode code) {
  switch (code) {
    case DriverCode::kEccUncorrectable:
    case DriverCode::kIllegalAddress:
    case DriverCode::kLaunchTimeout:
    case DriverCode::kAssert:
    case DriverCode::kHardwareStackError:
    case DriverCode::kIllegalInstruction:
    case DriverCode::kMisalignedAddress:
    case DriverCode::kInvalidAddressSpace:
    case DriverCode::kInvalidProgramCounter:
    case DriverCode::kLaunchFailed:
      return true;
    default:
      return false;
  }
}

// The header's names, without the version of their symbol.
std::string PlainName(const char* function) {
  const std::string name = function;
  return name.substr(0, name.find("_v"));
}

std::string UuidPrefix(int number) {
  char text[16];
  std::snprintf(text, sizeof(text), "GPU-%02x", 0xa0 + number);
  return text;
}

Gpu GpuOf(int number, const Settings& settings) {
  return {.number = number, .bytes = settings.bytes, .used = settings.others_bytes};
}

// Between the call of an entry point and what it enqueues.
thread_local DriverCode late = DriverCode::kSuccess;

// The GPU that a name of CUDA_VISIBLE_DEVICES means; -1: none.
int FindGpu(const std::string& name, int devices) {
  for (int number = 0; number < devices; ++number) {
    const bool is_uuid = name.size() > 4 && UuidPrefix(number).starts_with(name.substr(0, 6));
    if (name == std::to_string(number) || is_uuid) return number;
  }
  return -1;
}

// Of its error that stays.
size_t PlaceOf(const Gpu* gpu) { return gpu == nullptr ? 0 : static_cast<size_t>(gpu->number) + 1; }

}  // namespace

State& TheState() {
  static State state;
  return state;
}

Gpu*& CurrentGpu() {
  thread_local Gpu* gpu = nullptr;
  return gpu;
}

void State::Configure() {
  const std::lock_guard hold(lock_);
  settings_ = Settings();
  settings_.version = static_cast<int>(NumberOf("RIDGE_FAKE_CUDA_VERSION", settings_.version));
  settings_.devices = static_cast<int>(NumberOf("RIDGE_FAKE_CUDA_DEVICES", settings_.devices));
  settings_.bytes = static_cast<uint64_t>(
      NumberOf("RIDGE_FAKE_CUDA_BYTES", static_cast<int64_t>(settings_.bytes)));
  settings_.most_delay_us =
      static_cast<uint32_t>(NumberOf("RIDGE_FAKE_CUDA_DELAY_US", settings_.most_delay_us));
  settings_.maps_memory = NumberOf("RIDGE_FAKE_CUDA_MAPS", 1) != 0;
  settings_.alike = NumberOf("RIDGE_FAKE_CUDA_ALIKE", 0) != 0;
  settings_.maps_host_memory = NumberOf("RIDGE_FAKE_CUDA_MAPS_HOST", 1) != 0;
  settings_.maps_host_node = NumberOf("RIDGE_FAKE_CUDA_MAPS_NODE", 1) != 0;
  settings_.nearest_node = static_cast<int>(NumberOf("RIDGE_FAKE_CUDA_NEAREST_NODE", 0));
  settings_.refused_node = static_cast<int>(NumberOf("RIDGE_FAKE_CUDA_REFUSED_NODE", -1));
  settings_.host_granule = static_cast<size_t>(
      NumberOf("RIDGE_FAKE_CUDA_HOST_GRANULE", static_cast<int64_t>(settings_.host_granule)));
  settings_.lazy = NumberOf("RIDGE_FAKE_CUDA_LAZY", 0) != 0;
  settings_.left_out_edge = NumberOf("RIDGE_FAKE_CUDA_LEAVE_OUT_EDGE", 0);
  ReadFailure(settings_);
  ReadUse(settings_);
  leaked_ = 0;
  told_edges_ = 0;
  calls_.clear();
  before_.clear();
  for (std::atomic<int>& code : stays_) code = 0;
}

void State::TakeGpus() {
  gone_.push_back(std::move(gpus));
  gpus = VisibleGpus(settings_);
}

DriverCode State::Count(const char* function) {
  const std::lock_guard hold(lock_);
  const std::string name = PlainName(function);
  const int64_t call = ++calls_[name];
  if (call >= settings_.leak_call && name == settings_.leak_function)
    leaked_ += settings_.leak_bytes;
  if (name == settings_.late_function && CountedCall(name, call) == settings_.late_call)
    late = settings_.late_code;
  if (name == settings_.fail_function && CountedCall(name, call) == settings_.fail_call) {
    if (const int code = static_cast<int>(settings_.fail_code); code < 0) std::raise(-code);
    if (Stays(settings_.fail_code)) Stay(settings_.fail_code, CurrentGpu());
    return settings_.fail_code;
  }
  return DriverCode::kSuccess;
}

int64_t State::CountedCall(const std::string& function, int64_t call) {
  if (settings_.fail_since.empty()) return call;
  auto before = before_.find(function);
  if (before == before_.end()) {
    if (!std::filesystem::exists(settings_.fail_since)) return 0;
    before = before_.emplace(function, call - 1).first;
  }
  return call - before->second;
}

DriverCode State::Begin(const char* function) {
  const DriverCode injected = Count(function);
  return injected == DriverCode::kSuccess ? stays(CurrentGpu()) : injected;
}

DriverCode State::BeginInContext(const char* function) {
  if (const DriverCode code = Begin(function); code != DriverCode::kSuccess) return code;
  return CurrentGpu() == nullptr ? DriverCode::kInvalidContext : DriverCode::kSuccess;
}

DriverCode State::TakeLate() { return std::exchange(late, DriverCode::kSuccess); }

uint64_t State::InUse(const Gpu& gpu) const {
  constexpr uint64_t kPage = uint64_t{2} << 20;
  const auto pages = [](uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; };
  return gpu.used + pages(gpu.code) + pages(gpu.graphs) + static_cast<uint64_t>(leaked_.load());
}

void State::Stay(DriverCode code, const Gpu* gpu) {
  int none = 0;
  stays_.at(PlaceOf(gpu)).compare_exchange_strong(none, static_cast<int>(code));
}

DriverCode State::stays(const Gpu* gpu) const {
  const int of_all = stays_[0];
  return static_cast<DriverCode>(of_all != 0 ? of_all : stays_.at(PlaceOf(gpu)).load());
}

int64_t State::Calls(const char* function) {
  const std::lock_guard hold(lock_);
  return calls_[function];
}

std::vector<Gpu> VisibleGpus(const Settings& settings) {
  std::vector<Gpu> gpus;
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) {
    for (int number = 0; number < settings.devices; ++number)
      gpus.push_back(GpuOf(number, settings));
    return gpus;
  }
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) {
    if (name.starts_with("MIG-")) {  // a process has one, and no more after it
      gpus.push_back({.number = 0, .slice = true, .bytes = settings.bytes / 2});
      return gpus;
    }
    const int number = FindGpu(name, settings.devices);
    if (number < 0) return gpus;
    gpus.push_back(GpuOf(number, settings));
  }
  return gpus;
}

cuda::Uuid UuidOf(const Gpu& gpu) {
  cuda::Uuid uuid;
  std::memset(uuid.bytes, 0xa0 + gpu.number, sizeof(uuid.bytes));
  return uuid;
}

}  // namespace ridge::fake_cuda
