#include "ridge/data/text/wire.h"

#include <fmt/format.h>

namespace ridge {

Status WireReader::Bad(const char* what) const {
  return Status(ErrorCode::kInvalidData, fmt::format("byte {}: {}", offset(), what));
}

Result<uint64_t> WireReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (AtEnd()) return Bad("ends within a number");
    const auto byte = static_cast<uint8_t>(message_[at_++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return Bad("has a number of more than 64 bits");
}

Result<uint64_t> WireReader::Fixed(size_t bytes) {
  if (message_.size() - at_ < bytes) return Bad("ends within a number");
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(message_[at_ + i])) << (8 * i);
  at_ += bytes;
  return value;
}

Result<WireField> WireReader::Next() {
  RIDGE_ASSIGN_OR_RETURN(const uint64_t tag, Varint());
  WireField field;
  field.number = tag >> 3;
  field.type = static_cast<WireField::Type>(tag & 7);
  switch (field.type) {
    case WireField::kVarint: {
      RIDGE_ASSIGN_OR_RETURN(field.value, Varint());
      return field;
    }
    case WireField::kFixed64: {
      RIDGE_ASSIGN_OR_RETURN(field.value, Fixed(8));
      return field;
    }
    case WireField::kFixed32: {
      RIDGE_ASSIGN_OR_RETURN(field.value, Fixed(4));
      return field;
    }
    case WireField::kBytes: {
      RIDGE_ASSIGN_OR_RETURN(const uint64_t length, Varint());
      if (length > message_.size() - at_) {
        return Status(ErrorCode::kInvalidData,
                      fmt::format("byte {}: a part has {} bytes; {} are left", offset(), length,
                                  message_.size() - at_));
      }
      field.bytes = message_.substr(at_, length);
      at_ += length;
      return field;
    }
  }
  return Bad("has a field of an unknown type: is no message of protobuf");
}

}  // namespace ridge
