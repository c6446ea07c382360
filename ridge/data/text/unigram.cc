// The best way to each place of a word is found from left to right; time is the word's length times
// that of the longest piece.  SentencePiece adds floats and `tokenizers` doubles, so equal sums may
// be decided differently: `single_precision` says whose choice it is.
#include "ridge/data/text/unigram.h"

#include <cmath>
#include <limits>

#include "ridge/core/status.h"
#include "ridge/data/text/trie.h"
#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

constexpr double kUnknownPenalty = 10;

std::vector<std::pair<std::string_view, int32_t>> PiecesOf(const UnigramRules& rules) {
  std::vector<std::pair<std::string_view, int32_t>> pieces;
  for (size_t id = 0; id < rules.pieces.size(); ++id) {
    if (!rules.pieces[id].text.empty())
      pieces.emplace_back(rules.pieces[id].text, static_cast<int32_t>(id));
  }
  return pieces;
}

class Unigram final : public TokenModel {
 public:
  explicit Unigram(UnigramRules rules) : rules_(std::move(rules)), trie_(PiecesOf(rules_)) {
    lowest_ = std::numeric_limits<double>::infinity();
    for (const ScoredPiece& piece : rules_.pieces) {
      if (piece.text.empty() || piece.bonus || piece.unused) continue;
      lowest_ = std::min(lowest_, piece.score);
      highest_ = std::max(highest_, piece.score);
    }
    if (std::isinf(lowest_)) lowest_ = 0;
  }

  void Encode(std::string_view word, std::vector<TokenId>& ids) const override {
    if (rules_.single_precision)
      EncodeAs<float>(word, ids);
    else
      EncodeAs<double>(word, ids);
  }

  std::optional<TokenId> Find(std::string_view piece) const override {
    uint32_t node = 0;
    for (char byte : piece) {
      if (!trie_.Step(node, byte)) return std::nullopt;
    }
    const int32_t id = trie_.Value(node);
    return id == Trie::kNone ? std::nullopt : std::optional(id);
  }
  int64_t size() const override { return static_cast<int64_t>(rules_.pieces.size()); }

 private:
  template <typename Sum>
  struct Way {  // the best one that ends at a place
    Sum score = 0;
    int64_t from = -1;  // -1: none
    TokenId id = 0;     // kUnknown: a character without a piece
  };
  static constexpr TokenId kUnknown = -1;

  // Of the piece, as a sum takes it.
  template <typename Sum>
  double ScoreOf(const ScoredPiece& piece) const {
    if (piece.bonus) {
      const double length = static_cast<double>(piece.text.size());
      return static_cast<Sum>(static_cast<double>(static_cast<Sum>(length * highest_)) - 0.1);
    }
    return piece.score;
  }

  template <typename Sum>
  std::vector<Way<Sum>> BestWays(std::string_view word) const {
    const Sum unknown = static_cast<Sum>(lowest_) - static_cast<Sum>(kUnknownPenalty);
    std::vector<Way<Sum>> ways(word.size() + 1);
    for (size_t begin = 0; begin < word.size();) {
      const size_t character = std::min(CharBytes(word[begin]), word.size() - begin);
      const Sum till_here = ways[begin].score;
      const auto offer = [&](size_t end, double score, TokenId id) {
        Way<Sum>& way = ways[end];
        const double sum = score + static_cast<double>(till_here);
        const auto rounded = static_cast<Sum>(sum);
        if (way.from >= 0 && rounded <= way.score) return;
        way = {rounded, static_cast<int64_t>(begin), id};
      };
      bool has_character = false;
      uint32_t node = 0;
      for (size_t at = begin; at < word.size() && trie_.Step(node, word[at]); ++at) {
        const int32_t id = trie_.Value(node);
        if (id == Trie::kNone || rules_.pieces[static_cast<size_t>(id)].unused) continue;
        offer(at + 1, ScoreOf<Sum>(rules_.pieces[static_cast<size_t>(id)]), id);
        has_character |= at + 1 - begin == character;
      }
      if (!has_character) offer(begin + character, static_cast<double>(unknown), kUnknown);
      begin += character;
    }
    return ways;
  }

  template <typename Sum>
  void EncodeAs(std::string_view word, std::vector<TokenId>& ids) const {
    const std::vector<Way<Sum>> ways = BestWays<Sum>(word);
    std::vector<std::pair<size_t, size_t>> spans;  // from the last piece to the first
    for (size_t end = word.size(); end > 0;) {
      const auto from = static_cast<size_t>(ways[end].from);
      spans.emplace_back(from, end);
      end = from;
    }
    bool follows_unknown = false;
    for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
      const TokenId id = ways[span->second].id;
      const bool unknown = id == kUnknown || id == rules_.unknown;
      if (!unknown) {
        ids.push_back(id);
      } else if (!rules_.bytes.empty()) {
        for (size_t at = span->first; at < span->second; ++at)
          ids.push_back(rules_.bytes[static_cast<uint8_t>(word[at])]);
      } else if (!follows_unknown && rules_.unknown >= 0) {
        ids.push_back(rules_.unknown);
      }
      follows_unknown = unknown;
    }
  }

  UnigramRules rules_;
  Trie trie_;
  double lowest_ = 0;
  double highest_ = 0.1F;  // at least, as the package has it: no bonus is below 0
};

}  // namespace

std::unique_ptr<TokenModel> MakeUnigram(UnigramRules rules) {
  return std::make_unique<Unigram>(std::move(rules));
}

}  // namespace ridge
