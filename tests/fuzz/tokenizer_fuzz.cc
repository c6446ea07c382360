// A tokenizer.json or a model of SentencePiece of any bytes; one that is read encodes any text to
// ids of its vocabulary.
#include "ridge/data/text/sentencepiece.h"
#include "ridge/data/text/tokenizer_json.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

void Encode(ridge::Result<ridge::TokenizerParts> parts, std::string_view text) {
  if (!parts.ok()) return;
  const ridge::Tokenizer tokenizer(std::move(*parts));
  const auto ids = tokenizer.EncodeFramed(text, 64);
  for (const ridge::TokenId id : ids)
    RIDGE_CHECK(id >= 0 && id < tokenizer.vocab(), "an id of the vocabulary");
  [[maybe_unused]] const std::string decoded = tokenizer.Decode(ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  const std::string text = " The  caf\xC3\xA9\n\xE2\x96\x81\xF0\x9F\x98\x80 <s>a\xFF" +
                           file.substr(0, std::min<size_t>(size, 64));
  if (file.starts_with('{'))
    Encode(ridge::ParseTokenizerJson(file, "fuzz"), text);
  else
    Encode(ridge::ParseSentencePiece(file, "fuzz"), text);
  return 0;
}
