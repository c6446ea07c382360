#include "ridge/backend/cuda/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/core/split.h"
#include "ridge/core/units.h"

namespace ridge::cuda {
namespace {

constexpr char kVariable[] = "CUDA_VISIBLE_DEVICES";
constexpr char kBlanks[] = " ";
constexpr char kGpuPrefix[] = "GPU-";
constexpr char kMigPrefix[] = "MIG-";

// Of a MIG instance it is the instance's, and its name says so: "NVIDIA H200 MIG 1g.18gb".
std::string UuidText(const Uuid& uuid, const std::string& name) {
  std::string text = name.find(" MIG ") == std::string::npos ? kGpuPrefix : kMigPrefix;
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

Result<GpuFacts> FactsOf(const Driver& driver, int ordinal) {
  const auto attribute = [&](DeviceAttribute which, DeviceId device, int& value) {
    return driver.Check(driver.DeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  };
  DeviceId device = 0;
  RIDGE_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&device, ordinal), "cuDeviceGet"));
  char name[256] = "";
  RIDGE_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetName(name, sizeof(name), device), "cuDeviceGetName"));
  Uuid uuid = {};
  RIDGE_RETURN_IF_ERROR(driver.Check(driver.DeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
  size_t bytes = 0;
  RIDGE_RETURN_IF_ERROR(driver.Check(driver.DeviceTotalMem(&bytes, device), "cuDeviceTotalMem"));
  GpuFacts facts = {.name = name, .uuid = UuidText(uuid, name)};
  facts.memory_bytes = static_cast<int64_t>(bytes);
  int maps_memory = 0, maps_host_memory = 0;
  RIDGE_RETURN_IF_ERROR(attribute(DeviceAttribute::kMajor, device, facts.major));
  RIDGE_RETURN_IF_ERROR(attribute(DeviceAttribute::kMinor, device, facts.minor));
  RIDGE_RETURN_IF_ERROR(attribute(DeviceAttribute::kMapsMemory, device, maps_memory));
  facts.maps_memory = maps_memory != 0;
  const DriverCode answer =
      driver.DeviceGetAttribute(&maps_host_memory, DeviceAttribute::kMapsHostMemory, device);
  if (answer != DriverCode::kInvalidValue)  // drivers before CUDA 13 do not know the question
    RIDGE_RETURN_IF_ERROR(driver.Check(answer, "cuDeviceGetAttribute"));
  facts.maps_host_memory = maps_memory != 0 && maps_host_memory != 0;
  if (facts.maps_host_memory) {
    RIDGE_RETURN_IF_ERROR(attribute(DeviceAttribute::kHostNumaNode, device, facts.host_numa_node));
    facts.host_numa_node = std::max(0, facts.host_numa_node);
    int maps_host_node = 0;
    RIDGE_RETURN_IF_ERROR(attribute(DeviceAttribute::kMapsHostNode, device, maps_host_node));
    facts.maps_host_node = maps_host_node != 0;
  }
  return facts;
}

std::optional<VisibleDevices::Kind> KindOf(std::string_view name) {
  if (name.starts_with(kMigPrefix)) return VisibleDevices::Kind::kMig;
  if (name.starts_with(kGpuPrefix)) return VisibleDevices::Kind::kUuids;
  const bool digits =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!name.empty() && digits) return VisibleDevices::Kind::kOrdinals;
  return std::nullopt;
}

Status Refused(const std::string& text, const std::string& why, const std::string& hint) {
  return Status(ErrorCode::kDevice,
                fmt::format("{} is '{}': {}. hint: {}", kVariable, text, why, hint));
}

// Adds the next name of the list.
Status AddName(const std::string& text, std::string_view name, VisibleDevices& visible) {
  const std::optional<VisibleDevices::Kind> kind = KindOf(name);
  if (!kind) {
    return Refused(text, fmt::format("'{}' is no number, GPU-... or MIG-...", name),
                   "nvidia-smi -L lists the names");
  }
  if (!visible.names.empty() && *kind != visible.kind) {
    return Refused(
        text,
        fmt::format("'{}' and '{}' are of two kinds; a list has one", visible.names.front(), name),
        "nvidia-smi -L lists the names");
  }
  visible.kind = *kind;
  if (std::find(visible.names.begin(), visible.names.end(), name) != visible.names.end())
    return Refused(text, fmt::format("it has '{}' twice", name), "name each once");
  visible.names.emplace_back(name);
  return Status();
}

}  // namespace

Result<std::vector<GpuFacts>> ListGpus(const Driver& driver) {
  RIDGE_RETURN_IF_ERROR(driver.Initialize());
  int count = 0;
  RIDGE_RETURN_IF_ERROR(driver.Check(driver.DeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<GpuFacts> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    RIDGE_ASSIGN_OR_RETURN(GpuFacts facts, FactsOf(driver, ordinal));
    gpus.push_back(std::move(facts));
  }
  return gpus;
}

int64_t AttributeOf(const Driver& driver, int ordinal, DeviceAttribute attribute) {
  DeviceId device = 0;
  int value = 0;
  if (driver.DeviceGet(&device, ordinal) != DriverCode::kSuccess) return 0;
  const DriverCode answer = driver.DeviceGetAttribute(&value, attribute, device);
  return answer == DriverCode::kSuccess ? std::max(0, value) : 0;
}

Result<VisibleDevices> ParseVisibleDevices(const std::optional<std::string>& text) {
  VisibleDevices visible;
  if (!text) return visible;
  const std::string_view all = Trimmed(*text, kBlanks);
  if (all.empty() || all == "-1") {
    visible.kind = VisibleDevices::Kind::kNone;
    return visible;
  }
  for (const std::string_view name : SplitAt(*text, ','))
    RIDGE_RETURN_IF_ERROR(AddName(*text, Trimmed(name, kBlanks), visible));
  if (visible.kind == VisibleDevices::Kind::kMig && visible.names.size() > 1) {
    return Refused(
        *text,
        fmt::format("it has {}; a process uses one",
                    FormatCountOf(static_cast<int64_t>(visible.names.size()), "MIG instance")),
        fmt::format("export {}={}", kVariable, visible.names.front()));
  }
  return visible;
}

Status CheckShown(const VisibleDevices& visible, int64_t shown) {
  const auto named = static_cast<int64_t>(visible.names.size());
  if (named <= shown) return Status();
  return Refused(fmt::to_string(fmt::join(visible.names, ",")),
                 fmt::format("the driver shows {} of the {} that it names, and ends before '{}'",
                             shown, named, visible.names[static_cast<size_t>(shown)]),
                 "nvidia-smi -L lists the names");
}

}  // namespace ridge::cuda
