// The classes are counted over the masks of all sets, by threads; a mask that cannot be read is
// told when its set is opened.
#include "ridge/data/mask_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "ridge/core/files.h"
#include "ridge/core/rounding.h"
#include "ridge/core/threads.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/image/decode.h"
#include "ridge/data/image/picture.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/picture_file.h"
#include "ridge/data/picture_options.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAlignment = 64;
constexpr int kNoClass = 255;  // of a pixel in a file
constexpr const char* kImages = "/images";
constexpr const char* kMasks = "/masks";

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// ---- the argument

struct Argument {
  std::string folder;
  PictureOptions pictures;
  std::optional<int64_t> classes;
};

Result<Argument> ParseArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  std::vector<std::string> keys = PictureKeys();
  keys.push_back("classes");
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, keys));
  Argument argument;
  for (const auto& [key, value] : spec.options) {
    if (key != "classes") {
      RIDGE_RETURN_IF_ERROR(TakePictureOption(name, key, value, argument.pictures));
      continue;
    }
    int64_t classes = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), classes);
    const bool whole = error == std::errc() && rest == value.data() + value.size();
    if (!whole || classes < 1 || classes > kMostMaskClasses) {
      return InvalidArgument(
          fmt::format("data '{}': classes is '{}'; it must be a number from 1 to "
                      "{}",
                      name, value, kMostMaskClasses));
    }
    argument.classes = classes;
  }
  argument.folder = WithoutSlash(spec.path);
  return argument;
}

// ---- folders

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool IsSet(const std::string& folder) {
  return IsFolder(folder + kImages) && IsFolder(folder + kMasks);
}

struct SetFolders {
  std::string train, validation, test;  // "" where there is none
};

Result<SetFolders> FindSets(const std::string& name, const std::string& folder) {
  if (!IsFolder(folder)) return BadData(name, "there is no folder " + folder);
  if (IsSet(folder)) return SetFolders{folder, "", ""};
  if (!IsSet(folder + "/train")) {
    return BadData(
        name, fmt::format("neither {0} nor {0}/train holds the folders images and masks", folder));
  }
  SetFolders sets = {folder + "/train", folder + "/val", folder + "/test"};
  for (std::string* set : {&sets.validation, &sets.test}) {
    if (IsFolder(*set) && !IsSet(*set))
      return BadData(name, *set + " does not hold the folders images and masks");
    if (!IsSet(*set)) set->clear();
  }
  return sets;
}

// "DIR/images/a/b.jpg" -> "a/b"
std::string Stem(const std::string& path, size_t folder_bytes) {
  const fs::path below(path.substr(folder_bytes + 1));
  return (below.parent_path() / below.stem()).native();
}

struct Pair {
  std::string picture, mask;
};

struct Pairs {
  std::vector<Pair> pairs;              // by the bytes of the pictures' paths
  std::vector<std::string> left_masks;  // without a picture
};

const FileKind& MaskFiles() {
  static const FileKind kind = {"mask", "mask.png", {".png"}};
  return kind;
}

// A picture without a mask has the mask that it lacks.
Result<Pairs> FindPairs(const std::string& set) {
  const std::string images = set + kImages, masks = set + kMasks;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> pictures, FindPictures(images));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> files, FindFiles(MaskFiles(), masks));
  std::vector<std::pair<std::string, std::string>> by_stem;
  for (const std::string& file : files) by_stem.emplace_back(Stem(file, masks.size()), file);
  std::sort(by_stem.begin(), by_stem.end());
  std::vector<bool> taken(by_stem.size());
  Pairs found;
  for (const std::string& picture : pictures) {
    const std::string stem = Stem(picture, images.size());
    const auto at =
        std::lower_bound(by_stem.begin(), by_stem.end(), std::pair(stem, std::string()));
    const bool is_there = at != by_stem.end() && at->first == stem;
    if (is_there) taken[static_cast<size_t>(at - by_stem.begin())] = true;
    found.pairs.push_back({picture, is_there ? at->second : masks + "/" + stem + ".png"});
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) found.left_masks.push_back(by_stem[i].second);
  }
  return found;
}

// ---- the classes

using Ids = std::array<bool, 256>;  // which a mask holds

