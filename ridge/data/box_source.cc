// The pictures are those of OpenPictures; here is what stands beside them.
#include "ridge/data/box_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>

#include "ridge/data/batch_spec.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

// The boxes of all pictures one after the other.
class BoxTable {
 public:
  void Add(const std::vector<ObjectBox>& boxes) {
    boxes_.insert(boxes_.end(), boxes.begin(), boxes.end());
    ends_.push_back(static_cast<int64_t>(boxes_.size()));
  }
  void ShrinkToFit() {
    boxes_.shrink_to_fit();
    ends_.shrink_to_fit();
  }
  std::span<const ObjectBox> Of(int64_t index) const {
    const int64_t begin = index == 0 ? 0 : ends_[static_cast<size_t>(index - 1)];
    return std::span(boxes_).subspan(
        static_cast<size_t>(begin), static_cast<size_t>(ends_[static_cast<size_t>(index)] - begin));
  }
  int64_t bytes() const {
    return static_cast<int64_t>(boxes_.capacity() * sizeof(ObjectBox) +
                                ends_.capacity() * sizeof(int64_t));
  }

 private:
  std::vector<ObjectBox> boxes_;
  std::vector<int64_t> ends_;
};

class BoxSource : public Source {
 public:
  BoxSource(const std::string& name, std::vector<Field> fields, SourcePtr pictures, BoxTable table)
      : Source(name, std::move(fields), pictures->size()),
        pictures_(std::move(pictures)),
        table_(std::move(table)),
        height_(this->fields()[0].type.dims[0]),
        width_(this->fields()[0].type.dims[1]),
        places_(this->fields()[2].type.dims[0]) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return pictures_->Read(at, 0, scratch, out);
    const std::span<const ObjectBox> boxes = table_.Of(at.index);
    if (field == 1)
      WriteBoxes(boxes, static_cast<char*>(out));
    else
      WriteClasses(boxes, static_cast<char*>(out));
    return Status();
  }

  int64_t scratch_bytes() const override { return pictures_->scratch_bytes(); }
  int64_t heap_bytes() const override { return pictures_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  std::string Origin(int64_t index) const override { return pictures_->Origin(index); }
  int64_t resident_bytes() const override { return pictures_->resident_bytes() + table_.bytes(); }

 private:
  void WriteBoxes(std::span<const ObjectBox> boxes, char* out) const {
    std::memset(out, 0, static_cast<size_t>(places_) * 4 * sizeof(float));
    const auto w = static_cast<float>(width_), h = static_cast<float>(height_);
    for (size_t i = 0; i < boxes.size(); ++i) {
      const ObjectBox& box = boxes[i];
      const float sides[4] = {box.x1 * w, box.y1 * h, box.x2 * w, box.y2 * h};
      std::memcpy(out + i * sizeof sides, sides, sizeof sides);
    }
  }
  void WriteClasses(std::span<const ObjectBox> boxes, char* out) const {
    for (size_t i = 0; i < static_cast<size_t>(places_); ++i) {
      const int64_t object_class = i < boxes.size() ? boxes[i].object_class : -1;
      std::memcpy(out + i * sizeof object_class, &object_class, sizeof object_class);
    }
  }

  const SourcePtr pictures_;
  const BoxTable table_;
  const int64_t height_, width_, places_;
};

// ---- boxes in the picture as it is after resizing

// [0, 1] of the source's axis to [0, 1] of what is kept of it.
float Kept(float part, const ResizeAxis& axis) {
  const auto at = static_cast<double>(part) * static_cast<double>(axis.out);
  const double inside = (at - static_cast<double>(axis.first)) / static_cast<double>(axis.count);
  return static_cast<float>(std::clamp(inside, 0.0, 1.0));
}

