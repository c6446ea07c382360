#include "ridge/data/transcript_tokens.h"

#include "ridge/data/text/unicode.h"
#include "ridge/data/text_data.h"

namespace ridge {

TranscriptTokens::TranscriptTokens(const SpellingPreprocessing& spelling)
    : spelling_(spelling), before_{0}, after_{0} {}

Result<TranscriptTokens> TranscriptTokens::Of(TokenizerPtr tokenizer) {
  TranscriptTokens tokens;
  std::vector<TokenId> before = tokenizer->frame().before, after = tokenizer->frame().after;
  if (after.empty()) after = {tokenizer->end()};
  if (before.empty()) before = {after.back()};
  tokens.pad_ = tokenizer->pad();
  tokens.silent_ = {tokenizer->pad(), tokenizer->end()};
  for (const auto& [from, to] : {std::pair(&before, &tokens.before_), {&after, &tokens.after_}}) {
    for (const TokenId id : *from) {
      if (id < 0) {
        return InvalidArgument(
            "the tokenizer has no token that ends a text. hint: eos_token in its "
            "tokenizer_config.json");
      }
      to->push_back(static_cast<uint32_t>(id));
      tokens.silent_.insert(id);
    }
  }
  tokens.tokenizer_ = std::move(tokenizer);
  return tokens;
}

int64_t TranscriptTokens::vocab() const {
  return spelling_ ? spelling_->classes() : tokenizer_->vocab();
}

std::vector<uint32_t> TranscriptTokens::Framed(std::string_view text) const {
  std::vector<uint32_t> framed = before_;
  if (spelling_) {
    std::vector<uint16_t> classes;
    spelling_->Spell(text, classes);
    framed.insert(framed.end(), classes.begin(), classes.end());
  } else {
    for (const TokenId id : tokenizer_->Encode(text)) framed.push_back(static_cast<uint32_t>(id));
  }
  framed.insert(framed.end(), after_.begin(), after_.end());
  return framed;
}

std::string TranscriptTokens::Read(std::span<const int64_t> tokens) const {
  if (spelling_) return spelling_->Read(tokens);
  std::vector<TokenId> words;
  for (const int64_t token : tokens) {
    if (token >= 0 && token < vocab() && silent_.count(token) == 0)
      words.push_back(static_cast<TokenId>(token));
  }
  return ToUtf8(tokenizer_->Decode(words));
}

Result<TranscriptTokensPtr> TranscriptTokensOf(const Preprocessing& preprocessing) {
  if (!preprocessing.spelling) return TranscriptTokensPtr();
  if (!preprocessing.text)
    return TranscriptTokensPtr(std::make_shared<TranscriptTokens>(*preprocessing.spelling));
  RIDGE_ASSIGN_OR_RETURN(TokenizerPtr tokenizer, TokenizerOf(*preprocessing.text));
  RIDGE_ASSIGN_OR_RETURN(TranscriptTokens tokens, TranscriptTokens::Of(std::move(tokenizer)));
  return TranscriptTokensPtr(std::make_shared<TranscriptTokens>(std::move(tokens)));
}

}  // namespace ridge
