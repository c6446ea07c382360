// Properties are runs of code points in ascending order, found by halving; ASCII, most of all text,
// has a table of its own.  Normalization is that of Unicode's Standard Annex 15; Hangul by formula.
#include "ridge/data/text/unicode.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ridge {
namespace {

#include "ridge/data/text/unicode_tables.inc"

constexpr char32_t kReplacement = 0xFFFD;

// ---- UTF-8

struct Lead {
  int more = -1;                    // bytes that follow; -1: begins no character
  uint8_t low = 0x80, high = 0xBF;  // of the first of them
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {0};
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {};
}

// Bytes of the character at `at`, or of the longest beginning of one; `whole` tells which.
size_t Span(std::string_view bytes, size_t at, bool& whole) {
  const Lead lead = LeadOf(static_cast<uint8_t>(bytes[at]));
  whole = lead.more == 0;
  size_t length = 1;
  for (int i = 0; i < lead.more; ++i, ++length) {
    if (at + length == bytes.size()) return length;
    const auto byte = static_cast<uint8_t>(bytes[at + length]);
    const bool fits = i == 0 ? byte >= lead.low && byte <= lead.high : (byte & 0xC0) == 0x80;
    if (!fits) return length;
    whole = i + 1 == lead.more;
  }
  return length;
}

// ---- properties

constexpr int kFlagBits = 6;
enum Flag : uint32_t {
  kControlFlag = 1,
  kPunctuationFlag = 2,
  kAccentFlag = 4,
  kMarkFlag = 8,
  kWordFlag = 16
};

// The value of the last run that begins at or before `code`.
uint32_t Find(const uint32_t* begin, const uint32_t* end, char32_t code, int shift) {
  const uint32_t* after = std::upper_bound(
      begin, end, code, [&](char32_t wanted, uint32_t run) { return wanted < run >> shift; });
  return after == begin ? 0 : *(after - 1);
}

uint32_t FindProperties(char32_t code) {
  return Find(std::begin(kProperties), std::end(kProperties), code, 11) & 0x7FF;
}

uint32_t Properties(char32_t code) {
  static const auto ascii = [] {
    std::array<uint16_t, 128> values{};
    for (char32_t c = 0; c < 128; ++c) values[c] = static_cast<uint16_t>(FindProperties(c));
    return values;
  }();
  return code < 128 ? ascii[code] : FindProperties(code);
}

char32_t LowerOf(char32_t code) {
  size_t begin = 0, end = std::size(kLowerRuns) / 3;
  while (begin < end) {
    const size_t middle = (begin + end) / 2;
    const uint32_t first = kLowerRuns[3 * middle], last = kLowerRuns[3 * middle + 1];
    if (code > last >> 1) {
      begin = middle + 1;
    } else if (code < first) {
      end = middle;
    } else {
      const bool between = (last & 1) != 0 && (code - first) % 2 == 1;
      return between ? code : static_cast<char32_t>(code + kLowerRuns[3 * middle + 2]);
    }
  }
  return code;
}

// ---- normalization

constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

uint32_t CombiningClass(char32_t code) {
  if (code < 0x300) return 0;
  return Find(std::begin(kCombiningRuns), std::end(kCombiningRuns), code, 8) & 0xFF;
}

void Decompose(char32_t code, std::u32string& out) {
  if (code < 0xC0) {
    out.push_back(code);
  } else if (code - kSyllables < kSyllableCount) {
    const char32_t syllable = code - kSyllables;
    out.push_back(kLeads + syllable / (kVowelCount * kTailCount));
    out.push_back(kVowels + syllable / kTailCount % kVowelCount);
    if (syllable % kTailCount != 0) out.push_back(kTails + syllable % kTailCount);
  } else {
    size_t begin = 0, end = std::size(kDecompositions) / 3;
    while (begin < end) {
      const size_t middle = (begin + end) / 2;
      (kDecompositions[3 * middle] < code ? begin : end) =
          kDecompositions[3 * middle] < code ? middle + 1 : middle;
    }
    const uint32_t* row = kDecompositions + 3 * begin;
    if (begin == std::size(kDecompositions) / 3 || row[0] != code) {
      out.push_back(code);
      return;
    }
    Decompose(row[1], out);
    if (const char32_t second = row[2] & 0x7FFFFFFF; second != 0) Decompose(second, out);
  }
}

// A compatibility decomposition is listed in full; false where there is none.
bool DecomposeCompatible(char32_t code, std::u32string& out) {
  const auto* end = std::end(kCompatible);
  size_t begin = 0, count = static_cast<size_t>(end - kCompatible) / 2;
  while (begin < count) {
    const size_t middle = (begin + count) / 2;
    if (kCompatible[2 * middle] < code)
      begin = middle + 1;
    else
      count = middle;
  }
  const uint32_t* row = kCompatible + 2 * begin;
  if (row == end || row[0] != code) return false;
  const uint32_t* codes = kCompatibleCodes + (row[1] >> 8);
  out.append(codes, codes + (row[1] & 0xFF));
  return true;
}

// Marks behind a character in the order of their classes.
void OrderMarks(std::u32string& text) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && CombiningClass(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(begin),
                     text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char32_t a, char32_t b) { return CombiningClass(a) < CombiningClass(b); });
    begin = end + 1;
  }
}

