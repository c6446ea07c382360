// JsonLine: the single values of an object that stands in one line of text.
//
// The line is read as a stream: nothing of it but the wanted values is held.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

enum class JsonKind { kText, kInteger, kBoolean, kOther };  // other: fractions and null

struct JsonValue {
  std::string path;  // "label", "meta.language"
  JsonKind kind = JsonKind::kOther;
  std::string text;  // as it stands there, a text without its quotes and escapes
};

// The values whose path `wants`, in the order of the line; values within lists are none.
// Fails with kInvalidData where the line is no JSON object, nested more than 64 deep, or says one
// wanted value twice.  The message is "byte N: reason"; `offset` is that of the line's first byte.
Result<std::vector<JsonValue>> ParseJsonLine(
    std::string_view line, int64_t offset,
    const std::function<bool(const std::string& path)>& wants);

}  // namespace ridge
