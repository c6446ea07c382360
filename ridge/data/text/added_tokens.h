// AddedTokens: texts that are tokens of their own wherever they stand, such as "[MASK]".
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ridge/data/text/vocabulary.h"

namespace ridge {

struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  // no letters on either side
  bool takes_left = false;   // white space before it is part of it
  bool takes_right = false;
  bool normalized = false;  // sought in the text after normalization
};

struct TextPart {
  std::string_view text;
  TokenId id = -1;  // of an added token; -1: text
};

class AddedTokens {
 public:
  void Add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  // Cuts `text`, valid UTF-8; of several tokens at a place the longest is taken.
  std::vector<TextPart> Cut(std::string_view text) const;

 private:
  const AddedToken* LongestAt(std::string_view text, size_t at) const;

  std::unordered_map<std::string, AddedToken> tokens_;
  std::vector<size_t> lengths_[256];  // of the tokens that begin with a byte, longest first
};

}  // namespace ridge
