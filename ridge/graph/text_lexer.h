// TokenReader: the words of a text graph, one at a time, with one word of look-ahead.
//
// A line end is a word too, except inside ( ) and [ ], where statements may go on over lines.
// Words are views into the text, which must outlive the reader.  Copies are cheap, and read on
// independently.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct Token {
  enum class Kind {
    kEnd,
    kNewline,
    kName,     // [A-Za-z_][A-Za-z0-9_./-]*
    kString,   // text between the quotes, escapes not yet resolved
    kInteger,  // -?[0-9]+
    kFloat,    // digits with a point or an exponent
    kSymbol,   // one of ( ) [ ] { } = , ;
    kBad,      // not a word at all
  };
  Kind kind = Kind::kEnd;
  std::string_view text;
  int line = 1;
};

// "'relu'", "the end of the line", ... for messages.
std::string DescribeToken(const Token& token);

// Whether `name` can stand in a text without quotes.
bool IsPlainName(std::string_view name);
// The name itself, or quoted when it is not plain.
std::string PrintName(std::string_view name);
// "..." with escapes.
std::string QuoteString(std::string_view text);

class TokenReader {
 public:
  // `file` heads messages: "net.ridge:8: ..."; without a file they have no head.
  TokenReader(std::string_view text, std::string file);

  const Token& peek() const { return token_; }
  bool at_symbol(char c) const;
  bool at_name(std::string_view name) const;
  Token Take();
  bool TakeSymbol(char c);  // when it is next
  Status ExpectSymbol(char c, std::string_view after);
  // A plain or a quoted name.
  Result<std::string> ExpectName(std::string_view what);
  Result<std::string> ExpectString(std::string_view what);
  void SkipLine();      // up to the next line end, which stays
  void SkipNewlines();  // empty lines

  Status Error(const std::string& text) const;  // at the next word
  Status ErrorAt(int line, const std::string& text) const;

 private:
  void Advance();
  void SkipSpace();
  Token Lex();
  Token LexName();
  Token LexNumber();
  Token LexString();
  Token LexSymbol();
  Token Make(Token::Kind kind, size_t length);

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  int line_ = 1;
  std::vector<char> open_;  // brackets not yet closed
  Token token_;
};

}  // namespace ridge
