#include "ridge/data/container/example_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace ridge {
namespace {

constexpr std::string_view kLabelFeatures[] = {"image/class/label", "image/label", "class",
                                               "class_id"};
constexpr std::string_view kLabelFields[] = {"label", "labels", "y", "target", "targets"};
constexpr std::string_view kImageFeatures[] = {"image/encoded", "image_raw", "image/raw", "encoded",
                                               "img",           "jpeg",      "jpg",       "png"};
constexpr std::string_view kImageFields[] = {"image",  "images", "x",       "input",
                                             "inputs", "data",   "features"};
constexpr int64_t kTextLook = 64;  // bytes of a byte string that say whether it is text

bool Holds(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool BeginsAsPicture(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8\xFF") || bytes.starts_with("\x89PNG\r\n") ||
         (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP"));
}

bool LooksLikeText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 0x20 ? byte != 0x7F : byte == '\n' || byte == '\t' || byte == '\r';
  });
}

// ---- names

// The first of `features` that `fields` have.
ExampleField* FindFeature(std::vector<ExampleField>& fields,
                          std::span<const std::string_view> features) {
  for (std::string_view name : features) {
    for (ExampleField& field : fields) {
      if (field.feature == name) return &field;
    }
  }
  return nullptr;
}

// Calls the feature that is usual for it by the field's name, unless one has such a name already.
void NameUsual(std::vector<ExampleField>& fields, std::span<const std::string_view> features,
               std::span<const std::string_view> names) {
  if (FindFeature(fields, names) != nullptr) return;
  if (ExampleField* found = FindFeature(fields, features)) found->field.name = names[0];
}

// image=NAME, label=NAME.
Status NameAsTold(const std::string& spec, const char* name, const std::string& feature,
                  std::vector<ExampleField>& fields) {
  for (ExampleField& field : fields) {
    if (field.field.name == name) field.field.name = field.feature + " ";
  }
  const std::string_view wanted[] = {feature};
  if (ExampleField* found = FindFeature(fields, wanted)) {
    found->field.name = name;
    return Status();
  }
  std::vector<std::string> names;
  for (const ExampleField& field : fields) names.push_back(field.feature);
  return InvalidArgument(fmt::format("data '{}': {} is '{}', which is none of the features: {}",
                                     spec, name, feature, fmt::join(names, ", ")));
}

Status NameFields(const std::string& spec, const ContainerOptions& options,
                  std::vector<ExampleField>& fields) {
  NameUsual(fields, kImageFeatures, kImageFields);
  NameUsual(fields, kLabelFeatures, kLabelFields);
  if (!options.image.empty())
    RIDGE_RETURN_IF_ERROR(NameAsTold(spec, "image", options.image, fields));
  if (!options.label.empty())
    RIDGE_RETURN_IF_ERROR(NameAsTold(spec, "label", options.label, fields));
  return Status();
}

// One picture has the size of the model's image; of several the one called image is kept.
Status KeepOnePicture(const std::string& spec, std::vector<ExampleField>& fields,
                      std::vector<std::string>& left_out) {
  std::vector<std::string> pictures;
  for (const ExampleField& field : fields) {
    if (field.picture) pictures.push_back(field.feature);
  }
  if (pictures.size() < 2) {
    for (ExampleField& field : fields) {
      const bool is_named = Holds(kImageFields, field.field.name);
      if (field.picture && !is_named) field.field.name = "image";
    }
    return Status();
  }
  const auto is_other = [](const ExampleField& field) {
    return field.picture && field.field.name != "image";
  };
  if (std::all_of(fields.begin(), fields.end(),
                  [&](const ExampleField& field) { return !field.picture || is_other(field); })) {
    return InvalidArgument(
        fmt::format("data '{}': records have several pictures: {}. hint: image={}", spec,
                    fmt::join(pictures, ", "), pictures[0]));
  }
  for (const ExampleField& field : fields) {
    if (is_other(field)) left_out.push_back(field.feature + " (a second picture)");
  }
  std::erase_if(fields, is_other);
  return Status();
}

// ---- the user's schema

// "u8[28,28]"
std::optional<TensorType> ParseFieldType(std::string_view text) {
  const size_t open = text.find('[');
  const auto dtype = ParseDType(text.substr(0, open));
  if (!dtype) return std::nullopt;
  TensorType type{*dtype, {}};
  if (open == std::string_view::npos) return type;
  if (!text.ends_with(']')) return std::nullopt;
  std::string_view dims = text.substr(open + 1, text.size() - open - 2);
  while (!dims.empty()) {
    int64_t extent = 0;
    const auto [rest, error] = std::from_chars(dims.data(), dims.data() + dims.size(), extent);
    if (error != std::errc() || extent < 1) return std::nullopt;
    dims.remove_prefix(static_cast<size_t>(rest - dims.data()));
    type.dims.push_back(extent);
    if (dims.empty()) break;
    if (dims[0] != ',' || dims.size() == 1) return std::nullopt;
    dims.remove_prefix(1);
  }
  return CheckDims(type.dims).ok() ? std::optional(type) : std::nullopt;
}

