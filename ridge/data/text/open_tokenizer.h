// OpenTokenizer: the tokenizer in a file or a folder.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/text/tokenizer.h"

namespace ridge {

struct OpenedTokenizer {
  TokenizerPtr tokenizer;
  std::vector<std::string> files;  // paths of all that was read
};

// A folder is asked for tokenizer.json, vocab.txt (WordPiece), vocab.json with merges.txt
// (byte-level BPE) and *.model (SentencePiece), in this order; tokenizer_config.json and
// special_tokens_map.json beside them are read too.  `path` may be one of these files, or "bytes".
// Fails with kInvalidData or kUnsupported; the message names the file and the place.
Result<OpenedTokenizer> OpenTokenizer(const std::string& path);

// Whether the folder has one of these files.
bool HoldsTokenizer(const std::string& folder);

}  // namespace ridge
