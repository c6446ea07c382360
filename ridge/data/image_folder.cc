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
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "ridge/core/owned_fd.h"
#include "ridge/core/rounding.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/csv_cells.h"
#include "ridge/data/image/crop.h"
#include "ridge/data/image/decode.h"
#include "ridge/data/preprocessing.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostSide = 1 << 14;    // of the model's image
constexpr int64_t kMostScaled = 1 << 24;  // of a side before the crop; Pillow's boxes are floats
constexpr int64_t kMostFileBytes = int64_t{1} << 31;
constexpr int kMostDepth = 32;
constexpr const char* kSuffixes = ".jpg, .jpeg, .png, .webp";

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// ---- the argument

struct Argument {
  std::string folder;
  std::optional<ImageSize> size;
  ImageFit fit = ImageFit::kCrop;
  ResizeFilter filter = ResizeFilter::kBilinear;
};

std::optional<int64_t> ParseSide(std::string_view text) {
  int64_t side = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), side);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  if (!whole || side < 1 || side > kMostSide) return std::nullopt;
  return side;
}

// "224" or "HxW"
std::optional<ImageSize> ParseSize(std::string_view text) {
  const size_t x = text.find('x');
  const auto height = ParseSide(text.substr(0, x));
  const auto width = x == std::string_view::npos ? height : ParseSide(text.substr(x + 1));
  if (!height || !width) return std::nullopt;
  return ImageSize{*height, *width};
}

// False when there is no such option, or not with this value.
bool TakeOption(std::string_view key, std::string_view value, Argument& argument) {
  if (key == "size") {
    argument.size = ParseSize(value);
    return argument.size.has_value();
  }
  if (key == "fit") {
    argument.fit = value == "stretch" ? ImageFit::kStretch : ImageFit::kCrop;
    return value == "stretch" || value == "crop";
  }
  argument.filter = value == "nearest" ? ResizeFilter::kNearest : ResizeFilter::kBilinear;
  return key == "resize" && (value == "nearest" || value == "bilinear");
}

// Options stand last; a folder's name may have commas, but no comma with a = behind it.
Result<Argument> ParseArgument(const std::string& name, std::string_view text) {
  Argument argument;
  for (;;) {
    const size_t comma = text.rfind(',');
    const size_t equals = comma == std::string_view::npos ? comma : text.find('=', comma);
    if (equals == std::string_view::npos) break;
    const std::string_view key = text.substr(comma + 1, equals - comma - 1);
    const std::string_view value = text.substr(equals + 1);
    if (!TakeOption(key, value, argument)) {
      return InvalidArgument(fmt::format(
          "data '{}': does not know {}={}; known are size=N or size=HxW (1 to {}), fit=crop or "
          "fit=stretch, resize=bilinear or resize=nearest",
          name, key, value, kMostSide));
    }
    text = text.substr(0, comma);
  }
  argument.folder = text;
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

// What every picture becomes.
struct Target {
  ImageSize size;
  int channels = 3;
  ImageFit fit = ImageFit::kCrop;
  ResizeFilter filter = ResizeFilter::kBilinear;

  ResizeCall Call(const ImageHeader& header) const {
    return FitPicture({header.height, header.width}, size, fit, filter, channels);
  }
  TensorType type() const {
    if (channels == 1) return {DType::kU8, {size.height, size.width}};
    return {DType::kU8, {size.height, size.width, channels}};
  }
};

struct Picture {
  int64_t path_end = 0;  // in the text of all paths; it begins where the one before ends
  int64_t file_bytes = 0;
  int64_t label = 0;
};

// The largest of what a picture takes while it is read.
struct ReadBytes {
  int64_t file = 0, decoded = 0, resize = 0;

  int64_t total() const { return file + decoded + resize; }
};

ReadBytes BytesToRead(int64_t file_bytes, const ImageHeader& header, const Target& target) {
  return {RoundUp(file_bytes, kAlignment),
          RoundUp(DecodedBytes(header) + kResizeSlackBytes, kAlignment),
          RoundUp(ResizeScratchBytes(target.Call(header)), kAlignment)};
}

struct Index {
  std::string paths;
  std::vector<Picture> pictures;
  ReadBytes most;
  int64_t most_heap = 0;  // of a decoder

  std::string_view PathOf(int64_t picture) const {
    const auto at = static_cast<size_t>(picture);
    const int64_t begin = at == 0 ? 0 : pictures[at - 1].path_end;
    return std::string_view(paths).substr(static_cast<size_t>(begin),
                                          static_cast<size_t>(pictures[at].path_end - begin));
  }
};

// A picture that is a thousand times longer than wide would be scaled to billions of pixels.
Status CheckScaled(const std::string& path, const ImageHeader& header, const Target& target) {
  const ResizeCall call = target.Call(header);
  if (call.x.out <= kMostScaled && call.y.out <= kMostScaled) return Status();
  return BadData(path,
                 fmt::format("has {}x{} pixels, too thin to be cropped to {}x{}", header.width,
                             header.height, target.size.width, target.size.height));
}

Status AddPicture(const std::string& path, int64_t label, const Target& target,
                  std::vector<char>& buffer, Index& index) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
  RIDGE_ASSIGN_OR_RETURN(const ImageHeader header, ReadHeader(path, file, buffer));
  RIDGE_RETURN_IF_ERROR(CheckScaled(path, header, target));
  const ReadBytes bytes = BytesToRead(file.bytes, header, target);
  index.most.file = std::max(index.most.file, bytes.file);
  index.most.decoded = std::max(index.most.decoded, bytes.decoded);
  index.most.resize = std::max(index.most.resize, bytes.resize);
  index.most_heap = std::max(index.most_heap, header.decoder_bytes);
  index.paths += path;
  index.pictures.push_back({static_cast<int64_t>(index.paths.size()), file.bytes, label});
  return Status();
}

