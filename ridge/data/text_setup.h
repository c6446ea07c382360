// TextSetup: what is known of texts before they are read: the tokenizer, and what a sample is to
// the model.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/source.h"
#include "ridge/data/text/tokenizer.h"
#include "ridge/data/text_options.h"
#include "ridge/data/text_source.h"

namespace ridge {

struct ChosenTokenizer {
  TokenizerPtr tokenizer;
  TextPreprocessing text;
  std::vector<std::string> notes;
};

// That of options.preprocessing, else the one that `text` names, else bytes.  Fails as
// OpenTokenizer does.
Result<ChosenTokenizer> ChooseTokenizer(const std::string& name, const TextOptions& text,
                                        const DataOptions& options);

// `labeled` unless label=none; a language model is one whose label has a place for each token.
// Fails with kInvalidArgument where the model takes no tokens, fewer or other ones.
Result<TextLayout> LayoutFor(const std::string& name, const TextOptions& text,
                             const Tokenizer& tokenizer, const DataOptions& options);

// What packed texts are to the model: a sentence where it cannot tell them apart, else nothing.
std::vector<std::string> PackingNotes(const std::string& name, const TextLayout& layout,
                                      const DataOptions& options);

// Of built-in models; `classes` is 0 where samples have none.
std::vector<ModelSize> SizesOfText(const TextOptions& text, const Tokenizer& tokenizer,
                                   int64_t classes);

// Whether a field of this name is a label.
bool IsLabelName(const std::string& name);

}  // namespace ridge
