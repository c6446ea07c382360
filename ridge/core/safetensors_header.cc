// The JSON is read as a stream of events, not into a tree: a tree of a hostile 100 MB header would
// take gigabytes, and would hide that a key came twice.
#include "ridge/core/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

namespace ridge {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr auto kTypeNames = std::to_array<TypeName>({{DType::kF64, "F64"},
                                                     {DType::kF32, "F32"},
                                                     {DType::kF16, "F16"},
                                                     {DType::kBF16, "BF16"},
                                                     {DType::kI64, "I64"},
                                                     {DType::kI32, "I32"},
                                                     {DType::kI16, "I16"},
                                                     {DType::kI8, "I8"},
                                                     {DType::kU64, "U64"},
                                                     {DType::kU32, "U32"},
                                                     {DType::kU16, "U16"},
                                                     {DType::kU8, "U8"},
                                                     {DType::kBool, "BOOL"},
                                                     {DType::kF8E4M3FN, "F8_E4M3"},
                                                     {DType::kF8E4M3FNUZ, "F8_E4M3FNUZ"},
                                                     {DType::kF8E5M2, "F8_E5M2"},
                                                     {DType::kF8E5M2FNUZ, "F8_E5M2FNUZ"},
                                                     {DType::kF8E8M0, "F8_E8M0"}});
// In the format, not in ridge: ours of 4 bits take a byte each, and the format packs them.
constexpr auto kForeignTypes = std::to_array<std::string_view>({"C64", "F4", "F6_E2M3", "F6_E3M2"});

std::string_view NameOf(DType dtype) {
  for (const TypeName& t : kTypeNames) {
    if (t.dtype == dtype) return t.name;
  }
  return {};
}

std::string KnownNames() {
  std::string names;
  for (const TypeName& t : kTypeNames) names += (names.empty() ? "" : " ") + std::string(t.name);
  return names;
}

// A name from a file can be long and can hold what a terminal would obey.
std::string Quoted(std::string_view name) {
  std::string text(name.substr(0, 100));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return fmt::format("'{}{}'", text, name.size() > 100 ? "..." : "");
}

Status Bad(std::string message) { return Status(ErrorCode::kInvalidData, std::move(message)); }

class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  // Of the first thing that is wrong.
  const Status& status() const { return status_; }
  SafetensorsHeader TakeHeader() { return std::move(header_); }

  bool start_object(size_t) override;
  bool key(std::string& name) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool string(std::string& text) override;
  bool number_unsigned(uint64_t number) override;