Result<Ids> IdsOf(const std::string& path, std::vector<char>& buffer, std::vector<uint8_t>& ids) {
  RIDGE_ASSIGN_OR_RETURN(const PictureFile file, InspectPicture(path, buffer));
  buffer.resize(static_cast<size_t>(file.stamp.bytes));
  RIDGE_RETURN_IF_ERROR(ReadPicture(path, file.stamp, buffer.data()));
  ids.resize(static_cast<size_t>(file.header.pixels()));
  RIDGE_RETURN_IF_ERROR(
      DecodeMask(PictureBytes(buffer.data(), file.stamp.bytes), file.header, ids));
  Ids found{};
  for (const uint8_t id : ids) found[id] = true;
  return found;
}

// Of those that can be read.
Ids SurveyIds(const std::vector<std::string>& masks) {
  Ids all{};
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  const auto work = [&] {
    std::vector<char> buffer;
    std::vector<uint8_t> ids;
    for (size_t i = next++; i < masks.size(); i = next++) {
      const Result<Ids> found = IdsOf(masks[i], buffer, ids);
      if (!found.ok()) continue;
      const std::lock_guard lock(mutex);
      for (size_t id = 0; id < all.size(); ++id) all[id] = all[id] || (*found)[id];
    }
  };
  std::vector<std::thread> threads;
  const auto count = std::min(masks.size(), static_cast<size_t>(AvailableThreads()));
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return all;
}

MaskPreprocessing ClassesOf(const Ids& ids) {
  int64_t most = 0;
  for (int64_t id = 0; id < kNoClass; ++id) most = ids[static_cast<size_t>(id)] ? id : most;
  if (most == 0 && ids[kNoClass]) return {2, /*binary=*/true};
  return {std::max<int64_t>(most + 1, 2), /*binary=*/false};
}

// The lines of DIR/classes.txt; none where there is no such file.
Result<std::vector<std::string>> ReadNames(const std::string& folder) {
  constexpr int64_t kMostBytes = 1 << 20;
  const std::string path = folder + "/classes.txt";
  std::error_code ignored;
  std::vector<std::string> names;
  if (!fs::exists(path, ignored)) return names;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    if (name.ends_with('\r')) name.pop_back();
    if (!name.empty()) names.push_back(std::move(name));
    begin = end + 1;
  }
  if (names.size() > static_cast<size_t>(kMostMaskClasses))
    return BadData(path, fmt::format("names {} classes, masks have at most {}", names.size(),
                                     kMostMaskClasses));
  return names;
}

struct Classes {
  MaskPreprocessing masks;
  std::vector<std::string> names;
};

// What the argument says, else the run, else the masks.
Result<Classes> FindClasses(const Argument& argument, const SetFolders& sets,
                            const DataOptions& options) {
  Classes classes;
  const bool is_kept = options.preprocessing != nullptr && options.preprocessing->masks;
  if (is_kept) return Classes{*options.preprocessing->masks, options.preprocessing->classes};
  if (argument.classes) classes.masks.classes = *argument.classes;
  if (!argument.classes) {
    std::vector<std::string> masks;
    for (const std::string& set : {sets.train, sets.validation, sets.test}) {
      if (set.empty()) continue;
      RIDGE_ASSIGN_OR_RETURN(const auto files, FindFiles(MaskFiles(), set + kMasks));
      masks.insert(masks.end(), files.begin(), files.end());
    }
    classes.masks = ClassesOf(SurveyIds(masks));
  }
  RIDGE_ASSIGN_OR_RETURN(classes.names, ReadNames(argument.folder));
  const auto names = static_cast<int64_t>(classes.names.size());
  if (names == 0) return classes;
  if (names < classes.masks.classes) {
    return BadData(
        argument.folder + "/classes.txt",
        fmt::format("names {} classes; the masks have {}", names, classes.masks.classes));
  }
  classes.masks.classes = names;
  return classes;
}

Field MaskField(const PictureTarget& target, const MaskPreprocessing& masks) {
  return {"label", {DType::kI64, {target.size.height, target.size.width}}, masks.classes};
}

// ---- the source

PictureTarget MaskTarget(PictureTarget target) {
  target.channels = 1;
  target.filter = ResizeFilter::kNearest;
  return target;
}

// Two files a sample, and what reads them.
struct PairIndex {
  explicit PairIndex(const PictureTarget& target)
      : picture_reader(target), mask_reader(MaskTarget(target), PictureContent::kClassIds) {}

  FileIndex pictures, masks;
  PictureReader picture_reader, mask_reader;
};

