#include "ridge/data/text/decode.h"

#include <array>
#include <charconv>
#include <unordered_map>

#include "ridge/data/text/split.h"

namespace ridge {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kWithinWord = "##";

// The byte that each printable character stands for.
const std::unordered_map<std::string, char>& BytesOfChars() {
  static const auto bytes = [] {
    std::unordered_map<std::string, char> table;
    for (int byte = 0; byte < 256; ++byte) {
      std::string character(1, static_cast<char>(byte));
      MapBytes(character);
      table.emplace(std::move(character), static_cast<char>(byte));
    }
    return table;
  }();
  return bytes;
}

size_t CharacterBytes(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void AppendByteLevel(std::string_view piece, std::string& text) {
  while (!piece.empty()) {
    const std::string character(piece.substr(0, CharacterBytes(piece.front())));
    const auto found = BytesOfChars().find(character);
    if (found == BytesOfChars().end())
      text += character;
    else
      text += found->second;
    piece.remove_prefix(std::min(piece.size(), character.size()));
  }
}

// "<0x0A>"
bool AppendByte(std::string_view piece, std::string& text) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return false;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  if (error != std::errc() || end != piece.data() + 5) return false;
  text += static_cast<char>(byte);
  return true;
}

void AppendMetaspace(std::string_view piece, std::string& text) {
  if (AppendByte(piece, text)) return;
  while (!piece.empty()) {
    const bool space = piece.starts_with(kSpaceMark);
    text += space ? ' ' : piece.front();
    piece.remove_prefix(space ? kSpaceMark.size() : 1);
  }
}

}  // namespace

std::string DecodePieces(const PieceTable& table, std::span<const TokenId> ids) {
  std::string text;
  for (const TokenId id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= table.pieces.size()) continue;
    const std::string& piece = table.pieces[static_cast<size_t>(id)];
    switch (table.joining) {
      case Joining::kPlain:
        text += piece;
        break;
      case Joining::kWordPieces:
        text += piece.starts_with(kWithinWord) ? piece.substr(kWithinWord.size()) : " " + piece;
        break;
      case Joining::kByteLevel:
        AppendByteLevel(piece, text);
        break;
      case Joining::kMetaspace:
        AppendMetaspace(piece, text);
        break;
    }
  }
  return text;
}

}  // namespace ridge
