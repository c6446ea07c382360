// Pattern: the regular expressions by which public tokenizers cut text into words.
//
// Only the patterns of a list (pattern.cc) are taken: each takes linear time on any text, which a
// pattern of a hostile file would not.  The dialect is Oniguruma's, as far as the list needs it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ridge {

class Pattern {
 public:
  // Nothing when it is not in the list.
  static std::optional<Pattern> Find(const std::string& expression);
  static const Pattern& Gpt2();

  // The length of the match at `at` of valid UTF-8, 0 when there is none.  No match is empty.
  size_t Match(std::string_view text, size_t at) const;

  struct Node;

 private:
  explicit Pattern(const std::string& expression);
  std::shared_ptr<const Node> root_;
};

}  // namespace ridge
