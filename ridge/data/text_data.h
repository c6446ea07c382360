// Text as data: `text:` files and their records, as token ids.
//
// A model whose label has a place for each token is a language model: all records are joined, the
// tokenizer's end token between them, and cut into blocks of the model's length; fields
// `input_ids` and `label` i64[length], the label being the next token.  Else a record is a sample
// with a class: `input_ids`, `attention_mask` (1; 0 at padding) and `token_type_ids` (0)
// i64[length], cut and padded as the tokenizer's files say, and `label` i64[].
//
// All is tokenized when it is opened: reading is then a copy, and what is held is known exactly.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/source.h"
#include "ridge/data/text/tokenizer.h"

namespace ridge {

// `argument`: FILE, a pattern or a folder (text_files.h), and options (text_options.h).  Fails with
// kInvalidArgument, and with kInvalidData for files; the message names them.
Result<DataSplits> OpenText(const std::string& name, const std::string& argument,
                            const DataOptions& options);

// Texts in memory, as samples of a model whose data went through options.preprocessing: without a
// label; their tokens are counted by options.model_inputs.  Fails as OpenText does.
Result<SourcePtr> OpenTexts(const std::string& name, const std::vector<std::string>& texts,
                            const DataOptions& options);

// The number of tokens, and of classes where there are several; the length if it is given.
Result<DataFacts> TextFacts(const std::string& name, const std::string& argument,
                            const DataOptions& options);

// That of a run.  Fails as OpenTokenizer does.
Result<TokenizerPtr> TokenizerOf(const TextPreprocessing& text);

}  // namespace ridge
