// SentencePiece's byte pair encoding: two neighbours are joined when their text is a piece, the one
// of the greatest score first, the left one of equals.  No list of merges is needed.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/text/trie.h"
#include "ridge/data/text/unigram.h"

namespace ridge {

// The longest of a set of texts at the front of another.
class PrefixMatcher {
 public:
  explicit PrefixMatcher(const std::vector<std::string>& texts);
  size_t Match(std::string_view text) const;  // its bytes; 0: none

 private:
  Trie trie_;
};

struct SentencePieceBpeRules {
  std::vector<ScoredPiece> pieces;  // those without text are never taken; unused ones are cut again
  TokenId unknown = 0;
  std::vector<TokenId> bytes;                         // as in UnigramRules
  std::shared_ptr<const PrefixMatcher> user_defined;  // these stay whole
};

std::unique_ptr<TokenModel> MakeSentencePieceBpe(SentencePieceBpeRules rules);

}  // namespace ridge
