#include "ridge/data/text/split.h"

#include <array>

#include "ridge/data/text/normalize.h"
#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

struct Range {
  size_t begin, end;
  bool match;
};

// The whole text in ranges, matches and what lies between them.
std::vector<Range> RangesOf(std::string_view text, const MatchAt& match) {
  std::vector<Range> ranges;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = match(text, at);
    if (length == 0) {
      at += CharBytes(text[at]);
      continue;
    }
    if (from < at) ranges.push_back({from, at, false});
    ranges.push_back({at, at + length, true});
    at += length;
    from = at;
  }
  if (from < text.size()) ranges.push_back({from, text.size(), false});
  return ranges;
}

// Ranges that stay apart -> ranges of pieces.
std::vector<Range> Merge(const std::vector<Range>& ranges, SplitBehavior behavior) {
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    const bool follows = !merged.empty();
    bool joined = false;
    if (behavior == SplitBehavior::kMergedWithPrevious)
      joined = follows && range.match && !merged.back().match;
    if (behavior == SplitBehavior::kMergedWithNext)
      joined = follows && !range.match && merged.back().match;
    if (behavior == SplitBehavior::kContiguous)
      joined = follows && range.match == merged.back().match;
    if (behavior == SplitBehavior::kRemoved && range.match) continue;
    if (joined) {
      merged.back().end = range.end;
      merged.back().match = range.match;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

const std::array<std::string, 256>& ByteChars() {
  static const auto chars = [] {
    std::array<std::string, 256> table;
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      AppendChar(prints ? byte : next++, table[byte]);
    }
    return table;
  }();
  return chars;
}

}  // namespace

void SplitPieces(const MatchAt& match, SplitBehavior behavior, bool inverted,
                 std::vector<Piece>& pieces) {
  std::vector<Piece> cut;
  for (const Piece& piece : pieces) {
    std::vector<Range> ranges = RangesOf(piece.text, match);
    if (inverted) {
      for (Range& range : ranges) range.match = !range.match;
    }
    for (const Range& range : Merge(ranges, behavior)) {
      cut.push_back({piece.text.substr(range.begin, range.end - range.begin),
                     piece.first && range.begin == 0});
    }
  }
  pieces = std::move(cut);
}

void SplitBert(std::vector<Piece>& pieces) {
  SplitPieces(MatchChar(IsSpace), SplitBehavior::kRemoved, /*inverted=*/false, pieces);
  SplitPieces(MatchChar(IsBertPunctuation), SplitBehavior::kIsolated, /*inverted=*/false, pieces);
}

void MapBytes(std::string& text) {
  std::string mapped;
  mapped.reserve(text.size() * 2);
  for (char byte : text) mapped += ByteChars()[static_cast<uint8_t>(byte)];
  text = std::move(mapped);
}

void SplitByteLevel(bool add_prefix_space, bool cut, std::vector<Piece>& pieces) {
  if (add_prefix_space) {
    for (Piece& piece : pieces) {
      if (!piece.text.starts_with(' ')) piece.text.insert(0, 1, ' ');
    }
  }
  if (cut) {
    SplitPieces(MatchPattern(Pattern::Gpt2()), SplitBehavior::kIsolated, /*inverted=*/false,
                pieces);
  }
  for (Piece& piece : pieces) MapBytes(piece.text);
}

void SplitMetaspace(const std::string& mark, PrependScheme scheme, bool cut,
                    std::vector<Piece>& pieces) {
  for (Piece& piece : pieces) {
    ReplaceAll(" ", mark, piece.text);
    const bool prepends =
        scheme == PrependScheme::kAlways || (scheme == PrependScheme::kFirst && piece.first);
    if (prepends && !piece.text.starts_with(mark)) piece.text.insert(0, mark);
  }
  if (!cut) return;
  SplitPieces(MatchText(mark), SplitBehavior::kMergedWithNext, /*inverted=*/false, pieces);
}

MatchAt MatchChar(bool (*is)(char32_t)) {
  return [is](std::string_view text, size_t at) {
    size_t end = at;
    return is(NextChar(text, end)) ? end - at : 0;
  };
}

MatchAt MatchText(const std::string& wanted) {
  return [wanted](std::string_view text, size_t at) {
    return text.substr(at, wanted.size()) == wanted ? wanted.size() : size_t{0};
  };
}

MatchAt MatchPattern(const Pattern& pattern) {
  return [pattern](std::string_view text, size_t at) { return pattern.Match(text, at); };
}

}  // namespace ridge
