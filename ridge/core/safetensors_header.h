// The header of a safetensors file: which tensors there are, and where their bytes lie.
//
//   {"__metadata__":{"key":"text"},
//    "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, ...}
//
// Offsets count from the end of the header.  The tensors must cover the buffer without a hole and
// without sharing a byte.  https://github.com/huggingface/safetensors
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/core/status.h"

namespace ridge {

inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;  // the format's own limit

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;  // UTF-8
  TensorType type;
  int64_t offset_bytes = 0;  // the writer computes it and ignores what is here
};

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> entries;  // by offset
  std::vector<size_t> by_name;            // indices of entries, names in byte order

  const SafetensorsEntry* Find(std::string_view name) const;  // nullptr if there is none
};

// `buffer_bytes` is what the file holds after the header.  Fails with kInvalidData, and with
// kUnsupported for an element type that ridge lacks.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json, int64_t buffer_bytes);

// The entries in the order given, padded with blanks to a multiple of 8 bytes.
// Fails with kInvalidArgument for a name that is double, empty, reserved or not UTF-8.
Result<std::string> PrintSafetensorsHeader(std::span<const SafetensorsEntry> entries,
                                           const SafetensorsMetadata& metadata);

}  // namespace ridge
