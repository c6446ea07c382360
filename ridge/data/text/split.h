// Pre-tokenizers: text -> pieces that the model encodes one by one.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/text/pattern.h"

namespace ridge {

struct Piece {
  std::string text;    // valid UTF-8
  bool first = false;  // the text begins with it
};

using Splitter = std::function<void(std::vector<Piece>& pieces)>;

// What becomes of the matches that cut a piece.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// The length of a match at `at`, 0: none.
using MatchAt = std::function<size_t(std::string_view text, size_t at)>;

// `inverted`: what does not match is the match.
void SplitPieces(const MatchAt& match, SplitBehavior behavior, bool inverted,
                 std::vector<Piece>& pieces);

void SplitBert(std::vector<Piece>& pieces);

// Bytes become the printable characters that stand for them in vocabularies of byte-level BPE.
void MapBytes(std::string& text);
void SplitByteLevel(bool add_prefix_space, bool cut, std::vector<Piece>& pieces);

enum class PrependScheme { kAlways, kFirst, kNever };
// `mark` stands for a space; with `cut` it begins a piece.
void SplitMetaspace(const std::string& mark, PrependScheme scheme, bool cut,
                    std::vector<Piece>& pieces);

// A match of one character that is one of these.
MatchAt MatchChar(bool (*is)(char32_t));
MatchAt MatchText(const std::string& wanted);
MatchAt MatchPattern(const Pattern& pattern);

}  // namespace ridge
