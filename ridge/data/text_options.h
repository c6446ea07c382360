// TextOptions: what stands behind the path of `text:` and `jsonl:`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

struct TextOptions {
  std::string path;
  std::string tokenizer;          // a file or a folder; "": none is named
  std::optional<int64_t> length;  // tokens of a sample
  std::string label;              // of `text`: "file", "folder", "none"; of `jsonl`: a column
  std::string record;             // of `text`: "line", "paragraph", "file", else a line that cuts
  bool packing = false;           // texts of a language model stay whole, in rows of `length`
  std::string text;               // of `jsonl`: a column
};

// Fails with kInvalidArgument for unknown options and wrong values.
Result<TextOptions> ParseTextOptions(const std::string& spec, const std::string& argument,
                                     bool json_lines);

}  // namespace ridge
