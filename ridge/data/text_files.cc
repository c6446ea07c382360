#include "ridge/data/text_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "ridge/core/owned_fd.h"
#include "ridge/data/csv_cells.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDepth = 32;

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

struct Listing {
  std::vector<std::string> folders, files;  // names, in the order of their bytes
};

Result<Listing> List(const std::string& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    if (name.starts_with('.')) continue;
    std::error_code ignored;
    (at->is_directory(ignored) ? listing.folders : listing.files).push_back(name);
  }
  if (error) return BadData(folder, "cannot be listed: " + error.message());
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

Status Walk(const std::string& folder, int depth, std::vector<std::string>& paths) {
  if (depth > kMostDepth)
    return BadData(folder, fmt::format("folders are nested more than {} deep", kMostDepth));
  RIDGE_ASSIGN_OR_RETURN(const Listing listing, List(folder));
  for (const std::string& name : listing.files) paths.push_back(folder + "/" + name);
  for (const std::string& name : listing.folders)
    RIDGE_RETURN_IF_ERROR(Walk(folder + "/" + name, depth + 1, paths));
  return Status();
}

// Files that are no text, or were seen under another name.
class Chooser {
 public:
  // Whether the file is one of the data.
  bool Takes(const std::string& path) {
    const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return true;  // reading it tells
    if (!S_ISREG(info.st_mode)) return false;
    if (!seen_.emplace(info.st_dev, info.st_ino).second) {
      again_.push_back(path);
      return false;
    }
    std::array<char, 4096> start{};
    const ssize_t got = ::pread(file.get(), start.data(), start.size(), 0);
    if (got <= 0 || std::memchr(start.data(), 0, static_cast<size_t>(got)) == nullptr) return true;
    binary_.push_back(path);
    return false;
  }

  std::vector<std::string> Notes(const std::string& spec) const {
    std::vector<std::string> notes;
    const auto add = [&](const std::vector<std::string>& paths, const char* what) {
      if (paths.empty()) return;
      notes.push_back(
          fmt::format("{}: {} left out, as {}: {}{}", spec,
                      paths.size() == 1 ? "1 file is" : fmt::format("{} files are", paths.size()),
                      what, paths.front(), paths.size() == 1 ? "" : " and others"));
    };
    add(binary_, "zero bytes show that it is no text");
    add(again_, "the same file is read under another name");
    return notes;
  }

 private:
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<std::string> binary_, again_;
};

std::string FileClass(const std::string& path) {
  std::string name = fs::path(path).filename().native();
  if (name.ends_with(".txt") && name.size() > 4) name.resize(name.size() - 4);
  return name;
}

// The first folder below `root` on the way to the file; "" when it lies in `root` itself.
std::string FolderClass(const std::string& root, const std::string& path) {
  const size_t begin = root.size() + 1, end = path.find('/', begin);
  return end == std::string::npos ? "" : path.substr(begin, end - begin);
}

// All files of a folder.
Result<std::vector<TextFile>> FilesBelow(const std::string& root, const std::string& label,
                                         Chooser& chooser) {
  std::vector<std::string> paths;
  RIDGE_RETURN_IF_ERROR(Walk(root, /*depth=*/0, paths));
  std::vector<TextFile> files;
  for (const std::string& path : paths) {
    if (!chooser.Takes(path)) continue;
    const std::string of_class = label == "folder" ? FolderClass(root, path) : FileClass(path);
    if (of_class.empty())
      return BadData(path, "lies in no folder of a class. hint: label=file, or move it");
    files.push_back({path, of_class});
  }
  if (files.empty()) return BadData(root, "holds no text files");
  return files;
}

bool Holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<TextFileSets> FromFolder(const TextOptions& options, Chooser& chooser) {
  std::string root = options.path;
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  RIDGE_ASSIGN_OR_RETURN(const Listing listing, List(root));
  const bool in_sets =
      Holds(listing.folders, "train") &&
      std::all_of(listing.folders.begin(), listing.folders.end(), [](const std::string& name) {
        return name == "train" || name == "val" || name == "test";
      });
  const std::string train = in_sets ? root + "/train" : root;
  RIDGE_ASSIGN_OR_RETURN(const Listing of_train, List(train));
  std::string label = options.label;
  if (label.empty()) label = of_train.folders.empty() ? "file" : "folder";
  TextFileSets sets;
  RIDGE_ASSIGN_OR_RETURN(sets.train, FilesBelow(train, label, chooser));
  for (const auto& [name, set] : {std::pair{"val", &sets.validation}, {"test", &sets.test}}) {
    if (!in_sets || !Holds(listing.folders, name)) continue;
    RIDGE_ASSIGN_OR_RETURN(*set, FilesBelow(root + "/" + name, label, chooser));
  }
  return sets;
}

std::vector<std::string> PathsLike(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<TextFileSets> FromPattern(const std::string& spec, const TextOptions& options,
                                 Chooser& chooser) {
  TextFileSets sets;
  for (const std::string& path : PathsLike(options.path)) {
    if (!chooser.Takes(path)) continue;
    const std::string folder = fs::path(path).parent_path().filename().native();
    sets.train.push_back({path, options.label == "folder" ? folder : FileClass(path)});
  }
  if (sets.train.empty()) return BadData(spec, "there is no text file like " + options.path);
  return sets;
}

}  // namespace

Result<TextFileSets> FindTextFiles(const std::string& spec, const TextOptions& options) {
  std::error_code ignored;
  Chooser chooser;
  const auto find = [&]() -> Result<TextFileSets> {
    if (fs::is_directory(options.path, ignored)) return FromFolder(options, chooser);
    if (fs::exists(options.path, ignored)) {
      if (!chooser.Takes(options.path)) {
        return BadData(options.path,
                       "has zero bytes: it is no text in UTF-8. hint: iconv -f UTF-16 -t UTF-8");
      }
      TextFileSets sets;
      sets.train.push_back({options.path, FileClass(options.path)});
      return sets;
    }
    if (options.path.find_first_of("*?[") == std::string::npos)
      return BadData(spec, "there is no file or folder " + options.path);
    return FromPattern(spec, options, chooser);
  };
  RIDGE_ASSIGN_OR_RETURN(TextFileSets sets, find());
  for (auto* set : {&sets.train, &sets.validation, &sets.test}) {
    for (TextFile& file : *set) MakeUtf8(file.of_class);
  }
  sets.notes = chooser.Notes(spec);
  return sets;
}

std::vector<std::string> ClassesOf(const std::vector<TextFile>& files) {
  std::set<std::string> names;
  for (const TextFile& file : files) names.insert(file.of_class);
  return {names.begin(), names.end()};
}

}  // namespace ridge
