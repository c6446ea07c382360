// TranscriptTokens: texts as what the decoder of a speech model reads and writes.
//
// A text is framed: begin, its tokens, end.  The decoder reads all of them but the last and writes
// all but the first.  Tokens are those of a tokenizer, framed as its file says (its end token where
// it says nothing), or classes of spelling.h between two zeros.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/preprocessing.h"
#include "ridge/data/spelling.h"
#include "ridge/data/text/tokenizer.h"

namespace ridge {

// Thread-safe.
class TranscriptTokens {
 public:
  explicit TranscriptTokens(const SpellingPreprocessing& spelling);
  // Fails with kInvalidArgument for a tokenizer whose texts have no end; the message is the bare
  // reason.
  static Result<TranscriptTokens> Of(TokenizerPtr tokenizer);

  int64_t vocab() const;
  int64_t pad() const { return pad_; }

  // REQUIRES: a plain transcript.
  std::vector<uint32_t> Framed(std::string_view text) const;
  // Valid UTF-8, without what frames and pads; numbers that are no token give nothing.
  std::string Read(std::span<const int64_t> tokens) const;

 private:
  TranscriptTokens() = default;

  std::optional<Spelling> spelling_;  // without a tokenizer
  TokenizerPtr tokenizer_;
  std::vector<uint32_t> before_, after_;
  std::set<int64_t> silent_;  // tokens that are no words
  int64_t pad_ = 0;
};
using TranscriptTokensPtr = std::shared_ptr<const TranscriptTokens>;

// Of a run's data; null where they are no transcripts.  Fails as OpenTokenizer and Of do.
Result<TranscriptTokensPtr> TranscriptTokensOf(const Preprocessing& preprocessing);

}  // namespace ridge