Status CutBoxes(const PictureTarget& target, PictureObjects& picture) {
  if (target.fit == ImageFit::kStretch) return Status();
  RIDGE_ASSIGN_OR_RETURN(const ImageHeader header, ReadPictureHeader(picture.path));
  const ResizeCall call = FitPicture({header.height, header.width}, target.size, target.fit,
                                     target.filter, target.channels);
  for (ObjectBox& box : picture.boxes) {
    box.x1 = Kept(box.x1, call.x);
    box.x2 = Kept(box.x2, call.x);
    box.y1 = Kept(box.y1, call.y);
    box.y2 = Kept(box.y2, call.y);
  }
  std::erase_if(picture.boxes,
                [](const ObjectBox& box) { return !(box.x2 > box.x1 && box.y2 > box.y1); });
  return Status();
}

// ---- opening

std::vector<Field> BoxFields(int64_t places) {
  return {{"boxes", {DType::kF32, {places, 4}}}, {"classes", {DType::kI64, {places}}}};
}

int64_t PlacesFor(const BoxSets& sets, const BoxOptions& boxes, const DataOptions& options) {
  if (boxes.most_boxes) return *boxes.most_boxes;
  for (const Field& input : options.model_inputs) {
    if (input.name == "boxes" && input.type.rank() == 2) return input.type.dims[0];
  }
  return sets.most_boxes();
}

PictureOptions Stretched(PictureOptions pictures, const DataOptions& options) {
  const bool kept = options.preprocessing != nullptr && options.preprocessing->pictures;
  if (!pictures.fit && !kept) pictures.fit = ImageFit::kStretch;
  return pictures;
}

class SetOpener {
 public:
  SetOpener(const std::string& spec, const PicturePreprocessing& pictures, int64_t places,
            const DataOptions& options)
      : spec_(spec), pictures_(pictures), places_(places), options_(options) {
    auto planned = std::make_shared<Preprocessing>();
    planned->pictures = pictures;
    picture_options_.preprocessing = std::move(planned);
  }

  Result<SourcePtr> Open(std::vector<PictureObjects> set) {
    if (set.empty()) return SourcePtr();
    std::vector<std::string> paths;
    Status failed;
    for (PictureObjects& picture : set) {
      RIDGE_RETURN_IF_ERROR(Accept(Check(picture), picture.path, failed));
      if (failed.ok()) paths.push_back(picture.path);
    }
    std::set<std::string> bad;
    Status stop;
    const BadPicture on_bad = [&](const std::string& path, const Status& why) {
      bad.insert(path);
      Status ignored;
      const Status status = Accept(why, path, ignored);
      if (stop.ok()) stop = status;
    };
    RIDGE_ASSIGN_OR_RETURN(const SourcePtr pictures,
                           OpenPictures(spec_, paths, picture_options_, on_bad));
    RIDGE_RETURN_IF_ERROR(stop);
    if (pictures == nullptr)
      return Status(ErrorCode::kInvalidData, spec_ + ": none of its pictures can be read");
    const std::set<std::string> good(paths.begin(), paths.end());
    BoxTable table;
    for (const PictureObjects& picture : set) {
      if (good.count(picture.path) != 0 && bad.count(picture.path) == 0) table.Add(picture.boxes);
    }
    return Make(pictures, std::move(table));
  }

 private:
  Status Check(PictureObjects& picture) const {
    RIDGE_RETURN_IF_ERROR(CutBoxes(pictures_.target, picture));
    const auto count = static_cast<int64_t>(picture.boxes.size());
    if (count <= places_) return Status();
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: has {} boxes, {} are taken. hint: boxes={} behind the data, and "
                              "in the model",
                              picture.labels, count, places_, count));
  }

  // A bad picture is told to the run that skips such, and is `failed`; else it ends the opening.
  Status Accept(const Status& status, const std::string& path, Status& failed) const {
    failed = status;
    if (status.ok()) return status;
    if (!IsBadRecord(status) || options_.bad_records == nullptr || !options_.bad_records->skips())
      return status;
    return options_.bad_records->Add(path, status.message());
  }

  Result<SourcePtr> Make(const SourcePtr& pictures, BoxTable table) const {
    table.ShrinkToFit();
    std::vector<Field> fields = BoxFields(places_);
    fields.insert(fields.begin(), pictures->fields()[0]);
    return SourcePtr(
        std::make_shared<BoxSource>(spec_, std::move(fields), pictures, std::move(table)));
  }

  const std::string spec_;
  const PicturePreprocessing pictures_;
  const int64_t places_;
  const DataOptions& options_;
  DataOptions picture_options_;
};

