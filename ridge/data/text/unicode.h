// Unicode as the public tokenizers know it: tables by tools/make_unicode_tables.py.
//
// Text is UTF-8.  All functions but ToUtf8 REQUIRE valid UTF-8; they never read beyond its end.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ridge {

// Each byte sequence that is no UTF-8 becomes U+FFFD, one for each maximal part of a character, as
// Python's decode(errors="replace").
std::string ToUtf8(std::string_view bytes);

// The character at `at`, which moves behind it.  REQUIRES: at < text.size().
char32_t NextChar(std::string_view text, size_t& at);
void AppendChar(char32_t code, std::string& text);
// Bytes of the character that begins with this byte.
size_t CharBytes(char first);

enum class Category : uint8_t {
  kCn,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCo
};  // clang-format: names of the standard
Category CategoryOf(char32_t code);

inline bool IsLetter(Category c) { return c >= Category::kLu && c <= Category::kLo; }
inline bool IsMark(Category c) { return c >= Category::kMn && c <= Category::kMe; }
inline bool IsNumber(Category c) { return c >= Category::kNd && c <= Category::kNo; }
inline bool IsPunctuation(Category c) { return c >= Category::kPc && c <= Category::kPo; }

bool IsSpace(char32_t code);            // White_Space
bool IsWordChar(char32_t code);         // \w
bool IsCombiningMark(char32_t code);    // of the normalizers
bool IsBertControl(char32_t code);      // removed by BERT's clean_text
bool IsBertPunctuation(char32_t code);  // with all of ASCII's symbols
bool IsBertAccent(char32_t code);       // removed by BERT's strip_accents

std::string ToLower(std::string_view text);  // each character alone
std::string Nfd(std::string_view text);
std::string Nfc(std::string_view text);
// With what is the same but for its look: ligatures, widths, circles.
std::string Nfkd(std::string_view text);
std::string Nfkc(std::string_view text);

}  // namespace ridge