class ImageFolderSource : public Source {
 public:
  ImageFolderSource(std::string name, std::vector<Field> fields, const Target& target, Index index)
      : Source(std::move(name), std::move(fields), static_cast<int64_t>(index.pictures.size())),
        target_(target),
        index_(std::move(index)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return ReadImage(at.index, scratch, static_cast<uint8_t*>(out));
    std::memcpy(out, &index_.pictures[static_cast<size_t>(at.index)].label, sizeof(int64_t));
    return Status();
  }

  int64_t scratch_bytes() const override { return index_.most.total(); }
  int64_t heap_bytes() const override { return index_.most_heap; }
  bool reads_slowly() const override { return true; }
  int64_t resident_bytes() const override {
    return static_cast<int64_t>(index_.paths.capacity() +
                                index_.pictures.capacity() * sizeof(Picture));
  }

 private:
  Status ReadImage(int64_t index, std::span<char> scratch, uint8_t* out) const {
    const std::string path(index_.PathOf(index));
    const int64_t file_bytes = index_.pictures[static_cast<size_t>(index)].file_bytes;
    RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
    RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                           ReadBeginning(file.fd.get(), path, scratch.data(), file_bytes));
    if (got != file_bytes || file.bytes != file_bytes) return Changed(path);
    const auto bytes = Bytes(scratch.data(), file_bytes);
    const auto header = ReadImageHeader(bytes, /*whole=*/true);
    if (!header.ok()) return BadData(path, header.status().message());
    return DecodeInto(path, bytes, **header, scratch, out);
  }

  Status DecodeInto(const std::string& path, std::span<const uint8_t> bytes,
                    const ImageHeader& header, std::span<char> scratch, uint8_t* out) const {
    const ReadBytes &most = index_.most,
                    needed = BytesToRead(static_cast<int64_t>(bytes.size()), header, target_);
    if (needed.decoded > most.decoded || needed.resize > most.resize) return Changed(path);
    auto* pixels = reinterpret_cast<uint8_t*>(scratch.data() + most.file);
    const Status decoded = DecodeImage(bytes, header, {pixels, static_cast<size_t>(most.decoded)});
    if (!decoded.ok()) return BadData(path, decoded.message());
    if (target_.channels == 1) RgbToLuma(pixels, header.pixels());
    const auto rest = scratch.subspan(static_cast<size_t>(most.file + most.decoded));
    Resize(target_.Call(header), pixels, rest, out);
    return Status();
  }

  static Status Changed(const std::string& path) {
    return BadData(path, "has changed since the data was opened");
  }

  const Target target_;
  const Index index_;
};

