#include "ridge/data/container/tfrecord.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/rounding.h"
#include "ridge/data/container/example_schema.h"
#include "ridge/data/container/file_list.h"
#include "ridge/data/container/picture_bytes.h"
#include "ridge/data/container/tfrecord_file.h"
#include "ridge/data/content_split.h"
#include "ridge/data/encoded_samples.h"
#include "ridge/data/image/picture.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kLooked = 64;  // records that the schema is found from

// ---- the source

struct RecordIndex {
  FileTable files;
  std::vector<FilePlace> records;
  int64_t most_bytes = 0;  // of a record, with its checksum
};

class TfRecordSource : public Source, public EncodedSamples {
 public:
  TfRecordSource(std::string name, std::vector<Field> fields, std::vector<ExampleField> features,
                 int64_t first_label, PictureReader reader, RecordIndex index)
      : Source(std::move(name), std::move(fields), static_cast<int64_t>(index.records.size())),
        features_(std::move(features)),
        first_label_(first_label),
        reader_(std::move(reader)),
        index_(std::move(index)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    const Status read = ReadField(at, features_[static_cast<size_t>(field)], scratch, out);
    if (read.ok()) return read;
    return Status(read.code(), Origin(at.index) + ": " + read.message());
  }

  int64_t scratch_bytes() const override { return record_scratch() + reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  // Counts the records before it in its file.
  std::string Origin(int64_t index) const override {
    const FilePlace place = PlaceOf(index);
    const auto number =
        std::count_if(index_.records.begin(), index_.records.end(), [&](FilePlace other) {
          return other.file() == place.file() && other.offset() < place.offset();
        });
    return RecordPlace(index_.files.path(place.file()), number, place.offset());
  }
  int64_t resident_bytes() const override {
    return index_.files.resident_bytes() +
           static_cast<int64_t>(index_.records.capacity() * sizeof(FilePlace));
  }
  Status AddContent(int64_t index, std::vector<char>& buffer, ContentHash& hash) const override {
    buffer.resize(static_cast<size_t>(index_.most_bytes));
    RIDGE_ASSIGN_OR_RETURN(const std::string_view record, LoadRecord(PlaceOf(index), buffer));
    hash.Add(record);
    return Status();
  }

 private:
  int64_t record_scratch() const { return RoundUp(index_.most_bytes, kAlignment); }

  FilePlace PlaceOf(int64_t index) const { return index_.records[static_cast<size_t>(index)]; }

  // A record whose checksum is right, in `scratch`.
  Result<std::string_view> LoadRecord(FilePlace place, std::span<char> scratch) const {
    RIDGE_ASSIGN_OR_RETURN(const FileTable::Reader file, index_.files.OpenFile(place.file()));
    char header[kRecordHeaderBytes];
    RIDGE_RETURN_IF_ERROR(file.Read(place.offset(), header));
    RIDGE_ASSIGN_OR_RETURN(const int64_t bytes,
                           ReadRecordLength(std::string_view(header, kRecordHeaderBytes)));
    const int64_t begin = place.offset() + kRecordHeaderBytes, whole = bytes + kRecordFooterBytes;
    if (whole > index_.most_bytes || whole > index_.files.bytes(place.file()) - begin)
      return Status(ErrorCode::kInvalidData, "has changed since the data was opened");
    RIDGE_RETURN_IF_ERROR(file.Read(begin, scratch.first(static_cast<size_t>(whole))));
    uint32_t stored = 0;
    std::memcpy(&stored, scratch.data() + bytes, sizeof stored);
    const std::string_view record(scratch.data(), static_cast<size_t>(bytes));
    RIDGE_RETURN_IF_ERROR(CheckRecord(record, stored));
    return record;
  }

  Result<std::string_view> LoadTimed(SampleAt at, std::span<char> scratch) const {
    const StageTimer timer(at.stages, InputStage::kRead);
    return LoadRecord(PlaceOf(at.index), scratch);
  }

  Status ReadField(SampleAt at, const ExampleField& wanted, std::span<char> scratch,
                   void* out) const {
    RIDGE_ASSIGN_OR_RETURN(const std::string_view record, LoadTimed(at, scratch));
    MemoryView view(record);
    Feature found;
    RIDGE_RETURN_IF_ERROR(ForEachFeature(view, [&](std::string_view name, const Feature& feature) {
      if (name == wanted.feature) found = feature;
      return Status();
    }));
    if (found.kind != wanted.kind)
      return Status(ErrorCode::kInvalidData, "has changed since the data was opened");
    return ReadValue(view, found, wanted, at, scratch, out);
  }

  Status ReadValue(RecordView& view, const Feature& found, const ExampleField& wanted, SampleAt at,
                   std::span<char> scratch, void* out) const {
    const auto count = static_cast<size_t>(wanted.field.type.elements());
    if (found.kind == FeatureKind::kFloat)
      return TakeFloats(view, found.list, {static_cast<float*>(out), count});
    if (found.kind == FeatureKind::kInt64) {
      const std::span<int64_t> values(static_cast<int64_t*>(out), count);
      RIDGE_RETURN_IF_ERROR(TakeInt64s(view, found.list, values));
      if (wanted.field.name == "label") values[0] -= first_label_;
      return Status();
    }
    RIDGE_ASSIGN_OR_RETURN(const ValueCount values, CountValues(view, found));
    RIDGE_ASSIGN_OR_RETURN(const std::string_view bytes,
                           view.At(values.value.begin, values.value.bytes));
    if (wanted.picture) {
      return reader_.Read(AsBytes(bytes), scratch.subspan(static_cast<size_t>(record_scratch())),
                          static_cast<uint8_t*>(out), at.crop, at.stages);
    }
    if (static_cast<int64_t>(bytes.size()) != wanted.field.type.bytes())
      return Status(ErrorCode::kInvalidData, "has changed since the data was opened");
    std::memcpy(out, bytes.data(), bytes.size());
    return Status();
  }

  const std::vector<ExampleField> features_;  // one a field
  const int64_t first_label_;
  const PictureReader reader_;
  const RecordIndex index_;
};

// ---- opening

// What one pass over a set finds.
struct Survey {
  RecordIndex index;
  std::vector<IntegerRange> ranges;  // one a field: of single integers
  std::vector<uint64_t> hashes;      // one a record
};

class Surveyor {
 public:
  // `reader` admits the pictures; null: their headers are not read.
  Surveyor(const ExampleSchema& schema, PictureReader* reader)
      : schema_(schema), reader_(reader), ranges_(schema.fields.size()) {}

