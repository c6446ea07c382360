// The list of files is one text of all paths and an entry a file, so that a million files take tens
// of megabytes.  Two files are never open at once, and a file's size and header are checked again
// when it is read: it may have been replaced.
#include "ridge/data/image_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "ridge/core/owned_fd.h"
#include "ridge/core/rounding.h"
#include "ridge/data/csv_cells.h"
#include "ridge/data/image/picture.h"
#include "ridge/data/picture_options.h"
#include "ridge/data/preprocessing.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostFileBytes = int64_t{1} << 31;
constexpr int kMostDepth = 32;
constexpr const char* kSuffixes = ".jpg, .jpeg, .png, .webp";

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// ---- the argument

struct Argument {
  std::string folder;
  PictureOptions pictures;
};

Result<Argument> ParseArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, PictureKeys()));
  Argument argument;
  for (const auto& [key, value] : spec.options)
    RIDGE_RETURN_IF_ERROR(TakePictureOption(name, key, value, argument.pictures));
  argument.folder = spec.path;
  while (argument.folder.size() > 1 && argument.folder.back() == '/') argument.folder.pop_back();
  return argument;
}

// ---- folders

bool IsHidden(const std::string& name) { return name.starts_with('.'); }

bool IsPictureName(const std::string& name) {
  std::string suffix = fs::path(name).extension().native();
  for (char& c : suffix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return suffix == ".jpg" || suffix == ".jpeg" || suffix == ".png" || suffix == ".webp";
}

struct Listing {
  std::vector<std::string> folders, pictures, others;  // names, in the order of their bytes
};

Result<Listing> List(const std::string& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    std::error_code ignored;
    if (IsHidden(name)) continue;
    const bool is_folder = at->is_directory(ignored);
    (is_folder             ? listing.folders
     : IsPictureName(name) ? listing.pictures
                           : listing.others)
        .push_back(name);
  }
  if (error) return BadData(folder, "cannot be listed: " + error.message());
  for (auto* names : {&listing.folders, &listing.pictures, &listing.others})
    std::sort(names->begin(), names->end());
  return listing;
}

// All pictures below a folder, as paths; others count what was left out.
struct Tree {
  std::vector<std::string> pictures;
  std::vector<std::string> others;
};

Status Walk(const std::string& folder, int depth, Tree& tree) {
  if (depth > kMostDepth)
    return BadData(folder, fmt::format("folders are nested more than {} deep", kMostDepth));
  RIDGE_ASSIGN_OR_RETURN(const Listing listing, List(folder));
  for (const std::string& name : listing.pictures) tree.pictures.push_back(folder + "/" + name);
  for (const std::string& name : listing.others) tree.others.push_back(folder + "/" + name);
  for (const std::string& name : listing.folders)
    RIDGE_RETURN_IF_ERROR(Walk(folder + "/" + name, depth + 1, tree));
  return Status();
}

// The folders of the sets; "" where there is none.
struct Sets {
  std::string train, validation, test;
};

bool Holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Sets> FindSets(const std::string& name, const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return BadData(name, "there is no folder " + folder);
  RIDGE_ASSIGN_OR_RETURN(const Listing listing, List(folder));
  const auto is_set = [](const std::string& set) {
    return set == "train" || set == "val" || set == "test";
  };
  const bool all_sets = std::all_of(listing.folders.begin(), listing.folders.end(), is_set);
  if (!all_sets || !Holds(listing.folders, "train")) return Sets{folder, "", ""};
  const auto path = [&](const std::string& set) {
    return Holds(listing.folders, set) ? folder + "/" + set : "";
  };
  return Sets{path("train"), path("val"), path("test")};
}

// The folders of a set, each a class.
Result<std::vector<std::string>> ClassNames(const std::string& name, const std::string& folder) {
  RIDGE_ASSIGN_OR_RETURN(Listing listing, List(folder));
  if (!listing.folders.empty()) return std::move(listing.folders);
  return BadData(
      name, fmt::format("{} holds no folders; each class needs one: {}/CLASS/picture.jpg", folder,
                        folder));
}

