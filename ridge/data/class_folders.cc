#include "ridge/data/class_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "ridge/data/container/file_list.h"
#include "ridge/data/csv_cells.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDepth = 32;

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

bool IsHidden(const std::string& name) { return name.starts_with('.'); }

struct Listing {
  std::vector<std::string> folders, files, others;  // names, in the order of their bytes
};

Result<Listing> List(const FileKind& kind, const std::string& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    std::error_code ignored;
    if (IsHidden(name)) continue;
    const bool is_folder = at->is_directory(ignored);
    (is_folder ? listing.folders : kind.Has(name) ? listing.files : listing.others).push_back(name);
  }
  if (error) return BadData(folder, "cannot be listed: " + error.message());
  for (auto* names : {&listing.folders, &listing.files, &listing.others})
    std::sort(names->begin(), names->end());
  return listing;
}

// All files below a folder, as paths; others are what was left out.
struct Tree {
  std::vector<std::string> files;
  std::vector<std::string> others;
};

Status Walk(const FileKind& kind, const std::string& folder, int depth, Tree& tree) {
  if (depth > kMostDepth)
    return BadData(folder, fmt::format("folders are nested more than {} deep", kMostDepth));
  RIDGE_ASSIGN_OR_RETURN(const Listing listing, List(kind, folder));
  for (const std::string& name : listing.files) tree.files.push_back(folder + "/" + name);
  for (const std::string& name : listing.others) tree.others.push_back(folder + "/" + name);
  for (const std::string& name : listing.folders)
    RIDGE_RETURN_IF_ERROR(Walk(kind, folder + "/" + name, depth + 1, tree));
  return Status();
}

bool Holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status FindSets(const FileKind& kind, const std::string& spec, const std::string& folder,
                ClassFolders& found) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return BadData(spec, "there is no folder " + folder);
  RIDGE_ASSIGN_OR_RETURN(const Listing listing, List(kind, folder));
  const auto is_set = [](const std::string& set) {
    return set == "train" || set == "val" || set == "test";
  };
  const bool all_sets = std::all_of(listing.folders.begin(), listing.folders.end(), is_set);
  found.train = folder;
  if (!all_sets || !Holds(listing.folders, "train")) return Status();
  const auto path = [&](const std::string& set) {
    return Holds(listing.folders, set) ? folder + "/" + set : "";
  };
  found.train = path("train");
  found.validation = path("val");
  found.test = path("test");
  return Status();
}

bool IsPattern(const std::string& path) {
  std::error_code ignored;
  return path.find_first_of("*?{") != std::string::npos && !fs::exists(path, ignored);
}

Status MatchPattern(const FileKind& kind, const std::string& spec, const std::string& pattern,
                    ClassFolders& found) {
  RIDGE_ASSIGN_OR_RETURN(const auto files, FindFiles(spec, pattern));
  for (const std::string& file : files) {
    const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
    (kind.Has(file) ? found.matches[folder.filename().native()] : found.other_matches)
        .push_back(file);
  }
  if (found.matches.empty())
    return BadData(spec, fmt::format("no file that matches {} is a {} ({})", pattern, kind.name,
                                     kind.SuffixList()));
  found.train = pattern;
  for (const auto& [name, ignored] : found.matches) found.folders.push_back(name);
  return Status();
}

// The folders of a set, each a class.
Result<std::vector<std::string>> ClassNames(const FileKind& kind, const std::string& spec,
                                            const std::string& folder) {
  RIDGE_ASSIGN_OR_RETURN(Listing listing, List(kind, folder));
  if (!listing.folders.empty()) return std::move(listing.folders);
  return BadData(spec, fmt::format("{} holds no folders; each class needs one: {}/CLASS/{}", folder,
                                   folder, kind.example));
}

// The classes of the labels: those of the run whose preprocessing is given, else the folders'.
Status TakeClasses(const std::string& spec, const DataOptions& options, ClassFolders& found) {
  found.classes = found.folders;
  for (std::string& name : found.classes) MakeUtf8(name);
  if (options.preprocessing == nullptr || options.preprocessing->classes.empty()) return Status();
  const std::vector<std::string>& classes = options.preprocessing->classes;
  for (const std::string& name : found.classes) {
    if (Holds(classes, name)) continue;
    const std::string folder = found.matches.empty() ? found.train + "/" + name : name;
    return BadData(
        spec, fmt::format("{} is none of the run's classes: {}", folder, fmt::join(classes, ", ")));
  }
  found.classes = classes;
  return Status();
}

Result<Tree> FilesOfClass(const FileKind& kind, const ClassFolders& folders,
                          const std::string& path, const std::string& of_class) {
  Tree tree;
  if (!folders.matches.empty()) {
    tree.files = folders.matches.at(of_class);
    return tree;
  }
  RIDGE_RETURN_IF_ERROR(Walk(kind, path, /*depth=*/0, tree));
  return tree;
}

// `what` lacks a class of `other`.
Status CheckClasses(const std::string& spec, const std::string& what,
                    const std::vector<std::string>& classes, const std::string& other,
                    const std::vector<std::string>& wanted) {
  for (const std::string& wish : wanted) {
    if (!Holds(classes, wish))
      return BadData(spec, fmt::format("{} has no folder '{}', which {} has", what, wish, other));
  }
  return Status();
}

std::string LeftOutNote(const FileKind& kind, const std::string& spec,
                        const std::vector<std::string>& others) {
  const bool one = others.size() == 1;
  return fmt::format("{}: {} {} left out, as {} suffix is not one of {}: {}{}", spec, others.size(),
                     one ? "file is" : "files are", one ? "its" : "their", kind.SuffixList(),
                     others.front(), one ? "" : " and others");
}

}  // namespace

