// Unigram (Kudo, 2018): of all ways to cut a word into pieces the one with the greatest sum of
// scores.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/data/text/model.h"

namespace ridge {

struct ScoredPiece {
  std::string text;
  double score = 0;     // log of its probability
  bool bonus = false;   // user defined: always taken
  bool unused = false;  // never taken
};

struct UnigramRules {
  std::vector<ScoredPiece> pieces;  // by id; those without text are never taken
  TokenId unknown = -1;             // REQUIRES: of `pieces`; -1: unknown characters have no id
  std::vector<TokenId> bytes;       // of the bytes of unknown characters; empty: there are none
  bool single_precision = false;    // sums are floats, as SentencePiece's; else doubles
};

std::unique_ptr<TokenModel> MakeUnigram(UnigramRules rules);

}  // namespace ridge
