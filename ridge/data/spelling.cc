#include "ridge/data/spelling.h"

#include <fmt/format.h>

#include <set>

#include "ridge/data/text/unicode.h"

namespace ridge {

std::string PlainTranscript(std::string_view text, bool lower) {
  std::string composed = Nfc(ToUtf8(text));
  if (lower) composed = Nfc(ToLower(composed));
  std::string plain;
  bool blank = false;
  for (size_t at = 0; at < composed.size();) {
    const char32_t code = NextChar(composed, at);
    if (IsSpace(code)) {
      blank = true;
      continue;
    }
    if (blank && !plain.empty()) plain += ' ';
    blank = false;
    AppendChar(code, plain);
  }
  return plain;
}

std::vector<int64_t> CollapseFrames(std::span<const int64_t> best, int64_t blank) {
  std::vector<int64_t> classes;
  for (size_t i = 0; i < best.size(); ++i) {
    if (best[i] != blank && (i == 0 || best[i] != best[i - 1])) classes.push_back(best[i]);
  }
  return classes;
}

int64_t CountLetters(std::string_view utf8) {
  int64_t count = 0;
  for (size_t at = 0; at < utf8.size(); ++count) NextChar(utf8, at);
  return count;
}

Result<std::vector<std::string>> LettersOf(const std::vector<std::string_view>& texts) {
  std::set<char32_t> codes;
  for (const std::string_view text : texts) {
    for (size_t at = 0; at < text.size();) codes.insert(NextChar(text, at));
  }
  if (static_cast<int64_t>(codes.size()) > kMostLetters) {
    return Status(ErrorCode::kInvalidData, fmt::format("has {} characters, at most {} are taken",
                                                       codes.size(), kMostLetters));
  }
  std::vector<std::string> letters;
  for (const char32_t code : codes) AppendChar(code, letters.emplace_back());
  return letters;
}

Spelling::Spelling(const SpellingPreprocessing& table) : letters_(table.letters) {
  for (size_t i = 0; i < letters_.size(); ++i) {
    size_t at = 0;
    numbers_[NextChar(letters_[i], at)] = static_cast<uint16_t>(i + 1);
  }
}

void Spelling::Spell(std::string_view text, std::vector<uint16_t>& classes) const {
  const auto other = static_cast<uint16_t>(letters_.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const auto found = numbers_.find(NextChar(text, at));
    classes.push_back(found == numbers_.end() ? other : found->second);
  }
}

std::string Spelling::Read(std::span<const int64_t> classes) const {
  std::string text;
  for (const int64_t number : classes) {
    if (number < 1 || number >= this->classes()) continue;
    const auto letter = static_cast<size_t>(number - 1);
    text += letter < letters_.size() ? letters_[letter] : "\xEF\xBF\xBD";
  }
  return text;
}

}  // namespace ridge
