// The file is read as a stream of events: of an annotation no more is held than a box takes, as
// outlines are most of the file.
#include "ridge/data/coco.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "ridge/core/files.h"
#include "ridge/data/csv_cells.h"
#include "ridge/data/spec_options.h"
#include "ridge/data/yolo_format.h"

namespace ridge {
namespace {

constexpr int64_t kMostFileBytes = int64_t{1} << 32;
constexpr int kMostDepth = 64;
constexpr size_t kMostNameBytes = 4096;

// An object of one of the three lists, as far as it is wanted.
struct CocoRecord {
  std::map<std::string, double> numbers;  // id, image_id, category_id, width, height, iscrowd
  std::string name;                       // name or file_name
  std::vector<double> box;                // the first 5 of bbox
};

Status Bad(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// Gives each object of `images`, `annotations` and `categories` to `take`.
class CocoReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Take = std::function<Status(const std::string& list, int64_t number, CocoRecord&)>;
  CocoReader(const std::string& file, const Take& take) : file_(file), take_(take) {}

  const Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool value) override { return Number(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return Number(value); }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& value) override {
    if (!at_record() || (key_ != "name" && key_ != "file_name")) return true;
    if (value.size() > kMostNameBytes)
      return Fail(fmt::format("has a {} of {} bytes", key_, value.size()));
    record_.name = value;
    return true;
  }
  bool start_object(size_t) override {
    if (!Deeper()) return false;
    if (at_record()) {
      record_ = CocoRecord();
      key_.clear();
    }
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      list_ = value;
      number_ = 0;
    } else if (at_record()) {
      key_ = value;
    }
    return true;
  }
  bool end_object() override {
    if (at_record()) {
      status_ = take_(list_, number_++, record_);
      if (!status_.ok()) return false;
    }
    --depth_;
    return true;
  }
  bool start_array(size_t) override { return Deeper(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    status_ = Bad(file_, fmt::format("byte {}: is no JSON", position - (position > 0 ? 1 : 0)));
    return false;
  }

 private:
  bool at_record() const {
    return depth_ == 3 && (list_ == "images" || list_ == "annotations" || list_ == "categories");
  }
  bool Fail(const std::string& why) {
    status_ = Bad(file_, fmt::format("{} {}: {}", list_, number_, why));
    return false;
  }
  bool Deeper() { return ++depth_ <= kMostDepth || Fail("is nested more than 64 deep"); }
  bool Number(double value) {
    static constexpr std::array kWanted = {"id",    "image_id", "category_id",
                                           "width", "height",   "iscrowd"};
    if (at_record() && std::find(kWanted.begin(), kWanted.end(), key_) != kWanted.end())
      record_.numbers[key_] = value;
    const bool in_box = depth_ == 4 && list_ == "annotations" && key_ == "bbox";
    if (in_box && record_.box.size() < 5) record_.box.push_back(value);
    return true;
  }

  const std::string file_;
  const Take& take_;
  Status status_;
  int depth_ = 0;
  int64_t number_ = 0;  // of the record in its list
  std::string list_, key_;
  CocoRecord record_;
};

// ---- the three lists together

class CocoSet {
 public:
  CocoSet(std::string file, std::string folder, BadRecordsPtr bad)
      : file_(std::move(file)), folder_(std::move(folder)), bad_(std::move(bad)) {}

  Status Take(const std::string& list, int64_t number, CocoRecord& record) {
    const std::string where = fmt::format("{}: {} {}", file_, list, number);
    if (list == "annotations") {
      annotations_.push_back({number,
                              Integer(record, "image_id"),
                              Integer(record, "category_id"),
                              record.numbers["iscrowd"] != 0,
                              record.box.size(),
                              {}});
      std::copy_n(record.box.begin(), std::min<size_t>(4, record.box.size()),
                  annotations_.back().box.begin());
      return Status();
    }
    const std::optional<int64_t> id = Integer(record, "id");
    if (!id) return Bad(where, "has no whole number as its id");
    if (record.name.empty())
      return Bad(where, list == "images" ? "has no file_name" : "has no name");
    return list == "images" ? TakeImage(where, *id, record) : TakeCategory(where, *id, record);
  }

  Result<BoxSets> Finish() {
    BoxSets sets;
    std::map<int64_t, int64_t> classes;
    for (const auto& [id, name] : categories_) {
      classes[id] = static_cast<int64_t>(sets.classes.size());
      sets.classes.push_back(name);
    }
    if (images_.empty()) return Bad(file_, "has no images");
    if (sets.classes.empty()) return Bad(file_, "has no categories");
    for (const Annotation& annotation : annotations_) {
      if (annotation.crowd) continue;
      const Status status = Place(annotation, classes);
      if (status.ok()) continue;
      const std::string origin = fmt::format("{}: annotations {}", file_, annotation.number);
      if (bad_ == nullptr || !bad_->skips()) return Bad(origin, status.message());
      RIDGE_RETURN_IF_ERROR(bad_->Add(origin, status.message()));
    }
    for (Image& image : images_) sets.train.push_back(std::move(image.objects));
    return sets;
  }

 private:
  struct Image {
    double width = 0, height = 0;
    PictureObjects objects;
  };
  struct Annotation {
    int64_t number = 0;
    std::optional<int64_t> image, category;
    bool crowd = false;
    size_t sides = 0;
    std::array<double, 4> box;
  };