  Status Add(RecordView& record) {
    RIDGE_RETURN_IF_ERROR(MatchExample(schema_, record, found_));
    for (size_t i = 0; i < found_.size(); ++i) {
      const ExampleField& field = schema_.fields[i];
      const bool single = field.kind == FeatureKind::kInt64 && field.field.type.elements() == 1;
      if (single) {
        int64_t value = 0;
        RIDGE_RETURN_IF_ERROR(TakeInt64s(record, found_[i].list, {&value, 1}));
        ranges_[i].Add(value);
      }
      if (field.picture && reader_ != nullptr) RIDGE_RETURN_IF_ERROR(Admit(record, found_[i]));
    }
    return Status();
  }

  std::vector<IntegerRange>& ranges() { return ranges_; }

 private:
  Status Admit(RecordView& record, const Feature& feature) {
    RIDGE_ASSIGN_OR_RETURN(const ValueCount values, CountValues(record, feature));
    RIDGE_ASSIGN_OR_RETURN(const ImageHeader header,
                           ReadPictureHeader(values.value.bytes, [&](int64_t count) {
                             return record.At(values.value.begin, count);
                           }));
    return reader_->Admit(header);
  }

  const ExampleSchema& schema_;
  PictureReader* reader_;
  std::vector<IntegerRange> ranges_;
  std::vector<Feature> found_;
};

uint64_t HashOf(const RecordInFile& record) {
  ContentHash hash;
  hash.Add({reinterpret_cast<const char*>(&record.checksum), sizeof record.checksum});
  hash.Add({reinterpret_cast<const char*>(&record.bytes), sizeof record.bytes});
  return hash.value();
}

Result<Survey> LookThrough(FileTable files, const ExampleSchema& schema, PictureReader* reader) {
  Survey survey;
  Surveyor surveyor(schema, reader);
  RIDGE_RETURN_IF_ERROR(
      ForEachRecord(files, [&](const RecordInFile& record, RecordView& bytes) -> Result<bool> {
        RIDGE_RETURN_IF_ERROR(surveyor.Add(bytes));
        survey.index.records.push_back(record.place);
        survey.hashes.push_back(HashOf(record));
        survey.index.most_bytes =
            std::max(survey.index.most_bytes, record.bytes + kRecordFooterBytes);
        return true;
      }));
  survey.index.files = std::move(files);
  survey.ranges = std::move(surveyor.ranges());
  return survey;
}

Result<ExampleSchema> FindSchema(const std::string& name, const FileTable& files,
                                 const ContainerOptions& options) {
  SchemaFinder finder;
  int64_t looked = 0;
  RIDGE_RETURN_IF_ERROR(
      ForEachRecord(files, [&](const RecordInFile&, RecordView& bytes) -> Result<bool> {
        RIDGE_RETURN_IF_ERROR(finder.Look(bytes));
        return ++looked < kLooked;
      }));
  return finder.Find(name, options);
}

// Integers count from 0, the label from what stands for class 0.
Result<std::vector<Field>> FieldsOf(const std::string& name, const ExampleSchema& schema,
                                    const std::vector<IntegerRange>& ranges,
                                    const ContainerOptions& options) {
  std::vector<Field> fields;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    Field field = schema.fields[i].field;
    field.classes = ranges[i].classes();
    fields.push_back(field);
    if (field.name != "label" || field.type != TensorType{DType::kI64, {}}) continue;
    const int64_t least = ranges[i].least - options.first_label;
    const int64_t most = ranges[i].most - options.first_label;
    if (!ranges[i].empty() && least < 0) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: has label {}, less than first-label, which is {}", name,
                                ranges[i].least, options.first_label));
    }
    fields.back().classes = field.classes == 0 ? 0 : most + 1;
    if (!options.classes) continue;
    if (!ranges[i].empty() && most >= *options.classes) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: has label {}; classes={} are from {} to {}", name,
                                ranges[i].most, *options.classes, options.first_label,
                                options.first_label + *options.classes - 1));
    }
    fields.back().classes = *options.classes;
  }
  return fields;
}

