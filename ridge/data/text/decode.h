// Decoding: token ids -> text.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ridge/data/text/vocabulary.h"

namespace ridge {

// How pieces become text again.
enum class Joining {
  kPlain,       // one after the other
  kWordPieces,  // a space before each but those that begin with ##
  kByteLevel,   // each character stands for a byte
  kMetaspace,   // U+2581 is a space, <0x0A> a byte
};

struct PieceTable {
  Joining joining = Joining::kPlain;
  std::vector<std::string> pieces;  // by id; "" where there is none
};

// The text of tokens that others precede, so that it may begin with a space.  Bytes that are no
// UTF-8 stay: a character may be cut between two tokens.  Ids without a piece are left out.
std::string DecodePieces(const PieceTable& table, std::span<const TokenId> ids);

}  // namespace ridge
