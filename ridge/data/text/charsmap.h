// Charsmap: SentencePiece's precompiled rules of normalization, a double-array trie (Darts) of byte
// strings and their replacements.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

class Charsmap {
 public:
  Charsmap() = default;  // replaces nothing
  // Fails with kInvalidData when the parts do not fit; `where` is for messages.
  static Result<Charsmap> Parse(const std::string& where, std::string_view blob);

  bool empty() const { return units_.empty(); }

  struct Rule {
    size_t length = 0;  // bytes of the text; 0: no rule matches
    std::string_view replacement;
  };
  // The longest rule that matches the text's beginning, or the shortest.
  Rule Find(std::string_view text, bool longest) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

// As the package `tokenizers` applies it: to each grapheme of less than six bytes as a whole where
// its first characters have a rule, else to each character.
void ApplyCharsmap(const Charsmap& map, std::string& text);

}  // namespace ridge