std::vector<ModelSize> BoxSizes(const BoxSets& sets, int64_t places) {
  return {{"classes", static_cast<int64_t>(sets.classes.size())}, {"boxes", places}};
}

}  // namespace

std::vector<std::string> BoxKeys() {
  std::vector<std::string> keys = PictureKeys();
  keys.push_back("boxes");
  return keys;
}

Result<BoxOptions> TakeBoxOptions(const std::string& spec,
                                  const std::vector<std::pair<std::string, std::string>>& options) {
  BoxOptions boxes;
  for (const auto& [key, value] : options) {
    if (key != "boxes") {
      RIDGE_RETURN_IF_ERROR(TakePictureOption(spec, key, value, boxes.pictures));
      continue;
    }
    int64_t count = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc() || rest != value.data() + value.size() || count < 1 ||
        count > kMostBoxes) {
      return InvalidArgument(fmt::format("data '{}': boxes is '{}'; it must be from 1 to {}", spec,
                                         value, kMostBoxes));
    }
    boxes.most_boxes = count;
  }
  return boxes;
}

int64_t BoxSets::most_boxes() const {
  size_t most = 1;
  for (const auto* set : {&train, &validation, &test}) {
    for (const PictureObjects& picture : *set) most = std::max(most, picture.boxes.size());
  }
  return static_cast<int64_t>(most);
}

Result<DataSplits> OpenBoxSets(const std::string& spec, BoxSets sets, const BoxOptions& boxes,
                               const DataOptions& options) {
  const PictureOptions stretched = Stretched(boxes.pictures, options);
  RIDGE_ASSIGN_OR_RETURN(const PicturePreprocessing pictures,
                         PlanPictures(spec, stretched, options));
  const int64_t places = PlacesFor(sets, boxes, options);
  SetOpener opener(spec, pictures, places, options);
  DataSplits splits;
  splits.sizes = BoxSizes(sets, places);
  RIDGE_ASSIGN_OR_RETURN(splits.train, opener.Open(std::move(sets.train)));
  RIDGE_ASSIGN_OR_RETURN(splits.validation, opener.Open(std::move(sets.validation)));
  RIDGE_ASSIGN_OR_RETURN(splits.test, opener.Open(std::move(sets.test)));
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = std::move(sets.classes);
  preprocessing->pictures = pictures;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

DataFacts BoxFacts(const BoxSets& sets, const BoxOptions& boxes, const DataOptions& options) {
  DataFacts facts;
  const int64_t places = PlacesFor(sets, boxes, options);
  facts.fields = BoxFields(places);
  if (const auto target = KnownTarget(Stretched(boxes.pictures, options), options))
    facts.fields.insert(facts.fields.begin(), {"image", target->type()});
  facts.sizes = BoxSizes(sets, places);
  return facts;
}

Status TakeRunClasses(const std::string& spec, const DataOptions& options, BoxSets& sets) {
  if (options.preprocessing == nullptr || options.preprocessing->classes.empty()) return Status();
  const std::vector<std::string>& run = options.preprocessing->classes;
  std::vector<int64_t> numbers;
  for (const std::string& name : sets.classes) {
    const auto found = std::find(run.begin(), run.end(), name);
    if (found == run.end()) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: its class '{}' is none of the run's: {}", spec, name,
                                fmt::join(run, ", ")));
    }
    numbers.push_back(found - run.begin());
  }
  for (auto* set : {&sets.train, &sets.validation, &sets.test}) {
    for (PictureObjects& picture : *set) {
      for (ObjectBox& box : picture.boxes)
        box.object_class = numbers[static_cast<size_t>(box.object_class)];
    }
  }
  sets.classes = run;
  return Status();
}

}  // namespace ridge
