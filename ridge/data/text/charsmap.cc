// A hostile trie may point anywhere: each unit is looked at only within the array, and each
// replacement ends within its text.
#include "ridge/data/text/charsmap.h"

#include <fmt/format.h>

#include <cstring>

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

// Of a unit of the trie.
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t LabelOf(uint32_t unit) { return unit & (1U << 31 | 0xFF); }
uint32_t OffsetOf(uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); }
uint32_t ValueOf(uint32_t unit) { return unit & ~(1U << 31); }

constexpr char32_t kJoiner = 0x200D;

// What stays with the character before it.
bool Extends(char32_t code) {
  return code == kJoiner || code == 0x200C || IsMark(CategoryOf(code)) ||
         (code >= 0x1F3FB && code <= 0x1F3FF) || code == 0xFF9E || code == 0xFF9F ||
         (code >= 0xE0020 && code <= 0xE007F);
}

// The end of the grapheme at `at`, as far as rules of normalization can tell: marks stay with
// their character, and CR LF is one.
size_t GraphemeEnd(std::string_view text, size_t at) {
  const char32_t first = NextChar(text, at);
  if (first == '\r' && at < text.size() && text[at] == '\n') return at + 1;
  if (first < 0x20 || (first >= 0x7F && first < 0xA0)) return at;
  while (at < text.size()) {
    size_t next = at;
    if (!Extends(NextChar(text, next))) break;
    at = next;
  }
  return at;
}

}  // namespace

Result<Charsmap> Charsmap::Parse(const std::string& where, std::string_view blob) {
  Charsmap map;
  if (blob.empty()) return map;
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: precompiled_charsmap: {}", where, what));
  };
  uint32_t trie_bytes = 0;
  if (blob.size() < sizeof(trie_bytes)) return bad(fmt::format("has {} bytes", blob.size()));
  std::memcpy(&trie_bytes, blob.data(), sizeof(trie_bytes));
  blob.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes > blob.size() || trie_bytes % 4 != 0 || trie_bytes < 4) {
    return bad(fmt::format("its trie has {} bytes; {} are left, and they come in fours", trie_bytes,
                           blob.size()));
  }
  map.units_.resize(trie_bytes / 4);
  std::memcpy(map.units_.data(), blob.data(), trie_bytes);
  map.replacements_ = blob.substr(trie_bytes);
  map.replacements_.push_back('\0');
  return map;
}

Charsmap::Rule Charsmap::Find(std::string_view text, bool longest) const {
  Rule found;
  if (units_.empty()) return found;
  uint32_t at = OffsetOf(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || LabelOf(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= OffsetOf(unit);
    if (!HasLeaf(unit)) continue;
    const uint32_t value = at < units_.size() ? ValueOf(units_[at]) : UINT32_MAX;
    if (value >= replacements_.size()) break;
    found = {i + 1, replacements_.data() + value};
    if (!longest) break;
  }
  return found;
}

void ApplyCharsmap(const Charsmap& map, std::string& text) {
  constexpr size_t kLongest = 6;  // bytes of a grapheme that is looked up as a whole
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = GraphemeEnd(text, at);
    const std::string_view grapheme = std::string_view(text).substr(at, end - at);
    const Charsmap::Rule whole =
        grapheme.size() < kLongest ? map.Find(grapheme, /*longest=*/false) : Charsmap::Rule();
    if (whole.length > 0) {
      out += whole.replacement;
      at = end;
      continue;
    }
    while (at < end) {
      const size_t from = at;
      NextChar(text, at);
      const std::string_view character = std::string_view(text).substr(from, at - from);
      const Charsmap::Rule rule = map.Find(character, /*longest=*/false);
      out += rule.length > 0 ? rule.replacement : character;
    }
  }
  text = std::move(out);
}

}  // namespace ridge
