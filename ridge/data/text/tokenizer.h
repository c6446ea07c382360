// Tokenizer: text -> ids, exactly as the public packages give them.
//
// A pipeline: added tokens are cut out, the rest is normalized, cut into words, and each word
// encoded by the model.  Text may be any bytes; what is no UTF-8 becomes U+FFFD.  Immutable, so
// several threads may encode at once.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/text/added_tokens.h"
#include "ridge/data/text/decode.h"
#include "ridge/data/text/model.h"
#include "ridge/data/text/normalize.h"
#include "ridge/data/text/split.h"

namespace ridge {

// A sequence begins and ends with these, as the tokenizer's template says.
struct TokenFrame {
  std::vector<TokenId> before, after;
};

struct TokenizerParts {
  std::string kind;  // "wordpiece", for messages
  AddedTokens raw_tokens, normalized_tokens;
  std::vector<Normalizer> normalizers;
  std::vector<Splitter> splitters;
  std::unique_ptr<TokenModel> model;  // null: bytes
  TokenFrame frame;
  int64_t vocab = 0;  // the largest id + 1
  TokenId pad = 0;
  TokenId end = -1;         // separates documents; -1: there is none
  int64_t most_tokens = 0;  // of a sequence, as the file says; 0: it does not
  bool pads_left = false, cuts_left = false;
  PieceTable table;
};

class Tokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts);

  // Appends the ids, without the frame.
  void Encode(std::string_view text, std::vector<TokenId>& ids) const;
  std::vector<TokenId> Encode(std::string_view text) const;

  // As the model takes a sequence: framed, and cut to `most` tokens in all where it is longer.
  std::vector<TokenId> EncodeFramed(std::string_view text, int64_t most) const;

  // DecodePieces of this tokenizer.
  std::string Decode(std::span<const TokenId> ids) const { return DecodePieces(parts_.table, ids); }

  const std::string& kind() const { return parts_.kind; }
  int64_t vocab() const { return parts_.vocab; }
  TokenId pad() const { return parts_.pad; }
  TokenId end() const { return parts_.end; }
  int64_t most_tokens() const { return parts_.most_tokens; }
  bool pads_left() const { return parts_.pads_left; }
  const TokenFrame& frame() const { return parts_.frame; }

 private:
  void EncodeText(std::string_view text, bool first, std::vector<TokenId>& ids) const;
  void EncodeNormalized(std::string_view text, bool first, std::vector<TokenId>& ids) const;

  TokenizerParts parts_;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

// The bytes of a text, id = byte + 3; 0 pads, 1 ends, 2 is unknown: the ids of ByT5.
TokenizerPtr ByteTokenizer();

}  // namespace ridge
