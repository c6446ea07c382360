// SentencePiece's .model files: ModelProto messages of the types unigram and bpe.
//
// Ids are those of the package `sentencepiece`, which frames nothing: what a model puts around a
// sequence stands in a tokenizer_config.json.
#pragma once
#include <string>
#include <string_view>

#include "ridge/data/text/tokenizer.h"

namespace ridge {

// Fails with kInvalidData, "FILE: byte N: reason", and with kUnsupported for other types of models.
Result<TokenizerParts> ParseSentencePiece(std::string_view bytes, const std::string& file);

}  // namespace ridge
