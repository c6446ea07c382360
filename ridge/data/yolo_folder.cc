#include "ridge/data/yolo_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/data/box_source.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/spec_options.h"
#include "ridge/data/yolo_format.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTextBytes = int64_t{1} << 24;

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}
bool IsThere(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Status BadFile(const std::string& path, const Status& why) {
  return Status(why.code(), path + ":" + why.message());
}

// Where the pictures of a set are, and their labels.
struct SetFolders {
  std::string images, labels;
};

// "" where there is no such set.
SetFolders FindSet(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string images = folder + "/images/" + name;
    if (IsFolder(images)) return {images, folder + "/labels/" + name};
    const std::string set = folder + "/" + name;
    if (IsFolder(set + "/images")) return {set + "/images", set + "/labels"};
  }
  return {};
}

struct Folders {
  SetFolders train, validation, test;
};

Result<Folders> FindFolders(const std::string& spec, const std::string& folder) {
  Folders found{FindSet(folder, {"train"}), FindSet(folder, {"val", "valid"}),
                FindSet(folder, {"test"})};
  if (!found.train.images.empty()) return found;
  if (IsFolder(folder + "/images"))
    return Folders{{folder + "/images", folder + "/labels"}, {}, {}};
  return Status(
      ErrorCode::kInvalidData,
      fmt::format("{}: {} has no folder images/train, train/images or images", spec, folder));
}

// labels/deep/1.txt of images/deep/1.jpg.
std::string LabelsOf(const SetFolders& set, const std::string& picture) {
  return fs::path(set.labels + picture.substr(set.images.size())).replace_extension(".txt");
}

class SetReader {
 public:
  explicit SetReader(const DataOptions& options) : bad_(options.bad_records) {}

  Result<std::vector<PictureObjects>> Read(const SetFolders& set) const {
    std::vector<PictureObjects> objects;
    if (set.images.empty()) return objects;
    RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> pictures, FindPictures(set.images));
    for (const std::string& picture : pictures) {
      PictureObjects one{picture, LabelsOf(set, picture), {}};
      const Status status = ReadLabels(one);
      if (status.ok())
        objects.push_back(std::move(one));
      else
        RIDGE_RETURN_IF_ERROR(Skip(picture, status));
    }
    return objects;
  }

 private:
  static Status ReadLabels(PictureObjects& picture) {
    if (!IsThere(picture.labels)) return Status();
    RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(picture.labels, kMostTextBytes));
    auto boxes = ParseYoloLabels(text);
    if (!boxes.ok()) return BadFile(picture.labels, boxes.status());
    picture.boxes = std::move(*boxes);
    return Status();
  }

  Status Skip(const std::string& picture, const Status& why) const {
    if (!IsBadRecord(why) || bad_ == nullptr || !bad_->skips()) return why;
    return bad_->Add(picture, why.message());
  }

  const BadRecordsPtr bad_;
};

// The largest class and where it stands.
struct LargestClass {
  int64_t number = -1;
  std::string labels;
};
LargestClass FindLargestClass(const BoxSets& sets) {
  LargestClass largest;
  for (const auto* set : {&sets.train, &sets.validation, &sets.test}) {
    for (const PictureObjects& picture : *set) {
      for (const ObjectBox& box : picture.boxes) {
        if (box.object_class > largest.number) largest = {box.object_class, picture.labels};
      }
    }
  }
  return largest;
}

Status NameClasses(const std::string& spec, const std::string& folder, BoxSets& sets) {
  std::string yaml;
  for (const char* name : {"/data.yaml", "/data.yml", "/dataset.yaml"}) {
    if (yaml.empty() && IsThere(folder + name)) yaml = folder + name;
  }
  if (!yaml.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(yaml, kMostTextBytes));
    auto names = ParseYoloNames(text);
    if (!names.ok()) return BadFile(yaml, names.status());
    sets.classes = std::move(*names);
  }
  const LargestClass largest = FindLargestClass(sets);
  if (!sets.classes.empty() && largest.number >= static_cast<int64_t>(sets.classes.size())) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: has class {}; {} names {}, 0 to {}", largest.labels,
                              largest.number, yaml, sets.classes.size(), sets.classes.size() - 1));
  }
  if (sets.classes.empty() && largest.number < 0)
    return Status(ErrorCode::kInvalidData, spec + ": none of its pictures has a box");
  for (int64_t i = static_cast<int64_t>(sets.classes.size()); i <= largest.number; ++i)
    sets.classes.push_back(std::to_string(i));
  return Status();
}

struct Opening {
  BoxOptions boxes;
  BoxSets sets;
};

Result<Opening> Begin(const std::string& name, const std::string& text,
                      const DataOptions& options) {
  const SpecOptions spec = SplitSpecOptions(text);
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, BoxKeys()));
  Opening opening;
  RIDGE_ASSIGN_OR_RETURN(opening.boxes, TakeBoxOptions(name, spec.options));
  const std::string folder = WithoutSlash(spec.path);
  RIDGE_ASSIGN_OR_RETURN(const Folders folders, FindFolders(name, folder));
  const SetReader reader(options);
  RIDGE_ASSIGN_OR_RETURN(opening.sets.train, reader.Read(folders.train));
  RIDGE_ASSIGN_OR_RETURN(opening.sets.validation, reader.Read(folders.validation));
  RIDGE_ASSIGN_OR_RETURN(opening.sets.test, reader.Read(folders.test));
  RIDGE_RETURN_IF_ERROR(NameClasses(name, folder, opening.sets));
  RIDGE_RETURN_IF_ERROR(TakeRunClasses(name, options, opening.sets));
  return opening;
}

}  // namespace

Result<DataSplits> OpenYoloFolder(const std::string& name, const std::string& argument,
                                  const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opening opening, Begin(name, argument, options));
  return OpenBoxSets(name, std::move(opening.sets), opening.boxes, options);
}

Result<DataFacts> YoloFolderFacts(const std::string& name, const std::string& argument,
                                  const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, options));
  return BoxFacts(opening.sets, opening.boxes, options);
}

}  // namespace ridge
