// SentencePiece's .model files.
#pragma once
#include <string>
#include <string_view>

#include "ridge/data/text/tokenizer.h"

namespace ridge {

// Fails with kUnsupported: these files are refused by their name, which `file` is.
Result<TokenizerParts> ParseSentencePiece(std::string_view bytes, const std::string& file);

}  // namespace ridge
