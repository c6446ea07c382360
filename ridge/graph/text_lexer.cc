#include "ridge/graph/text_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace ridge {
namespace {

using Kind = Token::Kind;

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool IsNamePart(char c) {
  return IsNameStart(c) || (c >= '0' && c <= '9') || c == '.' || c == '/' || c == '-';
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// nullopt when an escape is not one of \" \\ \n \t \xHH.
std::optional<std::string> Unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char c = ++i < text.size() ? text[i] : '\0';
    if (c == '"' || c == '\\') {
      out += c;
    } else if (c == 'n' || c == 't') {
      out += c == 'n' ? '\n' : '\t';
    } else if (c == 'x' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 &&
               HexValue(text[i + 2]) >= 0) {
      out += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

// Text of others in our messages: short, and without control characters.
std::string Excerpt(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string out;
  for (char c : text.substr(0, kLongest)) {
    const bool plain = static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
    out += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text.size() > kLongest ? out + "..." : out;
}

}  // namespace

std::string DescribeToken(const Token& token) {
  switch (token.kind) {
    case Kind::kEnd:
      return "the end of the text";
    case Kind::kNewline:
      return "the end of the line";
    case Kind::kString:
      return fmt::format("\"{}\"", Excerpt(token.text));
    case Kind::kBad:
      if (token.text.starts_with('"')) return "a string without its closing quote";
      [[fallthrough]];
    default:
      return fmt::format("'{}'", Excerpt(token.text));
  }
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "_" && IsNameStart(name[0]) &&
         std::all_of(name.begin(), name.end(), IsNamePart);
}

std::string PrintName(std::string_view name) {
  return IsPlainName(name) ? std::string(name) : QuoteString(name);
}

std::string QuoteString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

TokenReader::TokenReader(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)) {
  Advance();
}

bool TokenReader::at_symbol(char c) const {
  return token_.kind == Kind::kSymbol && token_.text[0] == c;
}

bool TokenReader::at_name(std::string_view name) const {
  return token_.kind == Kind::kName && token_.text == name;
}

Token TokenReader::Take() {
  const Token token = token_;
  Advance();
  return token;
}

bool TokenReader::TakeSymbol(char c) {
  if (!at_symbol(c)) return false;
  Advance();
  return true;
}

Status TokenReader::ExpectSymbol(char c, std::string_view after) {
  if (TakeSymbol(c)) return Status();
  return Error(fmt::format("expected '{}' {}, found {}", c, after, DescribeToken(token_)));
}

Result<std::string> TokenReader::ExpectName(std::string_view what) {
  if (token_.kind == Kind::kString) return ExpectString(what);
  if (token_.kind == Kind::kName && token_.text != "_") return std::string(Take().text);
  return Error(fmt::format("expected {}, found {}", what, DescribeToken(token_)));
}

Result<std::string> TokenReader::ExpectString(std::string_view what) {
  if (token_.kind != Kind::kString) {
    return Error(fmt::format("expected {} in quotes, found {}", what, DescribeToken(token_)));
  }
  std::optional<std::string> text = Unescape(token_.text);
  if (!text) {
    return Error(fmt::format("the string {} has an unknown escape; known: \\\" \\\\ \\n \\t \\xHH",
                             DescribeToken(token_)));
  }
  Advance();
  return *std::move(text);
}

void TokenReader::SkipLine() {
  while (token_.kind != Kind::kNewline && token_.kind != Kind::kEnd) Advance();
}

void TokenReader::SkipNewlines() {
  while (token_.kind == Kind::kNewline) Advance();
}

Status TokenReader::Error(const std::string& text) const { return ErrorAt(token_.line, text); }

Status TokenReader::ErrorAt(int line, const std::string& text) const {
  if (file_.empty()) return Status(ErrorCode::kInvalidModel, text);
  return Status(ErrorCode::kInvalidModel, fmt::format("{}:{}: {}", file_, line, text));
}

void TokenReader::Advance() {
  SkipSpace();
  token_ = Lex();
}

// Blanks, comments, and line ends within ( ) and [ ].
void TokenReader::SkipSpace() {
  const bool lines_too = !open_.empty() && open_.back() != '{';
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '#') {
      while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
    } else if (c == '\n' && lines_too) {
      ++line_;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

Token TokenReader::Lex() {
  if (position_ >= text_.size()) return Make(Kind::kEnd, 0);
  const char c = text_[position_];
  if (c == '\n') {
    const Token token = Make(Kind::kNewline, 1);
    ++line_;
    return token;
  }
  if (IsNameStart(c)) return LexName();
  const bool negative = c == '-' && position_ + 1 < text_.size();
  if (IsDigit(c) || (negative && IsDigit(text_[position_ + 1]))) return LexNumber();
  if (text_.substr(position_).starts_with("-inf")) return Make(Kind::kFloat, 4);
  if (c == '"') return LexString();
  return LexSymbol();
}

Token TokenReader::LexName() {
  size_t end = position_;
  while (end < text_.size() && IsNamePart(text_[end])) ++end;
  return Make(Kind::kName, end - position_);
}

Token TokenReader::LexNumber() {
  size_t end = position_ + (text_[position_] == '-' ? 1 : 0);
  const auto digits = [&] {
    while (end < text_.size() && IsDigit(text_[end])) ++end;
  };
  const auto next_is = [&](std::string_view any) {
    return end < text_.size() && any.find(text_[end]) != std::string_view::npos;
  };
  digits();
  bool whole = true;
  if (next_is(".")) {
    whole = false;
    ++end;
    digits();
  }
  if (next_is("eE")) {
    whole = false;
    ++end;
    if (next_is("+-")) ++end;
    digits();
  }
  if (end < text_.size() && IsNamePart(text_[end])) {  // 3x, 1.2.3
    while (end < text_.size() && IsNamePart(text_[end])) ++end;
    return Make(Kind::kBad, end - position_);
  }
  return Make(whole ? Kind::kInteger : Kind::kFloat, end - position_);
}

Token TokenReader::LexString() {
  size_t end = position_ + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    end += text_[end] == '\\' ? 2 : 1;
  }
  if (end >= text_.size() || text_[end] == '\n') {
    return Make(Kind::kBad, std::min(end, text_.size()) - position_);
  }
  Token token = Make(Kind::kString, end + 1 - position_);
  token.text = token.text.substr(1, token.text.size() - 2);
  return token;
}

Token TokenReader::LexSymbol() {
  const char c = text_[position_];
  if (std::string_view("()[]{}=,;").find(c) == std::string_view::npos) return Make(Kind::kBad, 1);
  if (c == '(' || c == '[' || c == '{') open_.push_back(c);
  const bool closes = c == ')' || c == ']' || c == '}';
  if (closes && !open_.empty()) open_.pop_back();
  return Make(Kind::kSymbol, 1);
}

Token TokenReader::Make(Token::Kind kind, size_t length) {
  const Token token{kind, text_.substr(position_, length), line_};
  position_ += length;
  return token;
}

}  // namespace ridge
