#include "ridge/data/container/web_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/rounding.h"
#include "ridge/data/container/file_list.h"
#include "ridge/data/container/picture_bytes.h"
#include "ridge/data/container/sample_sets.h"
#include "ridge/data/container/web_samples.h"
#include "ridge/data/encoded_samples.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;

class WebDatasetSource : public Source, public EncodedSamples {
 public:
  WebDatasetSource(std::string name, std::vector<Field> fields, WebLayout layout,
                   PictureReader reader, WebIndex index)
      : Source(std::move(name), std::move(fields), index.samples),
        layout_(std::move(layout)),
        placed_(static_cast<int64_t>(layout_.parts.size()) - (layout_.label() != nullptr)),
        reader_(std::move(reader)),
        index_(std::move(index)),
        most_picture_bytes_(MostPictureBytes()) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == placed_) {
      std::memcpy(out, &index_.labels[static_cast<size_t>(at.index)], sizeof(int64_t));
      return Status();
    }
    const WebPlace& place = PlaceOf(at.index, field);
    const Status read =
        ReadPlace(place, layout_.parts[static_cast<size_t>(field)], at, scratch, out);
    if (read.ok()) return read;
    return Status(read.code(), Where(place.place) + ": " + read.message());
  }

  int64_t scratch_bytes() const override { return picture_scratch() + reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override {
    return placed_ == 0 ? Source::Origin(index) : Where(PlaceOf(index, 0).place);
  }
  int64_t resident_bytes() const override {
    return index_.files.resident_bytes() +
           static_cast<int64_t>(index_.places.capacity() * sizeof(WebPlace) +
                                index_.labels.capacity() * sizeof(int64_t));
  }
  Status AddContent(int64_t index, std::vector<char>& buffer, ContentHash& hash) const override {
    for (int64_t field = 0; field < placed_; ++field) {
      const WebPlace& place = PlaceOf(index, field);
      const auto bytes = static_cast<size_t>(place.bytes);
      if (buffer.size() < bytes) buffer.resize(bytes);
      RIDGE_RETURN_IF_ERROR(ReadBytes(place, /*stages=*/nullptr, {buffer.data(), bytes}));
      hash.Add({buffer.data(), bytes});
    }
    if (!index_.labels.empty()) hash.Add(std::to_string(index_.labels[static_cast<size_t>(index)]));
    return Status();
  }

 private:
  const WebPlace& PlaceOf(int64_t index, int64_t field) const {
    return index_.places[static_cast<size_t>(index * placed_ + field)];
  }

  // Looks the member up in its archive: only for messages.
  std::string Where(FilePlace place) const {
    std::string where = index_.files.path(place.file());
    auto window = FileWindow::Open(index_.files, place.file());
    if (!window.ok()) return where;
    const auto found = [&](const TarMember& member) {
      if (place.offset() >= member.begin && place.offset() < member.begin + member.bytes)
        where += fmt::format(": member '{}' at byte {}", member.name, member.header);
      return Status();
    };
    [[maybe_unused]] const Status ignored =
        ForEachMember(index_.files, place.file(), *window, found);
    return where;
  }

  int64_t MostPictureBytes() const {
    int64_t most = 0;
    for (int64_t field = 0; field < placed_; ++field) {
      if (layout_.parts[static_cast<size_t>(field)].use != PartUse::kPicture) continue;
      for (int64_t i = 0; i < size(); ++i) most = std::max(most, PlaceOf(i, field).bytes);
    }
    return most;
  }
  int64_t picture_scratch() const { return RoundUp(most_picture_bytes_, kAlignment); }

  Status ReadBytes(const WebPlace& place, StageSeconds* stages, std::span<char> to) const {
    const StageTimer timer(stages, InputStage::kRead);
    RIDGE_ASSIGN_OR_RETURN(const FileTable::Reader file, index_.files.OpenFile(place.place.file()));
    return file.Read(place.place.offset(), to);
  }

  Status ReadPlace(const WebPlace& place, const WebPart& part, SampleAt at, std::span<char> scratch,
                   void* out) const {
    const auto bytes = static_cast<size_t>(place.bytes);
    if (part.use == PartUse::kArray)
      return ReadBytes(place, at.stages, {static_cast<char*>(out), bytes});
    RIDGE_RETURN_IF_ERROR(ReadBytes(place, at.stages, scratch.first(bytes)));
    return reader_.Read(AsBytes({scratch.data(), bytes}),
                        scratch.subspan(static_cast<size_t>(picture_scratch())),
                        static_cast<uint8_t*>(out), at.crop, at.stages);
  }

  const WebLayout layout_;
  const int64_t placed_;  // parts that lie in the files; the label stands behind them
  const PictureReader reader_;
  const WebIndex index_;
  const int64_t most_picture_bytes_;
};

struct Opened {
  ContainerOptions options;
  FileSets sets;
  FileTable training;
  WebLayout layout;
};

Result<FileTable> OpenFiles(const std::vector<std::string>& paths) {
  return FileTable::Open(paths, [](std::string_view) { return false; });
}

Result<Opened> OpenTraining(const std::string& name, const std::string& argument) {
  Opened opened;
  RIDGE_ASSIGN_OR_RETURN(opened.options,
                         ParseContainerOptions(name, argument, {"image", "json", "classes"}));
  RIDGE_ASSIGN_OR_RETURN(const auto paths, FindFiles(name, opened.options.pattern));
  RIDGE_ASSIGN_OR_RETURN(opened.sets, SplitFiles(name, paths));
  RIDGE_ASSIGN_OR_RETURN(opened.training, OpenFiles(opened.sets.train));
  RIDGE_ASSIGN_OR_RETURN(opened.layout, FindLayout(name, opened.training, opened.options));
  return opened;
}