  bool null() override { return RefuseValue("null"); }
  bool boolean(bool) override { return RefuseValue("a boolean"); }
  bool number_integer(int64_t number) override { return RefuseValue(fmt::format("{}", number)); }
  bool number_float(double, const std::string& text) override { return RefuseValue(text); }
  bool binary(Json::binary_t&) override { return RefuseValue("binary data"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return Refuse(fmt::format("the header is not valid JSON at its byte {}", position));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets };

  bool Refuse(std::string message, ErrorCode code = ErrorCode::kInvalidData) {
    if (status_.ok()) status_ = Status(code, std::move(message));
    return false;
  }
  bool RefuseValue(std::string_view value);
  bool SetDType(std::string_view name);
  bool FinishTensor();

  Status status_;
  SafetensorsHeader header_;
  Place place_ = Place::kStart;
  std::string key_;    // at the top: a tensor's name, or __metadata__
  std::string field_;  // inside
  bool has_metadata_ = false;
  std::optional<DType> dtype_;  // of the tensor being read, as the next two
  std::optional<Dims> shape_;
  std::optional<std::vector<int64_t>> offsets_;
};

bool HeaderReader::start_object(size_t) {
  if (place_ == Place::kStart) {
    place_ = Place::kTop;
    return true;
  }
  if (place_ != Place::kTop) return RefuseValue("an object");
  if (key_ == kMetadataKey) {
    if (std::exchange(has_metadata_, true)) return Refuse("__metadata__ occurs twice");
    place_ = Place::kMetadata;
    return true;
  }
  place_ = Place::kTensor;
  dtype_.reset();
  shape_.reset();
  offsets_.reset();
  return true;
}

bool HeaderReader::key(std::string& name) {
  if (place_ == Place::kTop) {
    key_ = std::move(name);
    return true;
  }
  field_ = std::move(name);
  if (place_ == Place::kMetadata) return true;
  const bool known = field_ == "dtype" || field_ == "shape" || field_ == "data_offsets";
  if (!known)
    return Refuse(fmt::format("tensor {}: unknown field {}", Quoted(key_), Quoted(field_)));
  const bool twice = (field_ == "dtype" && dtype_) || (field_ == "shape" && shape_) ||
                     (field_ == "data_offsets" && offsets_);
  return !twice || Refuse(fmt::format("tensor {}: {} occurs twice", Quoted(key_), field_));
}

bool HeaderReader::end_object() {
  if (place_ == Place::kTensor && !FinishTensor()) return false;
  place_ = Place::kTop;
  return true;
}

bool HeaderReader::start_array(size_t) {
  if (place_ == Place::kTensor && field_ == "shape") {
    shape_.emplace();
    place_ = Place::kShape;
    return true;
  }
  if (place_ == Place::kTensor && field_ == "data_offsets") {
    offsets_.emplace();
    place_ = Place::kOffsets;
    return true;
  }
  return RefuseValue("a list");
}

bool HeaderReader::end_array() {
  place_ = Place::kTensor;
  return true;
}

bool HeaderReader::string(std::string& text) {
  if (place_ == Place::kMetadata) {
    const bool is_new = header_.metadata.emplace(field_, std::move(text)).second;
    return is_new || Refuse(fmt::format("__metadata__: {} occurs twice", Quoted(field_)));
  }
  if (place_ == Place::kTensor && field_ == "dtype") return SetDType(text);
  return RefuseValue("a text");
}

bool HeaderReader::SetDType(std::string_view name) {
  for (const TypeName& t : kTypeNames) {
    if (t.name == name) dtype_ = t.dtype;
  }
  if (dtype_) return true;
  if (std::find(kForeignTypes.begin(), kForeignTypes.end(), name) != kForeignTypes.end()) {
    return Refuse(fmt::format("tensor {}: dtype {} is not supported; supported are {}",
                              Quoted(key_), name, KnownNames()),
                  ErrorCode::kUnsupported);
  }
  return Refuse(fmt::format("tensor {}: unknown dtype {}", Quoted(key_), Quoted(name)));
}

bool HeaderReader::number_unsigned(uint64_t number) {
  const bool in_shape = place_ == Place::kShape;
  if (!in_shape && place_ != Place::kOffsets) return RefuseValue(fmt::format("{}", number));
  std::vector<int64_t>& list = in_shape ? *shape_ : *offsets_;
  if (number > static_cast<uint64_t>(INT64_MAX)) return RefuseValue(fmt::format("{}", number));
  if (list.size() == (in_shape ? 16U : 2U)) {
    return Refuse(
        fmt::format("tensor {}: {} has more than {} numbers", Quoted(key_), field_, list.size()));
  }
  list.push_back(static_cast<int64_t>(number));
  return true;
}

bool HeaderReader::RefuseValue(std::string_view value) {
  switch (place_) {
    case Place::kStart:
      return Refuse("the header is not a JSON object");
    case Place::kTop:
      return Refuse(fmt::format("{} is {}; it must be an object", Quoted(key_), value));
    case Place::kMetadata:
      return Refuse(
          fmt::format("__metadata__: {} is {}; it must be a text", Quoted(field_), value));
    case Place::kTensor:
      return Refuse(fmt::format("tensor {}: {} can't be {}", Quoted(key_), field_, value));
    case Place::kShape:
    case Place::kOffsets:
      return Refuse(fmt::format("tensor {}: {} holds {}; it must hold whole numbers from 0 to 2^63",
                                Quoted(key_), field_, value));
  }
  return false;
}

bool HeaderReader::FinishTensor() {
  if (!dtype_ || !shape_ || !offsets_ || offsets_->size() != 2) {
    return Refuse(
        fmt::format("tensor {}: dtype, shape and two data_offsets are needed", Quoted(key_)));
  }
  TensorType type{*dtype_, std::move(*shape_)};
  if (const Status status = CheckDims(type.dims); !status.ok())
    return Refuse(fmt::format("tensor {}: {}", Quoted(key_), status.message()));
  const int64_t begin = (*offsets_)[0], end = (*offsets_)[1];
  if (begin > end || end - begin != type.bytes()) {
    return Refuse(fmt::format("tensor {}: data_offsets are [{},{}]; {} needs {} bytes",
                              Quoted(key_), begin, end, TypeToString(type), type.bytes()));
  }
  header_.entries.push_back({std::move(key_), std::move(type), begin});
  return true;
}

// Tensors of no bytes come before the one that begins at the same place.
void SortByOffset(std::vector<SafetensorsEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     if (a.offset_bytes != b.offset_bytes) return a.offset_bytes < b.offset_bytes;
                     return a.type.bytes() < b.type.bytes();
                   });
}