std::string FileKind::SuffixList() const { return fmt::format("{}", fmt::join(suffixes, ", ")); }

bool FileKind::Has(const std::string& path) const {
  std::string suffix = fs::path(path).extension().native();
  for (char& c : suffix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(suffixes.begin(), suffixes.end(), suffix) != suffixes.end();
}

std::string WithoutSlash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

Result<ClassFolders> FindClassFolders(const FileKind& kind, const std::string& spec,
                                      const std::string& folder, const DataOptions& options) {
  ClassFolders found;
  if (IsPattern(folder)) {
    RIDGE_RETURN_IF_ERROR(MatchPattern(kind, spec, folder, found));
  } else {
    RIDGE_RETURN_IF_ERROR(FindSets(kind, spec, folder, found));
    RIDGE_ASSIGN_OR_RETURN(found.folders, ClassNames(kind, spec, found.train));
  }
  RIDGE_RETURN_IF_ERROR(TakeClasses(spec, options, found));
  return found;
}

Field LabelField(const ClassFolders& folders) {
  return {"label", {DType::kI64, {}}, static_cast<int64_t>(folders.classes.size())};
}

std::vector<ModelSize> ClassSizes(const ClassFolders& folders) {
  return {{"classes", static_cast<int64_t>(folders.classes.size())}};
}

Status WalkClassFiles(const FileKind& kind, const std::string& spec, const ClassFolders& folders,
                      const std::string& set, const DataOptions& options, const AddClassFile& add,
                      std::vector<std::string>& others) {
  const BadRecordsPtr& bad_records = options.bad_records;
  for (const std::string& of_class : folders.folders) {
    std::string name = of_class;
    MakeUtf8(name);
    const auto label = std::find(folders.classes.begin(), folders.classes.end(), name);
    const std::string path = set + "/" + of_class;
    RIDGE_ASSIGN_OR_RETURN(Tree tree, FilesOfClass(kind, folders, path, of_class));
    if (tree.files.empty())
      return BadData(spec, fmt::format("{} holds no {} ({})", path, kind.name, kind.SuffixList()));
    std::sort(tree.files.begin(), tree.files.end());
    size_t good = 0;
    for (const std::string& file : tree.files) {
      const Status added = add(file, label - folders.classes.begin());
      if (added.ok()) ++good;
      if (added.ok()) continue;
      if (bad_records == nullptr || !bad_records->skips() || !IsBadRecord(added)) return added;
      RIDGE_RETURN_IF_ERROR(bad_records->Add(file, added.message()));
    }
    if (good == 0)
      return BadData(spec, fmt::format("{} holds no {} that can be read", path, kind.name));
    others.insert(others.end(), tree.others.begin(), tree.others.end());
  }
  return Status();
}

Result<DataSplits> OpenClassSets(const FileKind& kind, const std::string& spec,
                                 const ClassFolders& folders, const OpenClassSet& open) {
  DataSplits splits;
  std::vector<std::string> others = folders.other_matches;
  const std::pair<const std::string&, SourcePtr&> further[] = {
      {folders.validation, splits.validation}, {folders.test, splits.test}};
  for (const auto& [set, source] : further) {
    if (set.empty()) continue;
    RIDGE_ASSIGN_OR_RETURN(const auto names, ClassNames(kind, spec, set));
    RIDGE_RETURN_IF_ERROR(CheckClasses(spec, set, names, folders.train, folders.folders));
    RIDGE_RETURN_IF_ERROR(CheckClasses(spec, folders.train, folders.folders, set, names));
    RIDGE_ASSIGN_OR_RETURN(source, open(set, others));
  }
  RIDGE_ASSIGN_OR_RETURN(splits.train, open(folders.train, others));
  if (!others.empty()) splits.notes.push_back(LeftOutNote(kind, spec, others));
  splits.sizes = ClassSizes(folders);
  return splits;
}

Result<std::vector<std::string>> FindFiles(const FileKind& kind, const std::string& folder) {
  Tree tree;
  RIDGE_RETURN_IF_ERROR(Walk(kind, folder, /*depth=*/0, tree));
  if (tree.files.empty())
    return BadData(folder, fmt::format("holds no {} ({})", kind.name, kind.SuffixList()));
  std::sort(tree.files.begin(), tree.files.end());
  return std::move(tree.files);
}

bool HoldsClassFiles(const FileKind& kind, const std::string& folder) {
  const auto found = FindClassFolders(kind, "", folder, {});
  if (!found.ok() || !found->matches.empty()) return false;
  for (const std::string& name : found->folders) {
    Tree tree;
    if (Walk(kind, found->train + "/" + name, /*depth=*/0, tree).ok() && !tree.files.empty())
      return true;
  }
  return false;
}

void FileIndex::Add(const std::string& path, const FileStamp& stamp, int64_t label) {
  most_file_bytes_ = std::max(most_file_bytes_, stamp.bytes);
  paths_ += path;
  files_.push_back({static_cast<int64_t>(paths_.size()), stamp, label});
}

void FileIndex::ShrinkToFit() {
  paths_.shrink_to_fit();
  files_.shrink_to_fit();
}

std::string FileIndex::Path(int64_t file) const {
  const auto at = static_cast<size_t>(file);
  const auto begin = at == 0 ? 0 : static_cast<size_t>(files_[at - 1].path_end);
  return paths_.substr(begin, static_cast<size_t>(files_[at].path_end) - begin);
}

int64_t FileIndex::resident_bytes() const {
  return static_cast<int64_t>(paths_.capacity() + files_.capacity() * sizeof(File));
}

}  // namespace ridge
