// A word has at most `longest_word` characters and a piece at most as many bytes as the longest of
// the vocabulary, so the time for a word is bounded.
#include "ridge/data/text/wordpiece.h"

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

int64_t CharCount(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

class WordPiece final : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, WordPieceRules rules)
      : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)) {}

  void Encode(std::string_view word, std::vector<TokenId>& ids) const override {
    const size_t before = ids.size();
    bool known = CharCount(word) <= rules_.longest_word;
    for (size_t at = 0; known && at < word.size();) {
      const size_t length = LongestPiece(word, at, ids);
      known = length > 0;
      at += length;
    }
    if (known) return;
    ids.resize(before);
    ids.push_back(rules_.unknown);
  }

  std::optional<TokenId> Find(std::string_view piece) const override {
    return vocabulary_.Find(piece);
  }
  int64_t size() const override { return vocabulary_.size(); }

 private:
  // Adds the id of the longest piece at `at`; its length in the word, 0: there is none.
  size_t LongestPiece(std::string_view word, size_t at, std::vector<TokenId>& ids) const {
    std::string piece = at == 0 ? "" : rules_.prefix;
    const size_t prefix = piece.size();
    if (vocabulary_.longest() < prefix) return 0;
    piece += word.substr(at, vocabulary_.longest() - prefix);
    while (piece.size() > prefix) {
      const bool whole = at + piece.size() - prefix == word.size() ||
                         (static_cast<uint8_t>(word[at + piece.size() - prefix]) & 0xC0) != 0x80;
      if (const auto id = whole ? vocabulary_.Find(piece) : std::nullopt) {
        ids.push_back(*id);
        return piece.size() - prefix;
      }
      piece.pop_back();
    }
    return 0;
  }

  Vocabulary vocabulary_;
  WordPieceRules rules_;
};

class WordLevel final : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, TokenId unknown)
      : vocabulary_(std::move(vocabulary)), unknown_(unknown) {}
  void Encode(std::string_view word, std::vector<TokenId>& ids) const override {
    const TokenId id = vocabulary_.Find(word).value_or(unknown_);
    if (id >= 0) ids.push_back(id);
  }
  std::optional<TokenId> Find(std::string_view piece) const override {
    return vocabulary_.Find(piece);
  }
  int64_t size() const override { return vocabulary_.size(); }

 private:
  Vocabulary vocabulary_;
  TokenId unknown_;
};

}  // namespace

std::unique_ptr<TokenModel> MakeWordPiece(Vocabulary vocabulary, WordPieceRules rules) {
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(rules));
}

std::unique_ptr<TokenModel> MakeWordLevel(Vocabulary vocabulary, TokenId unknown) {
  return std::make_unique<WordLevel>(std::move(vocabulary), unknown);
}

}  // namespace ridge