Status CheckCover(const std::vector<SafetensorsEntry>& entries, int64_t buffer_bytes) {
  int64_t covered = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].offset_bytes != covered) {
      const std::string before = i == 0 ? "where the buffer begins"
                                        : fmt::format("where {} ends", Quoted(entries[i - 1].name));
      return Bad(fmt::format("tensor {} begins at byte {}; it must begin at {}, {}",
                             Quoted(entries[i].name), entries[i].offset_bytes, covered, before));
    }
    covered += entries[i].type.bytes();
  }
  if (covered == buffer_bytes) return Status();
  return Bad(fmt::format("the tensors need {} bytes after the header; the file has {}", covered,
                         buffer_bytes));
}

// Fails when a name occurs twice.
Result<std::vector<size_t>> SortByName(std::span<const SafetensorsEntry> entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return entries[a].name < entries[b].name; });
  const auto twice = std::adjacent_find(order.begin(), order.end(), [&](size_t a, size_t b) {
    return entries[a].name == entries[b].name;
  });
  if (twice == order.end()) return order;
  return Bad(fmt::format("tensor {} occurs twice", Quoted(entries[*twice].name)));
}

// Throws Json::exception when `text` is not UTF-8.
std::string JsonText(const std::string& text) { return Json(text).dump(); }

std::string PrintEntry(const SafetensorsEntry& entry, int64_t begin) {
  return fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                     JsonText(entry.name), NameOf(entry.type.dtype), DimsToString(entry.type.dims),
                     begin, begin + entry.type.bytes());
}

std::string PrintAll(std::span<const SafetensorsEntry> entries,
                     const SafetensorsMetadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += fmt::format("\"{}\":{}", kMetadataKey, Json(metadata).dump());
  int64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (text.size() > 1) text += ",";
    text += PrintEntry(entry, offset);
    offset += entry.type.bytes();
  }
  return text + "}";
}

}  // namespace

const SafetensorsEntry* SafetensorsHeader::Find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [&](size_t i, std::string_view n) { return entries[i].name < n; });
  return at != by_name.end() && entries[*at].name == name ? &entries[*at] : nullptr;
}

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json, int64_t buffer_bytes) {
  if (json.empty() || json[0] != '{') return Bad("the header does not begin with '{'");
  HeaderReader reader;
  if (!Json::sax_parse(json.begin(), json.end(), &reader)) {
    if (!reader.status().ok()) return reader.status();
    return Bad("the header is not valid JSON");
  }
  SafetensorsHeader header = reader.TakeHeader();
  SortByOffset(header.entries);
  RIDGE_RETURN_IF_ERROR(CheckCover(header.entries, buffer_bytes));
  RIDGE_ASSIGN_OR_RETURN(header.by_name, SortByName(header.entries));
  return header;
}

Result<std::string> PrintSafetensorsHeader(std::span<const SafetensorsEntry> entries,
                                           const SafetensorsMetadata& metadata) {
  const auto refuse = [](std::string message) { return InvalidArgument(std::move(message)); };
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name.empty() || entry.name == kMetadataKey)
      return refuse(fmt::format("{} can't be the name of a tensor", Quoted(entry.name)));
    if (NameOf(entry.type.dtype).empty()) {
      return refuse(fmt::format("{} is {}; the format has no element type for it",
                                Quoted(entry.name), TypeToString(entry.type)));
    }
  }
  if (const auto order = SortByName(entries); !order.ok()) return refuse(order.status().message());
  std::string text;
  try {
    text = PrintAll(entries, metadata);
  } catch (const Json::exception&) {
    return refuse("a tensor's name or a metadata text is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (static_cast<int64_t>(text.size()) > kMaxSafetensorsHeaderBytes) {
    return refuse(fmt::format("the header has {} bytes; the format allows {}", text.size(),
                              kMaxSafetensorsHeaderBytes));
  }
  return text;
}

}  // namespace ridge
