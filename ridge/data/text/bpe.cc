// A heap of possible merges over a list of symbols, so that a word of n characters takes
// O(n log n).  An entry whose symbols were merged since is passed over when it is taken.
#include "ridge/data/text/bpe.h"

#include <queue>

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

struct Symbol {
  TokenId id = 0;
  int64_t previous = -1, next = -1;  // -1: none
  bool merged = false;               // into the one before
};

struct Candidate {
  int32_t rank = 0;
  int64_t at = 0;
  TokenId result = 0;
  // The top of a std::priority_queue is the greatest.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

class Bpe final : public TokenModel {
 public:
  Bpe(Vocabulary vocabulary, BpeRules rules)
      : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)) {}

  void Encode(std::string_view word, std::vector<TokenId>& ids) const override {
    if (rules_.whole_words_first) {
      if (const auto id = vocabulary_.Find(word)) {
        ids.push_back(*id);
        return;
      }
    }
    std::vector<TokenId> symbols = Symbols(word);
    if (symbols.size() > 1) Merged(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }

  std::optional<TokenId> Find(std::string_view piece) const override {
    return vocabulary_.Find(piece);
  }
  int64_t size() const override { return vocabulary_.size(); }

 private:
  std::optional<TokenId> FindChar(std::string_view word, size_t begin, size_t end) const {
    const bool prefixed = begin > 0 && !rules_.prefix.empty();
    const bool suffixed = end == word.size() && !rules_.suffix.empty();
    const std::string_view piece = word.substr(begin, end - begin);
    if (!prefixed && !suffixed) return vocabulary_.Find(piece);
    return vocabulary_.Find((prefixed ? rules_.prefix : "") + std::string(piece) +
                            (suffixed ? rules_.suffix : ""));
  }

  std::vector<TokenId> Symbols(std::string_view word) const {
    std::vector<TokenId> ids;
    bool unknown = false;  // unknown characters wait to be added
    const auto flush = [&] {
      if (unknown) ids.push_back(rules_.unknown);
      unknown = false;
    };
    for (size_t at = 0; at < word.size();) {
      const size_t begin = at;
      NextChar(word, at);
      if (const auto id = FindChar(word, begin, at)) {
        flush();
        ids.push_back(*id);
      } else if (!rules_.bytes.empty()) {
        for (size_t i = begin; i < at; ++i)
          ids.push_back(rules_.bytes[static_cast<uint8_t>(word[i])]);
      } else if (rules_.unknown >= 0) {
        if (!rules_.joins_unknown) flush();
        unknown = true;
      }
    }
    flush();
    return ids;
  }

  const Merge* MergeOf(TokenId first, TokenId second) const {
    const auto found = rules_.merges.find(MergeKey(first, second));
    return found == rules_.merges.end() ? nullptr : &found->second;
  }

  void Merged(std::vector<TokenId>& ids) const {
    std::vector<Symbol> symbols(ids.size());
    std::priority_queue<Candidate> queue;
    const auto offer = [&](int64_t left, int64_t right) {
      if (left < 0 || right < 0) return;
      const Merge* merge =
          MergeOf(symbols[static_cast<size_t>(left)].id, symbols[static_cast<size_t>(right)].id);
      if (merge != nullptr) queue.push({merge->rank, left, merge->result});
    };
    const auto count = static_cast<int64_t>(ids.size());
    for (int64_t i = 0; i < count; ++i)
      symbols[static_cast<size_t>(i)] = {ids[static_cast<size_t>(i)], i - 1,
                                         i + 1 < count ? i + 1 : -1};
    for (int64_t i = 0; i + 1 < count; ++i) offer(i, i + 1);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<size_t>(best.at)];
      if (left.merged || left.next < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      const Merge* merge = MergeOf(left.id, right.id);
      if (merge == nullptr || merge->result != best.result) continue;
      left.id = best.result;
      left.next = right.next;
      right.merged = true;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = best.at;
      offer(left.previous, best.at);
      offer(best.at, left.next);
    }
    ids.clear();
    for (const Symbol& symbol : symbols) {
      if (!symbol.merged) ids.push_back(symbol.id);
    }
  }

  Vocabulary vocabulary_;
  BpeRules rules_;
};

}  // namespace

std::unique_ptr<TokenModel> MakeBpe(Vocabulary vocabulary, BpeRules rules) {
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(rules));
}

}  // namespace ridge
