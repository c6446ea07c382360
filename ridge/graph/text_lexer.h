// TokenReader: the tokens of a text graph, one at a time, with one token of look-ahead.
//
// A line end is a token too, except inside ( ) and [ ], where a statement may span lines.
// Tokens are views into the text, which must outlive the reader.  Copies are cheap and independent.
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
    kBad,      // no valid token
  };
  Kind kind = Kind::kEnd;
  std::string_view text;
  int line = 1;
};

// "'relu'", "the end of the line", ... for messages.
std::string DescribeToken(const Token& token);

// Whether `name` needs no quotes in a text.
bool IsPlainName(std::string_view name);
// The name itself, or quoted when it is not plain.
std::string PrintName(std::string_view name);
// "..." with escapes.
std::string QuoteString(std::string_view text);

class TokenReader {
 public:
  // `file` begins messages: "net.ridge:8: ..."; an empty one is left out.
  TokenReader(std::string_view text, std::string file);

  const Token& peek() const { return token_; }
  bool at_symbol(char c) const;
  bool at_name(std::string_view name) const;
  Token Take();
  bool TakeSymbol(char c);  // if it is next
  Status ExpectSymbol(char c, std::string_view after);
  // A plain or a quoted name.
  Result<std::string> ExpectName(std::string_view what);
  Result<std::string> ExpectString(std::string_view what);
  void SkipLine();      // up to the next line end, which is not consumed
  void SkipNewlines();  // empty lines

  Status Error(const std::string& text) const;  // at the next token
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
