#include "ridge/data/text/tokenizer.h"

#include <algorithm>

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

constexpr TokenId kFirstByte = 3;

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}

std::vector<TokenId> Tokenizer::Encode(std::string_view text) const {
  std::vector<TokenId> ids;
  Encode(text, ids);
  return ids;
}

void Tokenizer::Encode(std::string_view bytes, std::vector<TokenId>& ids) const {
  if (parts_.model == nullptr) {
    for (char byte : bytes) ids.push_back(static_cast<uint8_t>(byte) + kFirstByte);
    return;
  }
  const std::string text = ToUtf8(bytes);
  for (const TextPart& part : parts_.raw_tokens.Cut(text)) {
    if (part.id >= 0)
      ids.push_back(part.id);
    else
      EncodeText(part.text, part.text.data() == text.data(), ids);
  }
}

void Tokenizer::EncodeText(std::string_view text, bool first, std::vector<TokenId>& ids) const {
  std::string normalized(text);
  for (const Normalizer& normalize : parts_.normalizers) normalize(normalized);
  for (const TextPart& part : parts_.normalized_tokens.Cut(normalized)) {
    if (part.id >= 0)
      ids.push_back(part.id);
    else
      EncodeNormalized(part.text, first && part.text.data() == normalized.data(), ids);
  }
}

void Tokenizer::EncodeNormalized(std::string_view text, bool first,
                                 std::vector<TokenId>& ids) const {
  std::vector<Piece> pieces = {{std::string(text), first}};
  for (const Splitter& split : parts_.splitters) split(pieces);
  for (const Piece& piece : pieces) parts_.model->Encode(piece.text, ids);
}

std::vector<TokenId> Tokenizer::EncodeFramed(std::string_view text, int64_t most) const {
  const TokenFrame& frame = parts_.frame;
  std::vector<TokenId> ids = Encode(text);
  const auto room = static_cast<size_t>(
      std::max<int64_t>(0, most - static_cast<int64_t>(frame.before.size() + frame.after.size())));
  if (ids.size() > room) {
    const auto cut = static_cast<std::ptrdiff_t>(ids.size() - room);
    if (parts_.cuts_left)
      ids.erase(ids.begin(), ids.begin() + cut);
    else
      ids.erase(ids.end() - cut, ids.end());
  }
  ids.insert(ids.begin(), frame.before.begin(), frame.before.end());
  ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  if (static_cast<int64_t>(ids.size()) > most) ids.resize(static_cast<size_t>(most));
  return ids;
}

TokenizerPtr ByteTokenizer() {
  static const auto bytes = [] {
    TokenizerParts parts;
    parts.kind = "bytes";
    parts.vocab = 256 + kFirstByte;
    parts.end = 1;
    parts.table.pieces.resize(static_cast<size_t>(parts.vocab));
    for (int byte = 0; byte < 256; ++byte)
      parts.table.pieces[static_cast<size_t>(byte + kFirstByte)] = static_cast<char>(byte);
    return std::make_shared<const Tokenizer>(std::move(parts));
  }();
  return bytes;
}

}  // namespace ridge
