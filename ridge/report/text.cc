#include "ridge/report/text.h"

#include <algorithm>

namespace ridge {
namespace {

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string Blanks(int count) { return std::string(static_cast<size_t>(std::max(count, 0)), ' '); }

// The first `count` code points.
std::string_view Start(std::string_view text, int count) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (BeginsCodePoint(text[i]) && count-- == 0) break;
  }
  return text.substr(0, i);
}

}  // namespace

int DisplayWidth(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), BeginsCodePoint));
}

std::string Printable(std::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return printable;
}

std::string Shortened(std::string_view text, int width, bool unicode) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const std::string_view ellipsis = unicode ? "\u2026" : "...";
  const int room = width - DisplayWidth(ellipsis);
  if (room < 1) return std::string(Start(text, std::max(width, 0)));
  return std::string(Start(text, room)).append(ellipsis);
}

std::string PadRight(std::string_view text, int width) {
  return std::string(text) + Blanks(width - DisplayWidth(text));
}

std::string PadLeft(std::string_view text, int width) {
  return Blanks(width - DisplayWidth(text)).append(text);
}

}  // namespace ridge
