// A message is a chain of fields: a tag (number << 3 | wire type), then a varint (0), 8 bytes (1),
// a length and as many bytes (2) or 4 bytes (5).  Every length is held against the end of the
// message that it stands in, so a part never leaves its record.
#include "ridge/data/container/example.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace ridge {
namespace {

constexpr int64_t kMostVarint = 10;
constexpr int64_t kPiece = 64 << 10;  // of a packed list

enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

Status BadExample(const std::string& what) {
  return Status(ErrorCode::kInvalidData, "is no tf.train.Example: " + what);
}

// Takes a varint off the front of `text`; nothing when it does not end there.
std::optional<uint64_t> TakeVarint(std::string_view& text) {
  uint64_t value = 0;
  const size_t most = std::min<size_t>(text.size(), kMostVarint);
  for (size_t i = 0; i < most; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    text.remove_prefix(i + 1);
    return value;
  }
  return std::nullopt;
}

struct WireField {
  int64_t number = 0;
  int type = kVarint;
  RecordPart value;  // without its length
};

// The fields of a message, one after another.
class Fields {
 public:
  Fields(RecordView& record, const RecordPart& message)
      : record_(record), at_(message.begin), end_(message.begin + message.bytes) {}

  // Nothing at the end of the message.
  Result<std::optional<WireField>> Next() {
    if (at_ == end_) return std::optional<WireField>();
    RIDGE_ASSIGN_OR_RETURN(std::string_view start,
                           record_.At(at_, std::min(2 * kMostVarint, end_ - at_)));
    const size_t before = start.size();
    const auto tag = TakeVarint(start);
    if (!tag) return Broken();
    WireField field{static_cast<int64_t>(*tag >> 3), static_cast<int>(*tag & 7), {}};
    const auto tag_bytes = static_cast<int64_t>(before - start.size());
    RIDGE_ASSIGN_OR_RETURN(field.value, ValuePart(field.type, at_ + tag_bytes, start));
    at_ = field.value.begin + field.value.bytes;
    return std::optional(field);
  }

 private:
  Status Broken() const {
    return BadExample(fmt::format("its byte {} begins no field of a message", at_));
  }
  // Where the value at `begin` lies; `start` is what follows there.
  Result<RecordPart> ValuePart(int type, int64_t begin, std::string_view start) const {
    const size_t before = start.size();
    int64_t bytes = type == kFixed64 ? 8 : 4;
    if (type == kVarint || type == kLength) {
      const auto value = TakeVarint(start);
      if (!value) return Broken();
      bytes = static_cast<int64_t>(before - start.size());
      if (type == kVarint) return RecordPart{begin, bytes};
      begin += bytes;
      if (*value > static_cast<uint64_t>(end_ - begin)) return Broken();
      bytes = static_cast<int64_t>(*value);
    } else if (type != kFixed64 && type != kFixed32) {
      return Broken();
    }
    if (bytes > end_ - begin) return Broken();
    return RecordPart{begin, bytes};
  }

  RecordView& record_;
  int64_t at_, end_;
};

// Calls `found` for each field of `message`.
template <typename Function>
Status ForEachField(RecordView& record, const RecordPart& message, Function found) {
  Fields fields(record, message);
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(const std::optional<WireField> field, fields.Next());
    if (!field) return Status();
    RIDGE_RETURN_IF_ERROR(found(*field));
  }
}

// The kind that is set last, as for every oneof.
Result<Feature> ReadFeature(RecordView& record, const RecordPart& message) {
  Feature feature;
  RIDGE_RETURN_IF_ERROR(ForEachField(record, message, [&](const WireField& field) {
    if (field.type == kLength && field.number >= 1 && field.number <= 3)
      feature = {static_cast<FeatureKind>(field.number), field.value};
    return Status();
  }));
  return feature;
}

// An entry of the map: key and value may stand in any order.
Status ReadEntry(RecordView& record, const RecordPart& entry,
                 const std::function<Status(std::string_view, const Feature&)>& found) {
  RecordPart key, value;
  RIDGE_RETURN_IF_ERROR(ForEachField(record, entry, [&](const WireField& field) {
    if (field.type == kLength && field.number == 1) key = field.value;
    if (field.type == kLength && field.number == 2) value = field.value;
    return Status();
  }));
  RIDGE_ASSIGN_OR_RETURN(const Feature feature, ReadFeature(record, value));
  RIDGE_ASSIGN_OR_RETURN(const std::string_view name, record.At(key.begin, key.bytes));
  return found(name, feature);
}

// ---- values

Status WrongCount(int64_t more_than, size_t wanted) {
  return BadExample(fmt::format("a list has {} values, {} are needed", more_than, wanted));
}

