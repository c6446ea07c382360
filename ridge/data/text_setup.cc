#include "ridge/data/text_setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/data/text/open_tokenizer.h"
#include "ridge/data/text_data.h"

namespace ridge {
namespace {

constexpr int64_t kDefaultLength = 128;

bool IsOneOf(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}
bool IsTokenName(const std::string& name) {
  return IsOneOf(name, {"input_ids", "tokens", "token_ids", "ids"});
}

const Field* FindTokens(const std::vector<Field>& inputs) {
  for (const Field& input : inputs) {
    if (IsTokenName(input.name)) return &input;
  }
  const Field* found = nullptr;
  for (const Field& input : inputs) {
    const bool fits = IsInteger(input.type.dtype) && input.type.rank() == 1;
    if (!fits || IsLabelName(input.name)) continue;
    if (found != nullptr) return nullptr;
    found = &input;
  }
  return found;
}

// Whether the label has a place for each token.
bool IsLanguageModel(const Field& tokens, const std::vector<Field>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const Field& input) {
    return IsLabelName(input.name) && input.type.dims == tokens.type.dims;
  });
}

}  // namespace

bool IsLabelName(const std::string& name) {
  return IsOneOf(name, {"label", "labels", "y", "target", "targets"});
}

Result<ChosenTokenizer> ChooseTokenizer(const std::string& name, const TextOptions& text,
                                        const DataOptions& options) {
  ChosenTokenizer chosen;
  if (options.preprocessing != nullptr && options.preprocessing->text) {
    chosen.text = *options.preprocessing->text;
    RIDGE_ASSIGN_OR_RETURN(chosen.tokenizer, TokenizerOf(chosen.text));
    return chosen;
  }
  const std::string path = text.tokenizer.empty() ? "bytes" : text.tokenizer;
  RIDGE_ASSIGN_OR_RETURN(OpenedTokenizer opened, OpenTokenizer(path));
  chosen.tokenizer = std::move(opened.tokenizer);
  chosen.text = {chosen.tokenizer->kind(), std::move(opened.files)};
  if (text.tokenizer.empty()) {
    chosen.notes.push_back(name +
                           ": tokens are bytes, as no tokenizer is given. hint: "
                           "tokenizer=FILE behind a comma (tokenizer.json, vocab.txt)");
  }
  return chosen;
}

Result<TextLayout> LayoutFor(const std::string& name, const TextOptions& text,
                             const Tokenizer& tokenizer, const DataOptions& options) {
  TextLayout layout;
  layout.pad = static_cast<uint32_t>(tokenizer.pad());
  layout.pads_left = tokenizer.pads_left();
  layout.labeled = text.label != "none";
  layout.length = text.length.value_or(kDefaultLength);
  layout.seed = options.seed;
  layout.packed = layout.language = text.packing;
  if (options.model_inputs.empty()) return layout;
  const Field* tokens = FindTokens(options.model_inputs);
  if (tokens == nullptr || tokens->type.rank() != 1) {
    return InvalidArgument(fmt::format(
        "data '{}': the model has no input of tokens, i64[batch,length], named tokens or input_ids",
        name));
  }
  if (text.length && *text.length != tokens->type.dims[0]) {
    return InvalidArgument(fmt::format("data '{}': length is {}; the model takes {} tokens", name,
                                       *text.length, tokens->type.dims[0]));
  }
  if (tokens->classes > 0 && tokenizer.vocab() > tokens->classes) {
    return InvalidArgument(fmt::format("data '{}': the tokenizer has {} tokens; the model knows {}",
                                       name, tokenizer.vocab(), tokens->classes));
  }
  layout.length = tokens->type.dims[0];
  layout.language = IsLanguageModel(*tokens, options.model_inputs);
  if (layout.packed && !layout.language) {
    return InvalidArgument(fmt::format(
        "data '{}': packing=on puts texts side by side; the model has one label for all of its "
        "tokens. hint: leave packing out",
        name));
  }
  return layout;
}

std::vector<std::string> PackingNotes(const std::string& name, const TextLayout& layout,
                                      const DataOptions& options) {
  const auto& inputs = options.model_inputs;
  const bool told = std::any_of(inputs.begin(), inputs.end(),
                                [](const Field& input) { return input.name == "position_ids"; });
  if (!layout.packed || inputs.empty() || told) return {};
  return {name +
          ": the model has no input position_ids, so its tokens see the texts before theirs in a "
          "row"};
}

std::vector<ModelSize> SizesOfText(const TextOptions& text, const Tokenizer& tokenizer,
                                   int64_t classes) {
  // Samples are padded, so a model that can take a mask does.
  std::vector<ModelSize> sizes = {{"vocab", tokenizer.vocab()}, {"mask", 1}};
  if (classes > 1) sizes.push_back({"classes", classes});
  if (text.packing) sizes.push_back({"documents", 1});
  if (text.length) {
    sizes.push_back({"tokens", *text.length});
    sizes.push_back({"context", *text.length});
  }
  return sizes;
}

}  // namespace ridge