// Cuts at the commas outside of brackets.
std::vector<std::string> CutSchema(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Status WrongSchema(const std::string& spec, const std::string& part) {
  return InvalidArgument(
      fmt::format("data '{}': schema has '{}'; it must be NAME:TYPE such as label:i64, x:f32[4], "
                  "raw:u8[28,28] or photo:image",
                  spec, part));
}

// ---- one record

Status MatchFeature(const ExampleField& wanted, const Feature& found, RecordView& record) {
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("its feature '{}' {}", wanted.feature, what));
  };
  if (found.kind == FeatureKind::kNone)
    return Status(ErrorCode::kInvalidData, fmt::format("has no feature '{}'", wanted.feature));
  if (found.kind != wanted.kind) {
    return bad(fmt::format("is {}, in the first record it is {}", FeatureKindName(found.kind),
                           FeatureKindName(wanted.kind)));
  }
  RIDGE_ASSIGN_OR_RETURN(const ValueCount values, CountValues(record, found));
  const bool one = wanted.kind == FeatureKind::kBytes;
  const int64_t count = one ? 1 : wanted.field.type.elements();
  if (values.count != count) {
    return bad(fmt::format("has {} {}, {} {} needed", values.count,
                           values.count == 1 ? "value" : "values", count,
                           count == 1 ? "is" : "are"));
  }
  const int64_t bytes = wanted.field.type.bytes();
  if (!one || wanted.picture || values.value.bytes == bytes) return Status();
  return bad(fmt::format("has {} bytes, {} has {}", values.value.bytes,
                         TypeToString(wanted.field.type), bytes));
}

}  // namespace

const ExampleField* ExampleSchema::picture() const {
  for (const ExampleField& field : fields) {
    if (field.picture) return &field;
  }
  return nullptr;
}

// ---- looking at records

Status SchemaFinder::NoteBytes(RecordView& record, const RecordPart& value, Seen& seen) const {
  seen.bytes.Add(value.bytes);
  RIDGE_ASSIGN_OR_RETURN(const std::string_view start,
                         record.At(value.begin, std::min(value.bytes, kTextLook)));
  seen.pictures = seen.pictures && BeginsAsPicture(start);
  seen.texts = seen.texts && LooksLikeText(start);
  return Status();
}

Status SchemaFinder::Note(RecordView& record, const Feature& feature, Seen& seen) const {
  RIDGE_ASSIGN_OR_RETURN(const ValueCount values, CountValues(record, feature));
  seen.same_kind = seen.records == 0 || (seen.same_kind && seen.kind == feature.kind);
  seen.kind = feature.kind;
  seen.counts.Add(values.count);
  ++seen.records;
  if (values.count != 1) return Status();
  if (feature.kind == FeatureKind::kBytes) return NoteBytes(record, values.value, seen);
  if (feature.kind != FeatureKind::kInt64) return Status();
  int64_t value = 0;
  RIDGE_RETURN_IF_ERROR(TakeInt64s(record, feature.list, {&value, 1}));
  seen.values.Add(value);
  return Status();
}

Status SchemaFinder::Look(RecordView& record) {
  std::map<std::string, Feature> features;  // of equal keys the last one wins
  RIDGE_RETURN_IF_ERROR(ForEachFeature(record, [&](std::string_view name, const Feature& feature) {
    features[std::string(name)] = feature;
    return Status();
  }));
  for (const auto& [name, feature] : features)
    RIDGE_RETURN_IF_ERROR(Note(record, feature, seen_[name]));
  ++records_;
  return Status();
}

bool SchemaFinder::IsRegular(const Seen& seen) const {
  const bool always = seen.records == records_ && seen.same_kind;
  if (!always || seen.counts.least != seen.counts.most || seen.counts.most < 1) return false;
  if (seen.kind != FeatureKind::kBytes) return true;
  if (seen.counts.most != 1) return false;
  return seen.pictures || (!seen.texts && seen.bytes.least == seen.bytes.most);
}

// [height, width] or [height, width, depth] where the records say them and they fit; else [bytes].
Dims SchemaFinder::RawDims(const std::string& feature, int64_t bytes) const {
  const std::string prefix =
      feature.substr(0, feature.find('/') == feature.npos ? 0 : feature.find('/') + 1);
  const auto extent = [&](std::initializer_list<const char*> names) -> int64_t {
    for (const char* name : names) {
      const auto found = seen_.find(prefix + name);
      if (found == seen_.end() || !found->second.is_constant()) continue;
      return found->second.values.most;
    }
    return 0;
  };
  const int64_t height = extent({"height", "rows"}), width = extent({"width", "cols"});
  const int64_t depth = extent({"depth", "channels"});
  if (height < 1 || width < 1 || height > bytes || width > bytes / height) return {bytes};
  const int64_t pixels = height * width;
  if (pixels == bytes) return {height, width};
  if (bytes % pixels == 0 && (depth == 0 || depth == bytes / pixels))
    return {height, width, bytes / pixels};
  return {bytes};
}

