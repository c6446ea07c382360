// Normalizers: what becomes of text before it is cut into words.  Text is valid UTF-8.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

using Normalizer = std::function<void(std::string& text)>;

struct BertRules {
  bool clean = true;       // control characters go, all white space is ' '
  bool spaced_cjk = true;  // a space on both sides of each ideograph
  bool strip_accents = true;
  bool lower = true;
};
void NormalizeBert(const BertRules& rules, std::string& text);

void StripCombiningMarks(std::string& text);
void StripSpace(bool left, bool right, std::string& text);
void ReplaceAll(const std::string& from, const std::string& to, std::string& text);
// Runs of two spaces and more, " {2,}".
void ReplaceSpaces(const std::string& to, std::string& text);
// SentencePiece's: control characters go, further white space is ' '.
void NormalizeNmt(std::string& text);

}  // namespace ridge
