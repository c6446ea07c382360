#include "ridge/data/text/normalize.h"

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

// BERT's basic tokenizer: the blocks of ideographs, without Hangul, Hiragana and Katakana.
bool IsIdeograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

template <typename Visit>
std::string Rewrite(const std::string& text, Visit visit) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) visit(NextChar(text, at), out);
  return out;
}

template <typename Removed>
void Remove(std::string& text, Removed removed) {
  text = Rewrite(text, [&](char32_t code, std::string& out) {
    if (!removed(code)) AppendChar(code, out);
  });
}

void AppendClean(const BertRules& rules, char32_t code, std::string& out) {
  if (rules.clean && IsBertControl(code)) return;
  if (rules.clean && IsSpace(code)) code = ' ';
  const bool spaced = rules.spaced_cjk && code >= 0x3400 && IsIdeograph(code);
  if (spaced) out.push_back(' ');
  AppendChar(code, out);
  if (spaced) out.push_back(' ');
}

}  // namespace

void NormalizeBert(const BertRules& rules, std::string& text) {
  if (rules.clean || rules.spaced_cjk) {
    text = Rewrite(text, [&](char32_t code, std::string& out) { AppendClean(rules, code, out); });
  }
  if (rules.strip_accents) {
    text = Nfd(text);
    Remove(text, IsBertAccent);
  }
  if (rules.lower) text = ToLower(text);
}

void StripCombiningMarks(std::string& text) { Remove(text, IsCombiningMark); }

void StripSpace(bool left, bool right, std::string& text) {
  size_t begin = 0, end = 0;  // of what is not white space
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    if (IsSpace(NextChar(text, at))) continue;
    if (!any) begin = from;
    any = true;
    end = at;
  }
  if (!any) begin = left ? text.size() : 0;
  if (!right) end = text.size();
  if (!left) begin = 0;
  text = text.substr(begin, end > begin ? end - begin : 0);
}

void ReplaceAll(const std::string& from, const std::string& to, std::string& text) {
  if (from.empty() || text.find(from) == std::string::npos) return;
  std::string out;
  size_t at = 0;
  for (size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size()) {
    out.append(text, at, found - at);
    out += to;
  }
  text = out.append(text, at);
}

void ReplaceSpaces(const std::string& to, std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && text[end] == ' ') ++end;
    if (end - at >= 2) {
      out += to;
      at = end;
    } else {
      out.push_back(text[at++]);
    }
  }
  text = out;
}

void NormalizeNmt(std::string& text) {
  text = Rewrite(text, [](char32_t c, std::string& out) {
    const bool removed = (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
                         c == 0x8F || c == 0x9F;
    if (removed) return;
    const bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    AppendChar(space ? U' ' : c, out);
  });
}

}  // namespace ridge