// The varints of a packed list.
template <typename Function>
Status ForEachVarint(RecordView& record, RecordPart list, Function found) {
  while (list.bytes > 0) {
    RIDGE_ASSIGN_OR_RETURN(std::string_view piece,
                           record.At(list.begin, std::min(kPiece, list.bytes)));
    const auto whole = static_cast<int64_t>(piece.size());
    const bool last = whole == list.bytes;
    while (!piece.empty() && (last || piece.size() >= kMostVarint)) {
      const auto value = TakeVarint(piece);
      if (!value) return BadExample("a list of integers ends within one");
      found(*value);
    }
    const int64_t taken = whole - static_cast<int64_t>(piece.size());
    list = {list.begin + taken, list.bytes - taken};
  }
  return Status();
}

template <typename Function>
Status ForEachInt64(RecordView& record, const RecordPart& list, Function found) {
  return ForEachField(record, list, [&](const WireField& field) -> Status {
    if (field.number != 1) return Status();
    if (field.type == kVarint || field.type == kLength)
      return ForEachVarint(record, field.value, found);
    return BadExample("a list of integers holds other values");
  });
}

// `found` gets the stretches of packed and single floats.
template <typename Function>
Status ForEachFloats(RecordView& record, const RecordPart& list, Function found) {
  return ForEachField(record, list, [&](const WireField& field) -> Status {
    if (field.number != 1) return Status();
    const bool fits =
        field.type == kFixed32 || (field.type == kLength && field.value.bytes % 4 == 0);
    return fits ? found(field.value) : BadExample("a list of floats holds other values");
  });
}

}  // namespace

const char* FeatureKindName(FeatureKind kind) {
  constexpr const char* kNames[] = {"nothing", "bytes", "float", "int64"};
  return kNames[static_cast<size_t>(kind)];
}

Status ForEachFeature(RecordView& record,
                      const std::function<Status(std::string_view name, const Feature&)>& found) {
  const RecordPart whole{0, record.size()};
  return ForEachField(record, whole, [&](const WireField& field) -> Status {
    if (field.type != kLength) return Status();
    if (field.number == 2)
      return Status(ErrorCode::kInvalidData, "is a tf.train.SequenceExample, which is not read");
    if (field.number != 1) return Status();
    return ForEachField(record, field.value, [&](const WireField& entry) -> Status {
      const bool is_entry = entry.type == kLength && entry.number == 1;
      return is_entry ? ReadEntry(record, entry.value, found) : Status();
    });
  });
}

Result<ValueCount> CountValues(RecordView& record, const Feature& feature) {
  ValueCount result;
  const auto count_int = [&](uint64_t) { ++result.count; };
  const auto count_floats = [&](const RecordPart& part) {
    result.count += part.bytes / 4;
    return Status();
  };
  const auto count_bytes = [&](const WireField& field) {
    if (field.number != 1) return Status();
    if (field.type != kLength) return BadExample("a list of bytes holds other values");
    ++result.count;
    result.value = field.value;
    return Status();
  };
  Status status;
  if (feature.kind == FeatureKind::kInt64) status = ForEachInt64(record, feature.list, count_int);
  if (feature.kind == FeatureKind::kFloat)
    status = ForEachFloats(record, feature.list, count_floats);
  if (feature.kind == FeatureKind::kBytes) status = ForEachField(record, feature.list, count_bytes);
  if (!status.ok()) return status;
  return result;
}

Status TakeInt64s(RecordView& record, const RecordPart& list, std::span<int64_t> to) {
  size_t count = 0;
  RIDGE_RETURN_IF_ERROR(ForEachInt64(record, list, [&](uint64_t value) {
    if (count < to.size()) to[count] = static_cast<int64_t>(value);
    ++count;
  }));
  return count == to.size() ? Status() : WrongCount(static_cast<int64_t>(count), to.size());
}

Status TakeFloats(RecordView& record, const RecordPart& list, std::span<float> to) {
  static_assert(std::endian::native == std::endian::little);
  size_t count = 0;
  const auto take = [&](RecordPart part) -> Status {
    const auto more = static_cast<size_t>(part.bytes / 4);
    if (more > to.size() - count) return WrongCount(static_cast<int64_t>(count + more), to.size());
    while (part.bytes > 0) {
      RIDGE_ASSIGN_OR_RETURN(const std::string_view piece,
                             record.At(part.begin, std::min(kPiece, part.bytes)));
      std::memcpy(to.data() + count, piece.data(), piece.size());
      count += piece.size() / 4;
      const auto taken = static_cast<int64_t>(piece.size());
      part = {part.begin + taken, part.bytes - taken};
    }
    return Status();
  };
  RIDGE_RETURN_IF_ERROR(ForEachFloats(record, list, take));
  return count == to.size() ? Status() : WrongCount(static_cast<int64_t>(count), to.size());
}

}  // namespace ridge
