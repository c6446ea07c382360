#include "tests/fake_cuda/fake_state.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace ridge::fake_cuda {
namespace {

int64_t NumberOf(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

// "cuMemMap:2:700"
void ReadFailure(Settings& settings) {
  const char* text = std::getenv("RIDGE_FAKE_CUDA_FAIL");
  if (text == nullptr) return;
  std::istringstream in(text);
  std::string call, code;
  std::getline(in, settings.fail_function, ':');
  std::getline(in, call, ':');
  std::getline(in, code);
  settings.fail_call = std::atoll(call.c_str());
  settings.fail_code = static_cast<DriverCode>(std::atoi(code.c_str()));
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
  std::string name = function;
  if (name.ends_with("_v2")) name.resize(name.size() - 3);
  return name;
}

std::string UuidPrefix(int number) {
  char text[16];
  std::snprintf(text, sizeof(text), "GPU-%02x", 0xa0 + number);
  return text;
}

// The GPU that a name of CUDA_VISIBLE_DEVICES means; -1: none.
int FindGpu(const std::string& name, int devices) {
  for (int number = 0; number < devices; ++number) {
    const bool is_uuid = name.size() > 4 && UuidPrefix(number).starts_with(name.substr(0, 6));
    if (name == std::to_string(number) || is_uuid) return number;
  }
  return -1;
}

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
  settings_.lazy = NumberOf("RIDGE_FAKE_CUDA_LAZY", 0) != 0;
  ReadFailure(settings_);
  calls_.clear();
  Forget();
}

DriverCode State::Begin(const char* function) {
  const std::lock_guard hold(lock_);
  const std::string name = PlainName(function);
  if (++calls_[name] == settings_.fail_call && name == settings_.fail_function) {
    if (const int code = static_cast<int>(settings_.fail_code); code < 0) std::raise(-code);
    if (Stays(settings_.fail_code)) Stay(settings_.fail_code);
    return settings_.fail_code;
  }
  return stays();
}

DriverCode State::BeginInContext(const char* function) {
  if (const DriverCode code = Begin(function); code != DriverCode::kSuccess) return code;
  return CurrentGpu() == nullptr ? DriverCode::kInvalidContext : DriverCode::kSuccess;
}

void State::Stay(DriverCode code) {
  int none = 0;
  stays_.compare_exchange_strong(none, static_cast<int>(code));
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
      gpus.push_back({.number = number, .bytes = settings.bytes});
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
    gpus.push_back({.number = number, .bytes = settings.bytes});
  }
  return gpus;
}

cuda::Uuid UuidOf(const Gpu& gpu) {
  cuda::Uuid uuid;
  std::memset(uuid.bytes, 0xa0 + gpu.number, sizeof(uuid.bytes));
  return uuid;
}

}  // namespace ridge::fake_cuda