// The number of classes: named, given, or the largest label + 1.
Result<std::vector<Field>> FieldsOf(const std::string& name, const WebLayout& layout,
                                    const WebIndex& index, const ContainerOptions& options) {
  std::vector<Field> fields;
  for (const WebPart& part : layout.parts) fields.push_back(part.field);
  if (layout.label() == nullptr) return fields;
  IntegerRange range;
  for (const int64_t label : index.labels) range.Add(label);
  const int64_t classes =
      index.classes.empty() ? range.classes() : static_cast<int64_t>(index.classes.size());
  fields.back().classes = options.classes.value_or(classes);
  if (!options.classes || classes <= *options.classes) return fields;
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: has {} classes; classes is {}", name, classes, *options.classes));
}

Result<SampleSet> OpenSet(const std::string& name, FileTable files, const Opened& opened,
                          PictureReader reader, double hold_out,
                          std::vector<std::string>& classes) {
  RIDGE_ASSIGN_OR_RETURN(WebIndex index, IndexSamples(std::move(files), opened.layout,
                                                      opened.options, classes, &reader));
  classes = index.classes;
  RIDGE_ASSIGN_OR_RETURN(const auto held_out, ChooseHeldOut(name, hold_out, index.hashes));
  const auto samples = static_cast<size_t>(index.samples);
  MoveHeldOutBack(held_out, index.places, index.places.size() / samples);
  MoveHeldOutBack(held_out, index.labels, index.labels.size() / samples);
  index.hashes = {};
  RIDGE_ASSIGN_OR_RETURN(auto fields, FieldsOf(name, opened.layout, index, opened.options));
  SampleSet set;
  set.held_out = std::count(held_out.begin(), held_out.end(), true);
  set.all = std::make_shared<WebDatasetSource>(name, std::move(fields), opened.layout,
                                               std::move(reader), std::move(index));
  return set;
}

std::vector<std::string> KnownClasses(const DataOptions& options) {
  return options.preprocessing == nullptr ? std::vector<std::string>()
                                          : options.preprocessing->classes;
}

}  // namespace

Result<DataSplits> OpenWebDataset(const std::string& name, const std::string& argument,
                                  const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opened opened, OpenTraining(name, argument));
  auto preprocessing = std::make_shared<Preprocessing>();
  for (WebPart& part : opened.layout.parts) {
    if (part.use != PartUse::kPicture) continue;
    RIDGE_ASSIGN_OR_RETURN(preprocessing->pictures,
                           PlanPictures(name, opened.options.pictures, options));
    const std::string field_name = part.field.name;
    part.field = PictureField(*preprocessing->pictures);
    part.field.name = field_name;
  }
  const auto& pictures = preprocessing->pictures;
  const PictureReader reader(pictures ? pictures->target : PictureTarget());
  DataSplits splits;
  std::vector<std::string> classes = KnownClasses(options);
  const double hold_out = opened.sets.validation.empty() ? options.hold_out : 0;
  RIDGE_ASSIGN_OR_RETURN(const SampleSet training, OpenSet(name, std::move(opened.training), opened,
                                                           reader, hold_out, classes));
  SetTraining(training, splits);
  const std::vector<std::string> named = classes;
  const std::pair<const std::vector<std::string>&, SourcePtr&> further[] = {
      {opened.sets.validation, splits.validation}, {opened.sets.test, splits.test}};
  for (const auto& [paths, source] : further) {
    if (paths.empty()) continue;
    RIDGE_ASSIGN_OR_RETURN(FileTable files, OpenFiles(paths));
    RIDGE_ASSIGN_OR_RETURN(const SampleSet set, OpenSet(name, std::move(files), opened, reader,
                                                        /*hold_out=*/0, classes));
    source = set.all;
    if (classes == named) continue;
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: the labels of {} are names, those to train on are numbers", name,
                              paths.front()));
  }
  splits.sizes = SizesOf(training.all->fields(), opened.layout.picture() != nullptr);
  splits.notes = opened.layout.notes;
  preprocessing->classes = classes;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> WebDatasetFacts(const std::string& name, const std::string& argument,
                                  const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opened opened, OpenTraining(name, argument));
  WebIndex index;
  if (!opened.options.classes) {
    RIDGE_ASSIGN_OR_RETURN(index,
                           IndexSamples(std::move(opened.training), opened.layout, opened.options,
                                        KnownClasses(options), /*reader=*/nullptr));
  }
  RIDGE_ASSIGN_OR_RETURN(const auto fields, FieldsOf(name, opened.layout, index, opened.options));
  DataFacts facts;
  for (size_t i = 0; i < fields.size(); ++i) {
    facts.fields.push_back(fields[i]);
    if (opened.layout.parts[i].use != PartUse::kPicture) continue;
    facts.fields.pop_back();
    if (const auto target = KnownTarget(opened.options.pictures, options))
      facts.fields.push_back({fields[i].name, target->type()});
  }
  facts.sizes = SizesOf(facts.fields, opened.layout.picture() != nullptr);
  return facts;
}

}  // namespace ridge
