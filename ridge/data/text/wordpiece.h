// WordPiece (Wu et al., 2016): a word is cut into the longest pieces of the vocabulary, from its
// beginning; a word that cannot be cut is unknown.
#pragma once
#include <memory>
#include <string>

#include "ridge/data/text/model.h"

namespace ridge {

struct WordPieceRules {
  TokenId unknown = 0;
  std::string prefix = "##";   // of pieces within a word
  int64_t longest_word = 100;  // characters; longer ones are unknown
};

std::unique_ptr<TokenModel> MakeWordPiece(Vocabulary vocabulary, WordPieceRules rules);

// Whole words only.  `unknown`: -1: unknown words have no id.
std::unique_ptr<TokenModel> MakeWordLevel(Vocabulary vocabulary, TokenId unknown);

}  // namespace ridge
