// WireReader: the fields of a protobuf message.
//
// Each field is a number with a type of its content: a varint, four or eight bytes, or a length
// with as many bytes.  Groups are refused.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

struct WireField {
  enum Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint64_t number = 0;
  Type type = kVarint;
  uint64_t value = 0;      // of a varint; the bits of a fixed one
  std::string_view bytes;  // of kBytes

  float AsFloat() const {
    const auto bits = static_cast<uint32_t>(value);
    float result = 0;
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }
};

class WireReader {
 public:
  // `offset`: where the message begins in its file.
  WireReader(std::string_view message, int64_t offset) : message_(message), offset_(offset) {}

  // Where the next field begins in the file.
  int64_t offset() const { return offset_ + static_cast<int64_t>(at_); }
  bool AtEnd() const { return at_ == message_.size(); }

  // Fails with kInvalidData; the message is "byte N: reason".  REQUIRES: !AtEnd().
  Result<WireField> Next();

 private:
  Result<uint64_t> Varint();
  Result<uint64_t> Fixed(size_t bytes);
  Status Bad(const char* what) const;

  std::string_view message_;
  int64_t offset_ = 0;
  size_t at_ = 0;
};

}  // namespace ridge