// The classes of the labels: those of the run whose preprocessing is given, else the folders'.
Result<std::vector<std::string>> LabelClasses(const std::string& name, const std::string& folder,
                                              const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<std::string> folders, ClassNames(name, folder));
  for (std::string& found : folders) MakeUtf8(found);
  if (options.preprocessing == nullptr || options.preprocessing->classes.empty()) return folders;
  const std::vector<std::string>& classes = options.preprocessing->classes;
  for (const std::string& found : folders) {
    if (Holds(classes, found)) continue;
    return BadData(name, fmt::format("{}/{} is none of the run's classes: {}", folder, found,
                                     fmt::join(classes, ", ")));
  }
  return classes;
}

// ---- files

// Reads up to `bytes` from the beginning.
Result<int64_t> ReadBeginning(int fd, const std::string& path, char* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, to + done, static_cast<size_t>(bytes - done), done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return BadData(path, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    done += got;
  }
  return done;
}

struct OpenFile {
  OwnedFd fd;
  int64_t bytes = 0;
};

Result<OpenFile> OpenPicture(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
    return BadData(path, std::string("cannot be opened: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return BadData(path, "is no regular file");
  if (info.st_size > kMostFileBytes) {
    return BadData(path,
                   fmt::format("has {} bytes, at most {} are read", info.st_size, kMostFileBytes));
  }
  return OpenFile{std::move(fd), info.st_size};
}

std::span<const uint8_t> Bytes(const char* data, int64_t count) {
  return {reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(count)};
}

// A file that has still as many bytes.
Status ReadWhole(const std::string& path, int64_t bytes, char* to) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, ReadBeginning(file.fd.get(), path, to, bytes));
  if (got != bytes || file.bytes != bytes) return BadData(path, kPictureChanged);
  return Status();
}

// The header, from as much of the file as it takes.
Result<ImageHeader> ReadHeader(const std::string& path, const OpenFile& file,
                               std::vector<char>& buffer) {
  constexpr int64_t kFirst = 4 << 10, kFactor = 16;
  for (int64_t wanted = kFirst;; wanted *= kFactor) {
    const int64_t bytes = std::min(wanted, file.bytes);
    if (static_cast<int64_t>(buffer.size()) < bytes) buffer.resize(static_cast<size_t>(bytes));
    RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                           ReadBeginning(file.fd.get(), path, buffer.data(), bytes));
    const bool whole = got < bytes || bytes == file.bytes;
    const auto header = ReadImageHeader(Bytes(buffer.data(), got), whole);
    if (!header.ok()) return BadData(path, header.status().message());
    if (*header) return **header;
  }
}

// ---- the source

struct Picture {
  int64_t path_end = 0;  // in the text of all paths; it begins where the one before ends
  int64_t file_bytes = 0;
  int64_t label = 0;
};

struct Index {
  std::string paths;
  std::vector<Picture> pictures;
  int64_t most_file_bytes = 0;

  std::string_view PathOf(int64_t picture) const {
    const auto at = static_cast<size_t>(picture);
    const int64_t begin = at == 0 ? 0 : pictures[at - 1].path_end;
    return std::string_view(paths).substr(static_cast<size_t>(begin),
                                          static_cast<size_t>(pictures[at].path_end - begin));
  }
};

Status AddPicture(const std::string& path, int64_t label, PictureReader& reader,
                  std::vector<char>& buffer, Index& index) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
  RIDGE_ASSIGN_OR_RETURN(const ImageHeader header, ReadHeader(path, file, buffer));
  const Status admitted = reader.Admit(header);
  if (!admitted.ok()) return BadData(path, admitted.message());
  index.most_file_bytes = std::max(index.most_file_bytes, file.bytes);
  index.paths += path;
  index.pictures.push_back({static_cast<int64_t>(index.paths.size()), file.bytes, label});
  return Status();
}

class ImageFolderSource : public Source {
 public:
  ImageFolderSource(std::string name, std::vector<Field> fields, PictureReader reader, Index index)
      : Source(std::move(name), std::move(fields), static_cast<int64_t>(index.pictures.size())),
        reader_(std::move(reader)),
        index_(std::move(index)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return ReadImage(at, scratch, static_cast<uint8_t*>(out));
    std::memcpy(out, &index_.pictures[static_cast<size_t>(at.index)].label, sizeof(int64_t));
    return Status();
  }

