#include "ridge/data/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

bool EndsWithWord(std::string_view text) {
  if (text.empty()) return false;
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return IsWordChar(NextChar(text, at));
}

bool StartsWithWord(std::string_view text) {
  size_t at = 0;
  return !text.empty() && IsWordChar(NextChar(text, at));
}

size_t SpaceAtStart(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    if (!IsSpace(NextChar(text, next))) break;
    at = next;
  }
  return at;
}

// Where the white space that ends the text begins.
size_t SpaceAtEnd(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t at = begin - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
    const size_t from = at;
    if (!IsSpace(NextChar(text, at))) break;
    begin = from;
  }
  return begin;
}

}  // namespace

void AddedTokens::Add(AddedToken token) {
  if (token.content.empty()) return;
  std::vector<size_t>& lengths = lengths_[static_cast<uint8_t>(token.content[0])];
  const size_t length = token.content.size();
  const auto at = std::lower_bound(lengths.begin(), lengths.end(), length, std::greater<>());
  if (at == lengths.end() || *at != length) lengths.insert(at, length);
  std::string content = token.content;
  tokens_.emplace(std::move(content), std::move(token));
}

const AddedToken* AddedTokens::LongestAt(std::string_view text, size_t at) const {
  for (size_t length : lengths_[static_cast<uint8_t>(text[at])]) {
    if (length > text.size() - at) continue;
    const auto found = tokens_.find(std::string(text.substr(at, length)));
    if (found != tokens_.end()) return &found->second;
  }
  return nullptr;
}

std::vector<TextPart> AddedTokens::Cut(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = tokens_.empty() ? nullptr : LongestAt(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->content.size();
    at = end;
    const bool within_word =
        EndsWithWord(text.substr(0, begin)) || StartsWithWord(text.substr(end));
    if (token->single_word && within_word) continue;
    if (token->takes_left) begin = std::max(from, SpaceAtEnd(text.substr(0, begin)));
    if (token->takes_right) end += SpaceAtStart(text.substr(end));
    begin = std::max(begin, from);
    if (from < begin) parts.push_back({text.substr(from, begin - from)});
    parts.push_back({text.substr(begin, end - begin), token->id});
    from = end;
    at = std::max(at, end);
  }
  if (from < text.size()) parts.push_back({text.substr(from)});
  return parts;
}

}  // namespace ridge