struct Opened {
  ContainerOptions options;
  FileSets sets;
  FileTable training;
  ExampleSchema schema;
};

Result<FileTable> OpenFiles(const std::vector<std::string>& paths) {
  return FileTable::Open(paths, BeginsAsRecord);
}

Result<Opened> OpenTraining(const std::string& name, const std::string& argument) {
  Opened opened;
  RIDGE_ASSIGN_OR_RETURN(
      opened.options, ParseContainerOptions(
                          name, argument, {"schema", "image", "label", "first-label", "classes"}));
  RIDGE_ASSIGN_OR_RETURN(const auto paths, FindFiles(name, opened.options.pattern));
  RIDGE_ASSIGN_OR_RETURN(opened.sets, SplitFiles(name, paths));
  RIDGE_ASSIGN_OR_RETURN(opened.training, OpenFiles(opened.sets.train));
  RIDGE_ASSIGN_OR_RETURN(opened.schema, FindSchema(name, opened.training, opened.options));
  return opened;
}

Result<SampleSet> OpenSet(const std::string& name, FileTable files, const ExampleSchema& schema,
                          const ContainerOptions& options, PictureReader reader, double hold_out) {
  RIDGE_ASSIGN_OR_RETURN(Survey survey, LookThrough(std::move(files), schema, &reader));
  RIDGE_ASSIGN_OR_RETURN(const auto held_out, ChooseHeldOut(name, hold_out, survey.hashes));
  MoveHeldOutBack(held_out, survey.index.records);
  RIDGE_ASSIGN_OR_RETURN(auto fields, FieldsOf(name, schema, survey.ranges, options));
  SampleSet set;
  set.held_out = std::count(held_out.begin(), held_out.end(), true);
  set.all =
      std::make_shared<TfRecordSource>(name, std::move(fields), schema.fields, options.first_label,
                                       std::move(reader), std::move(survey.index));
  return set;
}

}  // namespace

Result<DataSplits> OpenTfRecord(const std::string& name, const std::string& argument,
                                const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opened opened, OpenTraining(name, argument));
  auto preprocessing = std::make_shared<Preprocessing>();
  for (ExampleField& field : opened.schema.fields) {
    if (!field.picture) continue;
    RIDGE_ASSIGN_OR_RETURN(preprocessing->pictures,
                           PlanPictures(name, opened.options.pictures, options));
    const std::string field_name = field.field.name;
    field.field = PictureField(*preprocessing->pictures);
    field.field.name = field_name;
  }
  const auto& pictures = preprocessing->pictures;
  const PictureReader reader(pictures ? pictures->target : PictureTarget());
  DataSplits splits;
  const double hold_out = opened.sets.validation.empty() ? options.hold_out : 0;
  RIDGE_ASSIGN_OR_RETURN(
      const SampleSet training,
      OpenSet(name, std::move(opened.training), opened.schema, opened.options, reader, hold_out));
  SetTraining(training, splits);
  const std::pair<const std::vector<std::string>&, SourcePtr&> further[] = {
      {opened.sets.validation, splits.validation}, {opened.sets.test, splits.test}};
  for (const auto& [paths, source] : further) {
    if (paths.empty()) continue;
    RIDGE_ASSIGN_OR_RETURN(FileTable files, OpenFiles(paths));
    RIDGE_ASSIGN_OR_RETURN(const SampleSet set, OpenSet(name, std::move(files), opened.schema,
                                                        opened.options, reader, /*hold_out=*/0));
    source = set.all;
  }
  splits.sizes = SizesOf(training.all->fields(), opened.schema.picture() != nullptr);
  splits.notes = opened.schema.notes;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> TfRecordFacts(const std::string& name, const std::string& argument,
                                const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opened opened, OpenTraining(name, argument));
  std::vector<IntegerRange> ranges(opened.schema.fields.size());
  if (!opened.options.classes) {
    RIDGE_ASSIGN_OR_RETURN(
        Survey survey, LookThrough(std::move(opened.training), opened.schema, /*reader=*/nullptr));
    ranges = std::move(survey.ranges);
  }
  RIDGE_ASSIGN_OR_RETURN(const auto fields, FieldsOf(name, opened.schema, ranges, opened.options));
  DataFacts facts;
  for (size_t i = 0; i < fields.size(); ++i) {
    facts.fields.push_back(fields[i]);
    if (!opened.schema.fields[i].picture) continue;
    facts.fields.pop_back();
    if (const auto target = KnownTarget(opened.options.pictures, options))
      facts.fields.push_back({fields[i].name, target->type()});
  }
  facts.sizes = SizesOf(facts.fields, opened.schema.picture() != nullptr);
  return facts;
}

}  // namespace ridge