  int64_t scratch_bytes() const override { return file_scratch() + reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override { return std::string(index_.PathOf(index)); }
  int64_t resident_bytes() const override {
    return static_cast<int64_t>(index_.paths.capacity() +
                                index_.pictures.capacity() * sizeof(Picture));
  }

 private:
  int64_t file_scratch() const { return RoundUp(index_.most_file_bytes, kAlignment); }

  Status ReadImage(SampleAt at, std::span<char> scratch, uint8_t* out) const {
    const std::string path(index_.PathOf(at.index));
    const int64_t file_bytes = index_.pictures[static_cast<size_t>(at.index)].file_bytes;
    {
      const StageTimer timer(at.stages, InputStage::kRead);
      RIDGE_RETURN_IF_ERROR(ReadWhole(path, file_bytes, scratch.data()));
    }
    const Status read =
        reader_.Read(Bytes(scratch.data(), file_bytes),
                     scratch.subspan(static_cast<size_t>(file_scratch())), out, at.crop, at.stages);
    return read.ok() ? read : BadData(path, read.message());
  }

  const PictureReader reader_;
  const Index index_;
};

// ---- opening

Field LabelField(const std::vector<std::string>& classes) {
  return {"label", {DType::kI64, {}}, static_cast<int64_t>(classes.size())};
}

std::vector<ModelSize> SizesOf(const std::vector<std::string>& classes) {
  return {{"classes", static_cast<int64_t>(classes.size())}};
}

std::string LeftOutNote(const std::string& name, const std::vector<std::string>& others) {
  const bool one = others.size() == 1;
  return fmt::format("{}: {} {} left out, as {} suffix is not one of {}: {}{}", name, others.size(),
                     one ? "file is" : "files are", one ? "its" : "their", kSuffixes,
                     others.front(), one ? "" : " and others");
}

// The pictures of one set, in the order of its class folders.
Result<SourcePtr> OpenSet(const std::string& name, const std::string& folder,
                          const std::vector<std::string>& classes,
                          const std::vector<std::string>& folders,
                          const PicturePreprocessing& pictures, const BadRecordsPtr& bad_records,
                          std::vector<std::string>& others) {
  Index index;
  PictureReader reader(pictures.target);
  std::vector<char> buffer;
  for (const std::string& of_class : folders) {
    std::string class_name = of_class;
    MakeUtf8(class_name);
    const auto label = std::find(classes.begin(), classes.end(), class_name) - classes.begin();
    Tree tree;
    const std::string path = folder + "/" + of_class;
    RIDGE_RETURN_IF_ERROR(Walk(path, /*depth=*/0, tree));
    if (tree.pictures.empty())
      return BadData(name, fmt::format("{} holds no picture ({})", path, kSuffixes));
    std::sort(tree.pictures.begin(), tree.pictures.end());
    const size_t before = index.pictures.size();
    for (const std::string& picture : tree.pictures) {
      const Status added = AddPicture(picture, label, reader, buffer, index);
      if (added.ok()) continue;
      if (bad_records == nullptr || !bad_records->skips() || !IsBadRecord(added)) return added;
      RIDGE_RETURN_IF_ERROR(bad_records->Add(picture, added.message()));
    }
    if (index.pictures.size() == before)
      return BadData(name, fmt::format("{} holds no picture that can be read", path));
    others.insert(others.end(), tree.others.begin(), tree.others.end());
  }
  index.paths.shrink_to_fit();
  index.pictures.shrink_to_fit();
  std::vector<Field> fields = {PictureField(pictures), LabelField(classes)};
  return SourcePtr(std::make_shared<ImageFolderSource>(name, std::move(fields), std::move(reader),
                                                       std::move(index)));
}

// `what` lacks a class of `other`.
Status CheckClasses(const std::string& name, const std::string& what,
                    const std::vector<std::string>& classes, const std::string& other,
                    const std::vector<std::string>& wanted) {
  for (const std::string& wish : wanted) {
    if (!Holds(classes, wish))
      return BadData(name, fmt::format("{} has no folder '{}', which {} has", what, wish, other));
  }
  return Status();
}

}  // namespace

