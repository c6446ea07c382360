// Byte pair encoding (Sennrich et al., 2016): of a word's neighbouring pieces those whose merge
// comes first in the list are joined, until none is left that can be.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ridge/data/text/model.h"

namespace ridge {

struct Merge {
  int32_t rank = 0;
  TokenId result = 0;
};

// By the pair of ids, first << 32 | second.
using MergeTable = std::unordered_map<uint64_t, Merge>;
inline uint64_t MergeKey(TokenId first, TokenId second) {
  return static_cast<uint64_t>(first) << 32 | static_cast<uint32_t>(second);
}

struct BpeRules {
  MergeTable merges;
  TokenId unknown = -1;            // -1: unknown characters have no id
  bool joins_unknown = false;      // neighbouring unknown characters are one token
  bool whole_words_first = false;  // a word of the vocabulary is not merged (ignore_merges)
  std::string prefix;              // of pieces within a word
  std::string suffix;              // of the last piece of a word
  std::vector<TokenId> bytes;      // of the bytes of unknown characters; empty: there are none
};

std::unique_ptr<TokenModel> MakeBpe(Vocabulary vocabulary, BpeRules rules);

}  // namespace ridge
