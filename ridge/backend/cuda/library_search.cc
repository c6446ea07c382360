#include "ridge/backend/cuda/library_search.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ridge/backend/cuda/driver.h"
#include "ridge/core/split.h"

namespace ridge::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int kMode = RTLD_NOW | RTLD_LOCAL;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Entries of a folder, by name; none where it can't be read.
std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// PREFIX/lib/python3.11/site-packages/nvidia/*/lib.
void AddWheels(const std::string& prefix, std::vector<std::string>& folders) {
  if (prefix.empty()) return;
  for (const fs::path& python : Entries(prefix + "/lib")) {
    for (const fs::path& package : Entries(python / "site-packages/nvidia"))
      folders.push_back(package / "lib");
  }
}

std::string ProgramFolder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "" : program.parent_path();
}

// In the folder's libraries, which the loader is given by their whole path.
void* OpenIn(const std::vector<std::string>& folders, const std::string& soname) {
  std::error_code error;
  for (const std::string& folder : folders) {
    const fs::path file = fs::path(folder) / soname;
    if (!folder.empty() && fs::exists(file, error)) return ::dlopen(file.c_str(), kMode);
  }
  return nullptr;
}

void* Open(const LibrarySearch& search, const std::string& soname) {
  if (void* handle = OpenIn(search.before, soname)) return handle;
  if (void* handle = ::dlopen(soname.c_str(), kMode | RTLD_NOLOAD)) return handle;
  if (void* handle = OpenIn(search.middle, soname)) return handle;
  if (void* handle = ::dlopen(soname.c_str(), kMode)) return handle;
  return OpenIn(search.behind, soname);
}

}  // namespace

LibrarySearch SearchForToolkit() {
  LibrarySearch search;
  const std::string places = Variable(kPathVariable);
  for (const std::string_view folder : SplitAt(places, ':')) search.before.emplace_back(folder);
  search.middle = {ProgramFolder(), ProgramFolder() + "/../lib/ridge"};
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) AddWheels(Variable(name), search.middle);
  search.behind = {"/usr/local/cuda/lib64"};
  return search;
}

Result<OpenLibrary> OpenToolkitLibrary(const LibrarySearch& search, const std::string& name,
                                       const std::vector<std::string>& sonames,
                                       const std::string& wheel) {
  for (const std::string& soname : sonames) {
    if (void* handle = Open(search, soname))
      return OpenLibrary{handle, PathOfLibrary(handle, soname)};
  }
  return Status(ErrorCode::kDevice,
                fmt::format("no {}: {} is not found. hint: pip install {}, or set {} to its folder",
                            name, sonames.front(), wheel, kPathVariable));
}

Result<OpenLibrary> OpenOptionalLibrary(const LibrarySearch& search, const std::string& name,
                                        const std::string& soname, const std::string& wheel) {
  Result<OpenLibrary> library = OpenToolkitLibrary(search, name, {soname}, wheel);
  if (library.ok()) return library;
  return Status(ErrorCode::kUnsupported, library.status().message());
}

std::string PathOfLibrary(void* handle, const std::string& otherwise) {
  const link_map* map = nullptr;
  const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0;
  return known && map != nullptr && *map->l_name != '\0' ? map->l_name : otherwise;
}

Status LacksFunction(const std::string& path, const char* symbol, const std::string& wheel) {
  return Status(ErrorCode::kUnsupported,
                fmt::format("{} has no {}. hint: pip install --upgrade {}", path, symbol, wheel));
}

std::string VersionOfNumber(int64_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace ridge::cuda