Result<DataSplits> OpenImageFolder(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const Sets sets, FindSets(name, argument.folder));
  RIDGE_ASSIGN_OR_RETURN(const auto folders, ClassNames(name, sets.train));
  RIDGE_ASSIGN_OR_RETURN(const auto classes, LabelClasses(name, sets.train, options));
  RIDGE_ASSIGN_OR_RETURN(const PicturePreprocessing pictures,
                         PlanPictures(name, argument.pictures, options));
  DataSplits splits;
  std::vector<std::string> others;
  const std::pair<const std::string&, SourcePtr&> further[] = {{sets.validation, splits.validation},
                                                               {sets.test, splits.test}};
  for (const auto& [folder, source] : further) {
    if (folder.empty()) continue;
    RIDGE_ASSIGN_OR_RETURN(const auto names, ClassNames(name, folder));
    RIDGE_RETURN_IF_ERROR(CheckClasses(name, folder, names, sets.train, folders));
    RIDGE_RETURN_IF_ERROR(CheckClasses(name, sets.train, folders, folder, names));
    RIDGE_ASSIGN_OR_RETURN(
        source, OpenSet(name, folder, classes, folders, pictures, options.bad_records, others));
  }
  RIDGE_ASSIGN_OR_RETURN(splits.train, OpenSet(name, sets.train, classes, folders, pictures,
                                               options.bad_records, others));
  if (!others.empty()) splits.notes.push_back(LeftOutNote(name, others));
  splits.sizes = SizesOf(classes);
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = classes;
  preprocessing->pictures = pictures;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> ImageFolderFacts(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const Sets sets, FindSets(name, argument.folder));
  RIDGE_ASSIGN_OR_RETURN(const auto classes, LabelClasses(name, sets.train, options));
  DataFacts facts;
  if (const auto target = KnownTarget(argument.pictures, options))
    facts.fields.push_back({"image", target->type()});
  facts.fields.push_back(LabelField(classes));
  facts.sizes = SizesOf(classes);
  return facts;
}

Result<ImageHeader> ReadPictureHeader(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
  std::vector<char> buffer;
  return ReadHeader(path, file, buffer);
}

bool IsPictureFile(const std::string& path) { return IsPictureName(path); }

Result<std::vector<std::string>> FindPictures(const std::string& folder) {
  Tree tree;
  RIDGE_RETURN_IF_ERROR(Walk(folder, /*depth=*/0, tree));
  if (tree.pictures.empty())
    return BadData(folder, fmt::format("holds no picture ({})", kSuffixes));
  std::sort(tree.pictures.begin(), tree.pictures.end());
  return std::move(tree.pictures);
}

Result<SourcePtr> OpenPictures(const std::string& name, const std::vector<std::string>& paths,
                               const DataOptions& options, const BadPicture& on_bad) {
  RIDGE_ASSIGN_OR_RETURN(const PicturePreprocessing pictures,
                         PlanPictures(name, PictureOptions(), options));
  Index index;
  PictureReader reader(pictures.target);
  std::vector<char> buffer;
  for (const std::string& path : paths) {
    const Status status = AddPicture(path, /*label=*/0, reader, buffer, index);
    if (status.ok()) continue;
    if (!on_bad) return status;
    on_bad(path, status);
  }
  if (index.pictures.empty()) return SourcePtr();
  std::vector<Field> fields = {PictureField(pictures)};
  return SourcePtr(std::make_shared<ImageFolderSource>(name, std::move(fields), std::move(reader),
                                                       std::move(index)));
}

bool HoldsPictures(const std::string& text) {
  const auto argument = ParseArgument("", text);
  const auto sets = argument.ok() ? FindSets("", argument->folder) : argument.status();
  if (!sets.ok()) return false;
  const auto classes = ClassNames("", sets->train);
  if (!classes.ok()) return false;
  for (const std::string& name : *classes) {
    Tree tree;
    if (Walk(sets->train + "/" + name, /*depth=*/0, tree).ok() && !tree.pictures.empty())
      return true;
  }
  return false;
}

}  // namespace ridge