Status AddPair(const Pair& pair, std::vector<char>& buffer, PairIndex& index) {
  RIDGE_ASSIGN_OR_RETURN(const PictureFile picture, InspectPicture(pair.picture, buffer));
  std::error_code ignored;
  if (!fs::exists(pair.mask, ignored)) return BadData(pair.picture, "has no mask " + pair.mask);
  RIDGE_ASSIGN_OR_RETURN(const PictureFile mask, InspectPicture(pair.mask, buffer));
  const Status is_mask =
      CheckMaskFile(PictureBytes(buffer.data(), std::ssize(buffer)), mask.header);
  if (!is_mask.ok()) return BadData(pair.mask, is_mask.message());
  if (mask.header.width != picture.header.width || mask.header.height != picture.header.height) {
    return BadData(pair.mask,
                   fmt::format("has {}x{} pixels (height x width); its picture {} has {}x{}",
                               mask.header.height, mask.header.width, pair.picture,
                               picture.header.height, picture.header.width));
  }
  const Status admitted = index.picture_reader.Admit(picture.header);
  if (!admitted.ok()) return BadData(pair.picture, admitted.message());
  RIDGE_RETURN_IF_ERROR(index.mask_reader.Admit(mask.header));
  index.pictures.Add(pair.picture, picture.stamp, /*label=*/0);
  index.masks.Add(pair.mask, mask.stamp, /*label=*/0);
  return Status();
}

class MaskFolderSource : public Source {
 public:
  MaskFolderSource(std::string name, std::vector<Field> fields, PairIndex index,
                   const MaskPreprocessing& masks)
      : Source(std::move(name), std::move(fields), index.pictures.size()),
        index_(std::move(index)),
        masks_(masks) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) {
      return ReadFrom(index_.pictures, index_.picture_reader, at, scratch,
                      static_cast<uint8_t*>(out));
    }
    auto* ids = reinterpret_cast<uint8_t*>(scratch.data());
    const auto place = static_cast<size_t>(RoundUp(pixels(), kAlignment));
    RIDGE_RETURN_IF_ERROR(
        ReadFrom(index_.masks, index_.mask_reader, at, scratch.subspan(place), ids));
    return ToLabels(at.index, ids, static_cast<int64_t*>(out));
  }

  int64_t scratch_bytes() const override {
    const int64_t picture = Scratch(index_.pictures, index_.picture_reader);
    const int64_t mask = Scratch(index_.masks, index_.mask_reader);
    return std::max(picture, RoundUp(pixels(), kAlignment) + mask);
  }
  int64_t heap_bytes() const override {
    return std::max(index_.picture_reader.heap_bytes(), index_.mask_reader.heap_bytes());
  }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override { return index_.pictures.Path(index); }
  int64_t resident_bytes() const override {
    return index_.pictures.resident_bytes() + index_.masks.resident_bytes();
  }

 private:
  int64_t pixels() const { return fields()[1].type.elements(); }

  static int64_t Scratch(const FileIndex& files, const PictureReader& reader) {
    return RoundUp(files.most_file_bytes(), kAlignment) + reader.scratch_bytes();
  }

  static Status ReadFrom(const FileIndex& files, const PictureReader& reader, SampleAt at,
                         std::span<char> scratch, uint8_t* out) {
    const std::string path = files.Path(at.index);
    const int64_t bytes = files.file_bytes(at.index);
    {
      const StageTimer timer(at.stages, InputStage::kRead);
      RIDGE_RETURN_IF_ERROR(ReadPicture(path, files.stamp(at.index), scratch.data()));
    }
    const auto rest = static_cast<size_t>(RoundUp(files.most_file_bytes(), kAlignment));
    const Status read = reader.Read(PictureBytes(scratch.data(), bytes), scratch.subspan(rest), out,
                                    at.crop, at.stages);
    return read.ok() ? read : BadData(path, read.message());
  }

  Status ToLabels(int64_t index, const uint8_t* ids, int64_t* labels) const {
    const int64_t no_class = masks_.binary ? 1 : kIgnoredLabel;
    for (int64_t i = 0; i < pixels(); ++i) {
      if (ids[i] != kNoClass && ids[i] >= masks_.classes) return UnknownId(index, ids[i]);
      labels[i] = ids[i] == kNoClass ? no_class : ids[i];
    }
    return Status();
  }

  Status UnknownId(int64_t index, int id) const {
    return BadData(index_.masks.Path(index),
                   fmt::format("has a pixel of class {}; the data have {} classes, 0 to {}", id,
                               masks_.classes, masks_.classes - 1));
  }

  const PairIndex index_;
  const MaskPreprocessing masks_;
};

