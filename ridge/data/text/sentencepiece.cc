#include "ridge/data/text/sentencepiece.h"

namespace ridge {

Result<TokenizerParts> ParseSentencePiece(std::string_view, const std::string& file) {
  return Status(
      ErrorCode::kUnsupported,
      file + ": models of SentencePiece are not read. hint: tokenizer.json of the same model");
}

}  // namespace ridge
