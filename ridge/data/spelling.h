// Spelling: transcripts as classes of characters, as ctc_loss takes them.
//
// Class 0 is the blank, 1 to N are the table's characters by code point, and N + 1 is any other
// character, which is read back as U+FFFD: so a test counts what training cannot spell as wrong.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/preprocessing.h"

namespace ridge {

inline constexpr int64_t kMostLetters = 60000;  // of a table; classes fit in 16 bits

// In NFC, white space of any length one blank, none at the ends, in lower case where asked.  Bytes
// that are no UTF-8 become U+FFFD.
std::string PlainTranscript(std::string_view text, bool lower);

// Of the best class of each frame: without repeats, then without blanks.
std::vector<int64_t> CollapseFrames(std::span<const int64_t> best, int64_t blank);

int64_t CountLetters(std::string_view utf8);

// The characters of the texts, each once, by code point.  Fails with kInvalidData for more than
// kMostLetters; the message is the bare reason.  REQUIRES: plain transcripts.
Result<std::vector<std::string>> LettersOf(const std::vector<std::string_view>& texts);

// Thread-safe.
class Spelling {
 public:
  explicit Spelling(const SpellingPreprocessing& table);

  int64_t classes() const { return static_cast<int64_t>(letters_.size()) + 2; }

  // REQUIRES: a plain transcript.
  void Spell(std::string_view text, std::vector<uint16_t>& classes) const;
  // Blanks and numbers that are no class give nothing.
  std::string Read(std::span<const int64_t> classes) const;

 private:
  std::vector<std::string> letters_;
  std::map<char32_t, uint16_t> numbers_;
};

}  // namespace ridge