// ---- opening

// The model's image, as far as its dimensions say what is what.
std::optional<Target> TargetOf(const std::vector<Field>& model_inputs) {
  const Field* input = FindFieldByName("image", model_inputs);
  if (input == nullptr) return std::nullopt;
  const Dims& dims = input->type.dims;
  Target target;
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  if (dims.size() == 2) {
    target.size = {dims[0], dims[1]};
    target.channels = 1;
  } else if (dims.size() == 3 && is_channels(dims[0])) {
    target.size = {dims[1], dims[2]};
    target.channels = static_cast<int>(dims[0]);
  } else if (dims.size() == 3 && is_channels(dims[2])) {
    target.size = {dims[0], dims[1]};
    target.channels = static_cast<int>(dims[2]);
  } else {
    return std::nullopt;
  }
  return target;
}

Result<Target> MakeTarget(const std::string& name, const Argument& argument,
                          const std::vector<Field>& model_inputs) {
  const std::optional<Target> model = TargetOf(model_inputs);
  if (!model && !argument.size) {
    return InvalidArgument(fmt::format(
        "data '{}': no size is given, and the model has no image of 1 or 3 channels that says one. "
        "hint: {},size=224",
        name, name));
  }
  Target target = model.value_or(Target());
  if (argument.size) target.size = *argument.size;
  const Field* input = FindFieldByName("image", model_inputs);
  const bool flat = input != nullptr && input->type.dims.size() == 1;
  if (flat && input->type.elements() == target.size.height * target.size.width) target.channels = 1;
  target.fit = argument.fit;
  target.filter = argument.filter;
  return target;
}

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
                          const std::vector<std::string>& folders, const Target& target,
                          std::vector<std::string>& others) {
  Index index;
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
    for (const std::string& picture : tree.pictures) {
      RIDGE_RETURN_IF_ERROR(AddPicture(picture, label, target, buffer, index));
    }
    others.insert(others.end(), tree.others.begin(), tree.others.end());
  }
  index.paths.shrink_to_fit();
  index.pictures.shrink_to_fit();
  std::vector<Field> fields = {{"image", target.type()}, LabelField(classes)};
  return SourcePtr(
      std::make_shared<ImageFolderSource>(name, std::move(fields), target, std::move(index)));
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
  RIDGE_ASSIGN_OR_RETURN(const Target target, MakeTarget(name, argument, options.model_inputs));
  DataSplits splits;
  std::vector<std::string> others;
  const std::pair<const std::string&, SourcePtr&> further[] = {{sets.validation, splits.validation},
                                                               {sets.test, splits.test}};
  for (const auto& [folder, source] : further) {
    if (folder.empty()) continue;
    RIDGE_ASSIGN_OR_RETURN(const auto names, ClassNames(name, folder));
    RIDGE_RETURN_IF_ERROR(CheckClasses(name, folder, names, sets.train, folders));
    RIDGE_RETURN_IF_ERROR(CheckClasses(name, sets.train, folders, folder, names));
    RIDGE_ASSIGN_OR_RETURN(source, OpenSet(name, folder, classes, folders, target, others));
  }
  RIDGE_ASSIGN_OR_RETURN(splits.train, OpenSet(name, sets.train, classes, folders, target, others));
  if (!others.empty()) splits.notes.push_back(LeftOutNote(name, others));
  splits.sizes = SizesOf(classes);
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = classes;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> ImageFolderFacts(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const Sets sets, FindSets(name, argument.folder));
  RIDGE_ASSIGN_OR_RETURN(const auto classes, LabelClasses(name, sets.train, options));
  DataFacts facts;
  if (argument.size) facts.fields.push_back({"image", Target{.size = *argument.size}.type()});
  facts.fields.push_back(LabelField(classes));
  facts.sizes = SizesOf(classes);
  return facts;
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
