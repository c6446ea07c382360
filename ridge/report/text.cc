#include "ridge/report/text.h"

#include <algorithm>

namespace ridge {
namespace {

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// The bytes of the first code point; 1 of what is no UTF-8.
size_t CodePointBytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
  if (bytes > text.size()) return 1;
  for (size_t i = 1; i < bytes; ++i) {
    if (BeginsCodePoint(text[i])) return 1;
  }
  return bytes;
}

// C0, DEL and C1, also where it is a byte of its own (a terminal that reads Latin-1 obeys it).
bool IsControl(std::string_view code_point) {
  const auto first = static_cast<unsigned char>(code_point[0]);
  if (code_point.size() == 2)
    return first == 0xC2 && static_cast<unsigned char>(code_point[1]) < 0xA0;
  return code_point.size() == 1 && (first < 0x20 || (first >= 0x7F && first < 0xA0));
}

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
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = CodePointBytes(text);
    if (IsControl(text.substr(0, bytes))) {
      printable += '?';
    } else {
      printable += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return printable;
}

std::string PrintableLines(std::string_view text) {
  std::string lines;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    lines += Printable(text.substr(0, end)) + '\n';
    text.remove_prefix(end + 1);
  }
  return lines + Printable(text);
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
