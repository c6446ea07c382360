// After src/bpe_model.cc of the package: a heap of possible joins over a list of symbols, each a
// stretch of the word.  An entry whose symbols have changed since is passed over when it is taken.
#include "ridge/data/text/sentencepiece_bpe.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

struct Symbol {
  std::string_view text;             // empty: joined to the one before
  int64_t previous = -1, next = -1;  // -1: none
  bool whole = false;                // user defined: joined to nothing
};

struct Candidate {
  double score = 0;
  int64_t left = 0, right = 0;
  size_t bytes = 0;  // of both
  // The top of a std::priority_queue is the greatest.
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

// What an unused piece was joined from.
using Joins = std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>>;

Vocabulary VocabularyOf(const std::vector<ScoredPiece>& pieces) {
  Vocabulary vocabulary;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id].text.empty()) vocabulary.Add(pieces[id].text, static_cast<TokenId>(id));
  }
  return vocabulary;
}

class SentencePieceBpe final : public TokenModel {
 public:
  explicit SentencePieceBpe(SentencePieceBpeRules rules)
      : rules_(std::move(rules)), vocabulary_(VocabularyOf(rules_.pieces)) {}

  void Encode(std::string_view word, std::vector<TokenId>& ids) const override {
    std::vector<Symbol> symbols = Symbols(word);
    Joins joins;
    Join(symbols, joins);
    bool follows_unknown = false;
    for (int64_t at = symbols.empty() ? -1 : 0; at >= 0; at = symbols[static_cast<size_t>(at)].next)
      AddPieces(symbols[static_cast<size_t>(at)].text, joins, follows_unknown, ids);
  }
  std::optional<TokenId> Find(std::string_view piece) const override {
    return vocabulary_.Find(piece);
  }
  int64_t size() const override { return static_cast<int64_t>(rules_.pieces.size()); }

 private:
  bool IsUnused(TokenId id) const { return rules_.pieces[static_cast<size_t>(id)].unused; }

  std::vector<Symbol> Symbols(std::string_view word) const {
    std::vector<Symbol> symbols;
    while (!word.empty()) {
      Symbol symbol;
      size_t bytes = rules_.user_defined->Match(word);
      symbol.whole = bytes > 0;
      if (!symbol.whole) bytes = std::min(CharBytes(word.front()), word.size());
      symbol.text = word.substr(0, bytes);
      word.remove_prefix(bytes);
      const auto at = static_cast<int64_t>(symbols.size());
      symbol.previous = at - 1;
      symbol.next = word.empty() ? -1 : at + 1;
      symbols.push_back(symbol);
    }
    return symbols;
  }

  void Join(std::vector<Symbol>& symbols, Joins& joins) const {
    std::priority_queue<Candidate> queue;
    const auto offer = [&](int64_t left, int64_t right) {
      if (left < 0 || right < 0) return;
      const Symbol &first = symbols[static_cast<size_t>(left)],
                   &second = symbols[static_cast<size_t>(right)];
      const size_t bytes = first.text.size() + second.text.size();
      if (first.whole || second.whole || bytes > vocabulary_.longest()) return;
      const std::string_view text(first.text.data(), bytes);
      const auto id = vocabulary_.Find(text);
      if (!id) return;
      queue.push({rules_.pieces[static_cast<size_t>(*id)].score, left, right, bytes});
      if (IsUnused(*id)) joins[text] = {first.text, second.text};
    };
    for (size_t i = 1; i < symbols.size(); ++i)
      offer(static_cast<int64_t>(i) - 1, static_cast<int64_t>(i));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol &left = symbols[static_cast<size_t>(best.left)],
             &right = symbols[static_cast<size_t>(best.right)];
      const bool changed = left.text.empty() || right.text.empty() ||
                           left.text.size() + right.text.size() != best.bytes;
      if (changed) continue;
      left.text = {left.text.data(), best.bytes};
      left.next = right.next;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = best.left;
      right.text = {};
      offer(left.previous, best.left);
      offer(best.left, left.next);
    }
  }

  // Cuts unused pieces until none is left.
  void AddPieces(std::string_view symbol, const Joins& joins, bool& follows_unknown,
                 std::vector<TokenId>& ids) const {
    std::vector<std::string_view> open = {symbol};  // the last comes first
    while (!open.empty()) {
      const std::string_view text = open.back();
      open.pop_back();
      const auto id = vocabulary_.Find(text);
      const auto join = id && IsUnused(*id) ? joins.find(text) : joins.end();
      if (join == joins.end()) {
        AddPiece(text, id.value_or(rules_.unknown), follows_unknown, ids);
        continue;
      }
      open.push_back(join->second.second);
      open.push_back(join->second.first);
    }
  }

  void AddPiece(std::string_view text, TokenId id, bool& follows_unknown,
                std::vector<TokenId>& ids) const {
    const bool unknown = id == rules_.unknown;
    if (unknown && !rules_.bytes.empty()) {
      for (const char byte : text) ids.push_back(rules_.bytes[static_cast<uint8_t>(byte)]);
    } else if (!unknown || !follows_unknown) {
      ids.push_back(id);
    }
    follows_unknown = unknown;
  }

  SentencePieceBpeRules rules_;
  Vocabulary vocabulary_;
};

std::vector<std::pair<std::string_view, int32_t>> Numbered(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string_view, int32_t>> pieces;
  for (size_t i = 0; i < texts.size(); ++i) pieces.emplace_back(texts[i], static_cast<int32_t>(i));
  return pieces;
}

}  // namespace

PrefixMatcher::PrefixMatcher(const std::vector<std::string>& texts) : trie_(Numbered(texts)) {}

size_t PrefixMatcher::Match(std::string_view text) const {
  size_t longest = 0;
  uint32_t node = 0;
  for (size_t at = 0; at < text.size() && trie_.Step(node, text[at]); ++at) {
    if (trie_.Value(node) != Trie::kNone) longest = at + 1;
  }
  return longest;
}

std::unique_ptr<TokenModel> MakeSentencePieceBpe(SentencePieceBpeRules rules) {
  return std::make_unique<SentencePieceBpe>(std::move(rules));
}

}  // namespace ridge
