// The version is read before the other functions are resolved: a user of an old driver reads
// versions, not the name of a function.
#include "ridge/backend/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "ridge/backend/cuda/library_search.h"
#include "ridge/core/split.h"

namespace ridge::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kHintInstall[] = "install NVIDIA's driver 580 or newer";

Status NoDriver(const std::string& text, const std::string& hint) {
  return Status(ErrorCode::kDevice, fmt::format("{}. hint: {}", text, hint));
}

Status NotFound(const DriverSearch& search) {
  const std::string where = search.places.empty()
                                ? fmt::format("{} is not found", search.soname)
                                : fmt::format("neither {} ('{}') nor the system has {}",
                                              kPathVariable, search.places, search.soname);
  return NoDriver(
      fmt::format("no NVIDIA driver: {}; a GPU's plan can be made here, not run", where),
      kHintInstall);
}

// The loader's words for a file that is not there, or the rest of its message.
Status CannotOpen(const DriverSearch& search, FoundBy found_by) {
  const char* const said = ::dlerror();
  const std::string reason = said == nullptr ? "unknown error" : said;
  if (found_by == FoundBy::kVariable) {
    return NoDriver(fmt::format("{} is '{}': {}", kPathVariable, search.places, reason),
                    fmt::format("unset {}, and the system's driver is taken", kPathVariable));
  }
  if (reason.starts_with(search.soname + ": cannot open shared object file"))
    return NotFound(search);
  return NoDriver(fmt::format("the NVIDIA driver cannot be opened: {}", reason), kHintInstall);
}

// Of the first place that is a file, has the library under its soname, or is not there at all,
// which the loader then says.  "": all are folders of other libraries.
std::string FileIn(const DriverSearch& search) {
  std::error_code error;
  for (const std::string_view name : SplitAt(search.places, ':')) {
    const fs::path place = name;
    if (place.empty()) continue;
    if (!fs::is_directory(place, error)) return place;
    if (fs::exists(place / search.soname, error)) return place / search.soname;
  }
  return "";
}

bool OpenDriver(const DriverSearch& search, Driver& driver) {
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
  const char* const soname = search.soname.c_str();
  const std::string file = FileIn(search);
  driver.path = file.empty() ? search.soname : file;
  if (!file.empty()) {
    driver.found_by = FoundBy::kVariable;
    driver.library = ::dlopen(file.c_str(), kMode);
  } else if ((driver.library = ::dlopen(soname, kMode | RTLD_NOLOAD)) != nullptr) {
    driver.found_by = FoundBy::kProcess;
  } else {
    driver.found_by = FoundBy::kSystem;
    driver.library = ::dlopen(soname, kMode);
  }
  return driver.library != nullptr;
}

Status Stub(const Driver& driver) {
  const std::string folder = fs::path(driver.path).parent_path();
  return NoDriver(
      fmt::format("{} is the stub of a CUDA toolkit, for linking programs; it drives no GPU",
                  driver.path),
      driver.found_by == FoundBy::kVariable
          ? fmt::format("unset {}", kPathVariable)
          : fmt::format("take {} out of LD_LIBRARY_PATH", folder));
}

Status ReadVersion(Driver& driver) {
  const DriverCode code = driver.DriverGetVersion(&driver.version);
  if (code == DriverCode::kStubLibrary) return Stub(driver);
  if (code != DriverCode::kSuccess) {
    return NoDriver(fmt::format("cuDriverGetVersion of {} failed with error {}", driver.path,
                                static_cast<int>(code)),
                    kHintInstall);
  }
  if (driver.version >= kLeastCuda) return Status();
  return NoDriver(
      fmt::format("{} is of a driver for CUDA {}; ridge needs CUDA {}, which driver {} has",
                  driver.path, CudaVersionText(driver.version), CudaVersionText(kLeastCuda),
                  kLeastDriver),
      kHintInstall);
}

template <typename Function>
bool Resolve(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
  return function != nullptr;
}

Status ResolveAll(Driver& driver) {
  const char* missing = nullptr;
#define RIDGE_CUDA_RESOLVE(name, symbol, parameters) \
  if (!Resolve(driver.library, #symbol, driver.name) && missing == nullptr) missing = #symbol;
  RIDGE_CUDA_FUNCTIONS(RIDGE_CUDA_RESOLVE)
#undef RIDGE_CUDA_RESOLVE
  if (missing == nullptr) return Status();
  return NoDriver(fmt::format("{} says CUDA {} and has no {}", driver.path,
                              CudaVersionText(driver.version), missing),
                  "install NVIDIA's driver again");
}

// What helps against an error of the driver; "" where nothing is known to.
const char* HintFor(DriverCode code) {
  switch (code) {
    case DriverCode::kOutOfMemory:
      return kHintMemory;
    case DriverCode::kDriverMismatch:
      return "restart the machine: the kernel has another version of the driver than libcuda";
    case DriverCode::kEccUncorrectable:
      return "reset the GPU: nvidia-smi -q -d ECC shows the damage";
    case DriverCode::kIllegalAddress:
    case DriverCode::kMisalignedAddress:
    case DriverCode::kInvalidAddressSpace:
      return kHintSync;
    case DriverCode::kLaunchTimeout:
      return "use a GPU without a display: it has no limit of time";
    default:
      return "";
  }
}

}  // namespace

std::string CudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

DriverSearch SearchOfEnvironment() {
  DriverSearch search;
  if (const char* places = std::getenv(kPathVariable)) search.places = places;
  return search;
}

Status Driver::Check(DriverCode code, const char* function) const {
  if (code == DriverCode::kSuccess) return Status();
  const char* name = nullptr;
  if (GetErrorName(code, &name) != DriverCode::kSuccess || name == nullptr)
    name = "an error without a name";
  std::string text = fmt::format("{} failed: {} ({})", function, name, static_cast<int>(code));
  if (const std::string hint = HintFor(code); !hint.empty()) text += ". hint: " + hint;
  return Status(code == DriverCode::kOutOfMemory ? ErrorCode::kDeviceMemory : ErrorCode::kDevice,
                std::move(text));
}

Status Driver::Initialize() const {
  const DriverCode code = Init(0);
  if (code == DriverCode::kStubLibrary) return Stub(*this);
  if (code != DriverCode::kNoDevice) return Check(code, "cuInit");
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr)
    return NoDriver("the NVIDIA driver shows no GPU", "nvidia-smi -L lists those that it knows");
  return NoDriver(
      fmt::format("the NVIDIA driver shows no GPU: CUDA_VISIBLE_DEVICES is '{}'", visible),
      "unset CUDA_VISIBLE_DEVICES");
}

Result<Driver> LoadDriver(const DriverSearch& search) {
  Driver driver;
  if (!OpenDriver(search, driver)) return CannotOpen(search, driver.found_by);
  if (!Resolve(driver.library, "cuDriverGetVersion", driver.DriverGetVersion)) {
    return NoDriver(fmt::format("{} has no cuDriverGetVersion: it is no CUDA driver", driver.path),
                    kHintInstall);
  }
  driver.path = PathOfLibrary(driver.library, driver.path);
  RIDGE_RETURN_IF_ERROR(ReadVersion(driver));
  RIDGE_RETURN_IF_ERROR(ResolveAll(driver));
  return driver;
}

}  // namespace ridge::cuda