  static std::optional<int64_t> Integer(const CocoRecord& record, const char* key) {
    constexpr double kMost = 9007199254740992;  // 2^53
    const auto found = record.numbers.find(key);
    if (found == record.numbers.end() || found->second != std::floor(found->second) ||
        !(std::abs(found->second) <= kMost))
      return std::nullopt;
    return static_cast<int64_t>(found->second);
  }

  // A name leads to no other folder.
  static bool StaysBelow(const std::string& name) {
    const std::filesystem::path path(name);
    const auto up = [](const std::filesystem::path& part) { return part == ".."; };
    return name.find('\0') == std::string::npos && !path.is_absolute() &&
           std::none_of(path.begin(), path.end(), up);
  }

  Status TakeImage(const std::string& where, int64_t id, CocoRecord& record) {
    Image image;
    image.width = record.numbers["width"];
    image.height = record.numbers["height"];
    if (!(image.width >= 1 && image.height >= 1)) return Bad(where, "has no width and height");
    MakeUtf8(record.name);
    if (!StaysBelow(record.name))
      return Bad(where, fmt::format("file_name '{}' leads out of the folder", record.name));
    if (!places_.emplace(id, images_.size()).second)
      return Bad(where, fmt::format("id {} comes twice", id));
    image.objects = {folder_ + "/" + record.name, where, {}};
    images_.push_back(std::move(image));
    return Status();
  }

  Status TakeCategory(const std::string& where, int64_t id, CocoRecord& record) {
    MakeUtf8(record.name);
    if (static_cast<int64_t>(categories_.size()) == kMostObjectClasses)
      return Bad(where, fmt::format("is more than {} classes", kMostObjectClasses));
    if (categories_.emplace(id, record.name).second) return Status();
    return Bad(where, fmt::format("id {} comes twice", id));
  }

  Status Place(const Annotation& annotation, const std::map<int64_t, int64_t>& classes) {
    const auto wrong = [](std::string why) { return Status(ErrorCode::kInvalidData, why); };
    if (!annotation.image || places_.count(*annotation.image) == 0)
      return wrong("its image_id is none of the images");
    if (!annotation.category || classes.count(*annotation.category) == 0)
      return wrong("its category_id is none of the categories");
    if (annotation.sides != 4) return wrong("its bbox has not 4 numbers");
    Image& image = images_[places_.at(*annotation.image)];
    const auto& [x, y, width, height] = annotation.box;
    const auto part = [](double at, double of) {
      return static_cast<float>(std::clamp(at / of, 0.0, 1.0));
    };
    const ObjectBox box = {part(x, image.width), part(y, image.height),
                           part(x + width, image.width), part(y + height, image.height),
                           classes.at(*annotation.category)};
    if (!(box.x2 > box.x1 && box.y2 > box.y1)) return Status();
    if (static_cast<int64_t>(image.objects.boxes.size()) == kMostBoxes)
      return wrong(fmt::format("is more than {} objects of one picture", kMostBoxes));
    image.objects.boxes.push_back(box);
    return Status();
  }

  const std::string file_, folder_;
  const BadRecordsPtr bad_;
  std::vector<Image> images_;
  std::map<int64_t, size_t> places_;  // of images by id
  std::map<int64_t, std::string> categories_;
  std::vector<Annotation> annotations_;
};

struct Opening {
  BoxOptions boxes;
  BoxSets sets;
};

Result<Opening> Begin(const std::string& name, const std::string& text,
                      const DataOptions& options) {
  SpecOptions spec = SplitSpecOptions(text);
  std::vector<std::string> keys = BoxKeys();
  keys.push_back("images");
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, keys));
  std::string folder = std::filesystem::path(spec.path).parent_path();
  if (folder.empty()) folder = ".";
  for (const auto& [key, value] : spec.options) {
    if (key == "images") folder = value;
  }
  std::erase_if(spec.options, [](const auto& option) { return option.first == "images"; });
  Opening opening;
  RIDGE_ASSIGN_OR_RETURN(opening.boxes, TakeBoxOptions(name, spec.options));
  RIDGE_ASSIGN_OR_RETURN(const std::string json, ReadFile(spec.path, kMostFileBytes));
  RIDGE_ASSIGN_OR_RETURN(opening.sets, ParseCoco(json, spec.path, folder, options.bad_records));
  RIDGE_RETURN_IF_ERROR(TakeRunClasses(name, options, opening.sets));
  return opening;
}

}  // namespace

Result<BoxSets> ParseCoco(std::string_view text, const std::string& file, const std::string& folder,
                          const BadRecordsPtr& bad_records) {
  CocoSet set(file, folder, bad_records);
  const CocoReader::Take take = [&](const std::string& list, int64_t number, CocoRecord& record) {
    return set.Take(list, number, record);
  };
  CocoReader reader(file, take);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) return reader.status();
  return set.Finish();
}

Result<DataSplits> OpenCoco(const std::string& name, const std::string& argument,
                            const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opening opening, Begin(name, argument, options));
  return OpenBoxSets(name, std::move(opening.sets), opening.boxes, options);
}

Result<DataFacts> CocoFacts(const std::string& name, const std::string& argument,
                            const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, options));
  return BoxFacts(opening.sets, opening.boxes, options);
}

}  // namespace ridge