std::vector<ExampleField> SchemaFinder::Infer(std::vector<std::string>& left_out) const {
  std::vector<ExampleField> fields;
  for (const auto& [name, seen] : seen_) {
    if (!IsRegular(seen)) {
      left_out.push_back(name);
      continue;
    }
    ExampleField field{name, {name, {DType::kU8, {}}, 0}, seen.kind, false};
    const bool bytes = seen.kind == FeatureKind::kBytes;
    field.picture = bytes && seen.pictures;
    if (bytes && !field.picture) field.field.type.dims = RawDims(name, seen.bytes.most);
    if (!bytes) {
      field.field.type.dtype = seen.kind == FeatureKind::kFloat ? DType::kF32 : DType::kI64;
      if (seen.counts.most > 1) field.field.type.dims = {seen.counts.most};
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

// ---- the schema

Status SchemaFinder::SetKind(const std::string& spec, ExampleField& field) const {
  const auto found = seen_.find(field.feature);
  if (found == seen_.end() || found->second.kind == FeatureKind::kNone) {
    std::vector<std::string> names;
    for (const auto& [name, seen] : seen_) names.push_back(name);
    return Status(ErrorCode::kInvalidData,
                  fmt::format("data '{}': the first records have no feature '{}'; they have: {}",
                              spec, field.feature, fmt::join(names, ", ")));
  }
  field.kind = found->second.kind;
  const DType type = field.field.type.dtype;
  const bool fits = field.kind == FeatureKind::kBytes ||
                    (!field.picture && field.kind == FeatureKind::kFloat && type == DType::kF32) ||
                    (!field.picture && field.kind == FeatureKind::kInt64 && type == DType::kI64);
  if (fits) return Status();
  const char* wanted = field.kind == FeatureKind::kFloat ? "f32" : "i64";
  return InvalidArgument(
      fmt::format("data '{}': schema says {} of feature '{}', which is {} in the records: {}", spec,
                  field.picture ? "image" : DTypeName(type), field.feature,
                  FeatureKindName(field.kind), wanted));
}

Result<std::vector<ExampleField>> SchemaFinder::ParseSchema(const std::string& spec,
                                                            const std::string& text) const {
  std::vector<ExampleField> fields;
  for (const std::string& part : CutSchema(text)) {
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0) return WrongSchema(spec, part);
    const std::string name = part.substr(0, colon), type = part.substr(colon + 1);
    ExampleField field{name, {name, {DType::kU8, {}}, 0}, FeatureKind::kNone, type == "image"};
    const auto parsed = ParseFieldType(type);
    if (!field.picture && !parsed) return WrongSchema(spec, part);
    if (parsed) field.field.type = *parsed;
    for (const ExampleField& other : fields) {
      if (other.feature == name)
        return InvalidArgument(fmt::format("data '{}': schema has '{}' twice", spec, name));
    }
    RIDGE_RETURN_IF_ERROR(SetKind(spec, field));
    fields.push_back(std::move(field));
  }
  return fields;
}

Result<ExampleSchema> SchemaFinder::Find(const std::string& spec,
                                         const ContainerOptions& options) const {
  ExampleSchema schema;
  std::vector<std::string> left_out;
  if (!options.schema.empty()) {
    RIDGE_ASSIGN_OR_RETURN(schema.fields, ParseSchema(spec, options.schema));
  } else {
    schema.fields = Infer(left_out);
  }
  if (schema.fields.empty()) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("data '{}': the first records have no feature of one length; left "
                              "out: {}. hint: schema=NAME:TYPE",
                              spec, fmt::join(left_out, ", ")));
  }
  RIDGE_RETURN_IF_ERROR(NameFields(spec, options, schema.fields));
  RIDGE_RETURN_IF_ERROR(KeepOnePicture(spec, schema.fields, left_out));
  if (!left_out.empty()) {
    schema.notes.push_back(
        fmt::format("{}: features left out, for they are text or of several "
                    "lengths: {}",
                    spec, fmt::join(left_out, ", ")));
  }
  return schema;
}

Status MatchExample(const ExampleSchema& schema, RecordView& record, std::vector<Feature>& found) {
  found.assign(schema.fields.size(), Feature());
  RIDGE_RETURN_IF_ERROR(ForEachFeature(record, [&](std::string_view name, const Feature& feature) {
    for (size_t i = 0; i < found.size(); ++i) {
      if (schema.fields[i].feature == name) found[i] = feature;
    }
    return Status();
  }));
  for (size_t i = 0; i < found.size(); ++i)
    RIDGE_RETURN_IF_ERROR(MatchFeature(schema.fields[i], found[i], record));
  return Status();
}

}  // namespace ridge