struct Pair {
  char32_t first, second, composed;
  bool operator<(const Pair& other) const {
    return first != other.first ? first < other.first : second < other.second;
  }
};

const std::vector<Pair>& Pairs() {
  static const std::vector<Pair> sorted = [] {
    std::vector<Pair> pairs;
    for (size_t i = 0; i < std::size(kDecompositions); i += 3) {
      const uint32_t* row = kDecompositions + i;
      if ((row[2] >> 31) != 0) pairs.push_back({row[1], row[2] & 0x7FFFFFFF, row[0]});
    }
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  }();
  return sorted;
}

// 0 when the two are not composed.
char32_t Compose(char32_t first, char32_t second) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTailCount;
  const char32_t syllable = first - kSyllables;
  if (syllable < kSyllableCount && syllable % kTailCount == 0 && second > kTails &&
      second < kTails + kTailCount)
    return first + second - kTails;
  const Pair wanted{first, second, 0};
  const auto found = std::lower_bound(Pairs().begin(), Pairs().end(), wanted);
  return found == Pairs().end() || wanted < *found ? 0 : found->composed;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 128; });
}

std::u32string Decomposed(std::string_view text, bool compatible) {
  std::u32string codes;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = NextChar(text, at);
    if (!compatible || !DecomposeCompatible(code, codes)) Decompose(code, codes);
  }
  OrderMarks(codes);
  return codes;
}

std::string Joined(const std::u32string& codes) {
  std::string text;
  for (char32_t code : codes) AppendChar(code, text);
  return text;
}

std::string Composed(std::u32string codes) {
  size_t starter = codes.size(), out = 0;  // codes.size(): there is none yet
  uint32_t last = 0;                       // the class of the mark before, 0 behind the starter
  for (const char32_t code : codes) {
    const uint32_t of = CombiningClass(code);
    const bool adjacent = starter < out && starter + 1 == out;
    const bool blocked = !adjacent && (last == 0 || last >= of);
    const char32_t composed = starter < out && !blocked ? Compose(codes[starter], code) : 0;
    if (composed != 0) {
      codes[starter] = composed;
      continue;
    }
    if (of == 0) starter = out;
    last = of;
    codes[out++] = code;
  }
  codes.resize(out);
  return Joined(codes);
}

}  // namespace

std::string ToUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    bool whole = false;
    const size_t length = Span(bytes, at, whole);
    if (whole)
      text += bytes.substr(at, length);
    else
      AppendChar(kReplacement, text);
    at += length;
  }
  return text;
}

size_t CharBytes(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

char32_t NextChar(std::string_view text, size_t& at) {
  const size_t length = std::min(CharBytes(text[at]), text.size() - at);
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  char32_t code = length == 1 ? byte(0) : byte(0) & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3F);
  at += length;
  return code;
}

void AppendChar(char32_t code, std::string& text) {
  const auto add = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12);
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
    }
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

Category CategoryOf(char32_t code) { return static_cast<Category>(Properties(code) >> kFlagBits); }

bool IsSpace(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
  if (code == 0x85) return true;
  const Category category = CategoryOf(code);
  return category >= Category::kZs && category <= Category::kZp;
}

bool IsWordChar(char32_t code) { return (Properties(code) & kWordFlag) != 0; }
bool IsCombiningMark(char32_t code) { return (Properties(code) & kMarkFlag) != 0; }
bool IsBertControl(char32_t code) { return (Properties(code) & kControlFlag) != 0; }
bool IsBertPunctuation(char32_t code) { return (Properties(code) & kPunctuationFlag) != 0; }
bool IsBertAccent(char32_t code) { return (Properties(code) & kAccentFlag) != 0; }

std::string ToLower(std::string_view text) {
  constexpr char32_t kDottedI = 0x130;  // the one that becomes two characters
  std::string lower;
  lower.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t code = NextChar(text, at);
    if (code == kDottedI)
      lower += "i\xCC\x87";
    else if (code < 128)
      lower.push_back(static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code));
    else
      AppendChar(LowerOf(code), lower);
  }
  return lower;
}

std::string Nfd(std::string_view text) {
  return IsAscii(text) ? std::string(text) : Joined(Decomposed(text, /*compatible=*/false));
}
std::string Nfkd(std::string_view text) {
  return IsAscii(text) ? std::string(text) : Joined(Decomposed(text, /*compatible=*/true));
}
std::string Nfc(std::string_view text) {
  return IsAscii(text) ? std::string(text) : Composed(Decomposed(text, /*compatible=*/false));
}
std::string Nfkc(std::string_view text) {
  return IsAscii(text) ? std::string(text) : Composed(Decomposed(text, /*compatible=*/true));
}

}  // namespace ridge