// ---- opening

struct Opening {
  std::string name;
  PicturePreprocessing pictures;
  MaskPreprocessing masks;
  BadRecordsPtr bad_records;
};

Result<SourcePtr> OpenSet(const Opening& opening, const std::string& set,
                          std::vector<std::string>& left) {
  RIDGE_ASSIGN_OR_RETURN(Pairs found, FindPairs(set));
  PairIndex index(opening.pictures.target);
  std::vector<char> buffer;
  for (const Pair& pair : found.pairs) {
    const Status added = AddPair(pair, buffer, index);
    if (added.ok()) continue;
    const bool skips = opening.bad_records != nullptr && opening.bad_records->skips();
    if (!skips || !IsBadRecord(added)) return added;
    RIDGE_RETURN_IF_ERROR(opening.bad_records->Add(pair.picture, added.message()));
  }
  if (index.pictures.size() == 0)
    return BadData(opening.name, set + " holds no picture with a mask that can be read");
  left.insert(left.end(), found.left_masks.begin(), found.left_masks.end());
  index.pictures.ShrinkToFit();
  index.masks.ShrinkToFit();
  return SourcePtr(std::make_shared<MaskFolderSource>(
      opening.name,
      std::vector<Field>{PictureField(opening.pictures),
                         MaskField(opening.pictures.target, opening.masks)},
      std::move(index), opening.masks));
}

std::string LeftMasks(const std::string& name, const std::vector<std::string>& left) {
  const bool one = left.size() == 1;
  return fmt::format("{}: {} {} left out, as {} no picture: {}{}", name, left.size(),
                     one ? "mask is" : "masks are", one ? "it has" : "they have", left.front(),
                     one ? "" : " and others");
}

std::vector<ModelSize> SizesOf(const Classes& classes, const std::optional<PictureTarget>& target) {
  std::vector<ModelSize> sizes = {{"classes", classes.masks.classes}};
  if (target && target->size.height == target->size.width)
    sizes.push_back({"image", target->size.height});
  return sizes;
}

}  // namespace

Result<DataSplits> OpenMaskFolder(const std::string& name, const std::string& text,
                                  const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const SetFolders sets, FindSets(name, argument.folder));
  RIDGE_ASSIGN_OR_RETURN(const Classes classes, FindClasses(argument, sets, options));
  Opening opening{name, {}, classes.masks, options.bad_records};
  RIDGE_ASSIGN_OR_RETURN(opening.pictures, PlanPictures(name, argument.pictures, options));
  DataSplits splits;
  std::vector<std::string> left;
  for (const auto& [set, source] :
       {std::pair<const std::string&, SourcePtr&>{sets.train, splits.train},
        {sets.validation, splits.validation},
        {sets.test, splits.test}}) {
    if (set.empty()) continue;
    RIDGE_ASSIGN_OR_RETURN(source, OpenSet(opening, set, left));
  }
  if (!left.empty()) splits.notes.push_back(LeftMasks(name, left));
  splits.sizes = SizesOf(classes, opening.pictures.target);
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = classes.names;
  preprocessing->pictures = opening.pictures;
  preprocessing->masks = classes.masks;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> MaskFolderFacts(const std::string& name, const std::string& text,
                                  const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const SetFolders sets, FindSets(name, argument.folder));
  RIDGE_ASSIGN_OR_RETURN(const Classes classes, FindClasses(argument, sets, options));
  DataFacts facts;
  const std::optional<PictureTarget> target = KnownTarget(argument.pictures, options);
  if (target) {
    facts.fields.push_back({"image", target->type()});
    facts.fields.push_back(MaskField(*target, classes.masks));
  }
  facts.sizes = SizesOf(classes, target);
  return facts;
}

bool HoldsMasks(const std::string& text) {
  const auto argument = ParseArgument("", text);
  return argument.ok() && (IsSet(argument->folder) || IsSet(argument->folder + "/train"));
}

const Field* FindMaskField(const std::vector<Field>& fields) {
  const Field* picture = FindFieldByName("image", fields);
  const Field* label = FindFieldByName("label", fields);
  if (picture == nullptr || label == nullptr || picture->type.dims.size() < 2) return nullptr;
  const Dims& dims = picture->type.dims;
  const bool fits = IsInteger(label->type.dtype) && label->type.dims == Dims{dims[0], dims[1]};
  return fits ? label : nullptr;
}

}  // namespace ridge
