// tokenizer.json: a whole tokenizer in the format of Hugging Face's package `tokenizers`.
//
// Read are the parts that the families of BERT, GPT-2, Llama, Qwen, T5 and Whisper are made of;
// any other part is refused by its name.
#pragma once
#include <string>

#include "ridge/data/text/tokenizer.h"

namespace ridge {

// `file` is for messages, which name the place: "tokenizer.json: normalizer.normalizers[1]: ...".
// Fails with kInvalidData, and with kUnsupported for parts that are not known.
Result<TokenizerParts> ParseTokenizerJson(const std::string& text, const std::string& file);

}  // namespace ridge
