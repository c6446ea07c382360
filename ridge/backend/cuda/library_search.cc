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
constexpr std::string_view kAbsent = "cannot open shared object file: No such file or directory";

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

// One search: what it opens, or why the first file that is there does not load.
class Search {
 public:
  // Null: there is none, or none that loads.
  void* Open(const LibrarySearch& places, const std::string& soname) {
    if (void* handle = OpenIn(places.before, soname)) return handle;
    if (void* handle = ::dlopen(soname.c_str(), kMode | RTLD_NOLOAD)) return handle;
    if (void* handle = OpenIn(places.middle, soname)) return handle;
    if (void* handle = Try(soname)) return handle;
    return OpenIn(places.behind, soname);
  }
  // "/usr/lib/libnvrtc.so.13 does not load: file too short"; "": no file is there.
  const std::string& broken() const { return broken_; }

 private:
  // The loader is given the whole path.
  void* OpenIn(const std::vector<std::string>& folders, const std::string& soname) {
    std::error_code error;
    for (const std::string& folder : folders) {
      const fs::path file = fs::path(folder) / soname;
      if (folder.empty() || !fs::exists(file, error)) continue;
      if (void* handle = Try(file)) return handle;
    }
    return nullptr;
  }

  void* Try(const std::string& file) {
    if (void* handle = ::dlopen(file.c_str(), kMode)) return handle;
    const char* const words = ::dlerror();
    if (broken_.empty() && words != nullptr) broken_ = Broken(file, words);
    return nullptr;
  }

  // The words begin with the file, or with one that it needs.  "": the file is not there.
  static std::string Broken(const std::string& file, std::string_view words) {
    const bool of_file = words.starts_with(file + ": ");
    if (of_file) words.remove_prefix(file.size() + 2);
    if (of_file && words == kAbsent) return "";
    return fmt::format("{} does not load: {}", file, words);
  }

  std::string broken_;
};

std::string WhyNone(const Search& search, const std::string& soname) {
  return search.broken().empty() ? soname + " is not found" : search.broken();
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

Result<OpenLibrary> FindLibrary(const LibrarySearch& places, const std::string& soname) {
  Search search;
  if (void* handle = search.Open(places, soname))
    return OpenLibrary{handle, PathOfLibrary(handle, soname)};
  return Status(ErrorCode::kDevice, WhyNone(search, soname));
}

Result<OpenLibrary> OpenToolkitLibrary(const LibrarySearch& places, const std::string& name,
                                       const std::string& soname, const std::string& wheel) {
  Search search;
  if (void* handle = search.Open(places, soname))
    return OpenLibrary{handle, PathOfLibrary(handle, soname)};
  return Status(
      ErrorCode::kDevice,
      fmt::format("no {}: {}. hint: pip install {}{}, or set {} to its folder", name,
                  WhyNone(search, soname), search.broken().empty() ? "" : "--force-reinstall ",
                  wheel, kPathVariable));
}

Result<OpenLibrary> OpenOptionalLibrary(const LibrarySearch& places, const std::string& name,
                                        const std::string& soname, const std::string& wheel) {
  Result<OpenLibrary> library = OpenToolkitLibrary(places, name, soname, wheel);
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
