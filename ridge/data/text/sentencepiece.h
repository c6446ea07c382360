// SentencePiece's .model files: unigram and BPE, with their rules of normalization.
#pragma once
#include <string>
#include <string_view>

#include "ridge/data/text/tokenizer.h"

namespace ridge {

// Ids are those of the package `sentencepiece`, without begin and end.  `file` is for messages.
// Fails with kInvalidData, and with kUnsupported for models of whole words and single characters.
Result<TokenizerParts> ParseSentencePiece(std::string_view bytes, const std::string& file);

}  // namespace ridge
