// A pattern is parsed to alternatives of sequences of items; an item is a set of characters, a
// group or a look-ahead, with a number of repetitions.  Matching backtracks: a repeated set first
// takes all it can, then gives back one by one.  Depth is that of the pattern, not of the text.
#include "ridge/data/text/pattern.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Of GPT-2, Llama 3 and cl100k (two ways to write it), Qwen 2 and 3, o200k; words; single digits.
constexpr const char* kKnown[] = {
    kGpt2,
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"(\w+|[^\w\s]+)",
    R"(\d)",
    R"(\s+)",
};

constexpr int kMany = std::numeric_limits<int>::max();
constexpr size_t kNoMatch = std::string_view::npos;

struct CharSet {
  bool negated = false, space = false, word = false, ignore_case = false;
  uint32_t categories = 0;  // a bit a Category
  std::u32string codes;

  bool Holds(char32_t code) const {
    if (ignore_case) {
      if (code >= 'A' && code <= 'Z') code += 32;
      if (code == 0x17F) code = 's';  // the long s folds to s
    }
    const bool in =
        codes.find(code) != std::u32string::npos || (space && IsSpace(code)) ||
        (word && IsWordChar(code)) ||
        (categories != 0 && (categories >> static_cast<uint32_t>(CategoryOf(code)) & 1) != 0);
    return in != negated;
  }
};

}  // namespace

// Alternatives of sequences of items.
struct Pattern::Node {
  struct Item {
    int least = 1, most = 1;
    bool possessive = false;  // gives nothing back
    bool not_ahead = false;   // matches nothing, where `group` does not match
    CharSet set;
    std::shared_ptr<const Node> group;  // null: `set`
  };
  std::vector<std::vector<Item>> sequences;
};

namespace {

using Node = Pattern::Node;
using Item = Node::Item;

uint32_t CategoriesOf(std::string_view name) {
  const auto bits = [](Category first, Category last) {
    return (2U << static_cast<uint32_t>(last)) - (1U << static_cast<uint32_t>(first));
  };
  if (name == "L") return bits(Category::kLu, Category::kLo);
  if (name == "N") return bits(Category::kNd, Category::kNo);
  if (name == "M") return bits(Category::kMn, Category::kMe);
  if (name == "Lu") return bits(Category::kLu, Category::kLu);
  if (name == "Ll") return bits(Category::kLl, Category::kLl);
  if (name == "Lt") return bits(Category::kLt, Category::kLt);
  if (name == "Lm") return bits(Category::kLm, Category::kLm);
  if (name == "Lo") return bits(Category::kLo, Category::kLo);
  RIDGE_CHECK(false, "a category of a known pattern");
  return 0;
}

// Of the known patterns, which are all well formed.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::shared_ptr<const Node> Alternatives() {
    auto node = std::make_shared<Node>();
    do {
      node->sequences.emplace_back();
      while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')')
        node->sequences.back().push_back(Repeated(OneItem()));
    } while (Take("|"));
    return node;
  }

 private:
  bool Take(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  Item OneItem() {
    Item item;
    if (Take("(?!") || Take("(?i:")) {
      item.not_ahead = text_[at_ - 1] == '!';
      const bool outer = std::exchange(ignore_case_, !item.not_ahead || ignore_case_);
      item.group = Alternatives();
      ignore_case_ = outer;
      RIDGE_CHECK(Take(")"), "a group of a known pattern ends");
      return item;
    }
    item.set.ignore_case = ignore_case_;
    if (!Take("[")) {
      AddChar(item.set);
      return item;
    }
    item.set.negated = Take("^");
    while (!Take("]")) AddChar(item.set);
    return item;
  }

  void AddChar(CharSet& set) {
    if (!Take("\\")) {
      set.codes.push_back(NextChar(text_, at_));
      return;
    }
    const char kind = text_[at_++];
    if (kind == 'p') {
      const size_t end = text_.find('}', at_);
      set.categories |= CategoriesOf(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    } else if (kind == 's' || kind == 'S') {
      set.space = true;
      set.negated |= kind == 'S';
    } else if (kind == 'w') {
      set.word = true;
    } else if (kind == 'd') {
      set.categories |= 1U << static_cast<uint32_t>(Category::kNd);
    } else {
      set.codes.push_back(kind == 'r' ? U'\r' : U'\n');
    }
  }

  Item Repeated(Item item) {
    if (Take("{1,3}")) {
      item.most = 3;
    } else if (Take("?")) {
      item.least = 0;
    } else if (Take("*")) {
      item.least = 0;
      item.most = kMany;
    } else if (Take("+")) {
      item.most = kMany;
    } else {
      return item;
    }
    item.possessive = Take("+");
    return item;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool ignore_case_ = false;
};

class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text) {}

  using Then = std::function<size_t(size_t)>;

  // The end of the first way to match at `at` after which `then` matches; kNoMatch: none.
  size_t Match(const Node& node, size_t at, const Then* then) const {
    for (const auto& sequence : node.sequences) {
      const size_t end = MatchItems(sequence, 0, at, then);
      if (end != kNoMatch) return end;
    }
    return kNoMatch;
  }

 private:
  size_t MatchItems(const std::vector<Item>& items, size_t index, size_t at,
                    const Then* then) const {
    if (index == items.size()) return then == nullptr ? at : (*then)(at);
    const Item& item = items[index];
    if (item.group == nullptr) return MatchSet(items, index, at, then);
    if (item.not_ahead) {
      if (Match(*item.group, at, nullptr) != kNoMatch) return kNoMatch;
      return MatchItems(items, index + 1, at, then);
    }
    const Then rest = [&](size_t end) { return MatchItems(items, index + 1, end, then); };
    const size_t end = Match(*item.group, at, &rest);
    if (end != kNoMatch || item.least > 0) return end;
    return rest(at);
  }

  size_t MatchSet(const std::vector<Item>& items, size_t index, size_t at, const Then* then) const {
    const Item& item = items[index];
    int count = 0;
    size_t end = at;
    for (; count < item.most && end < text_.size(); ++count) {
      size_t next = end;
      if (!item.set.Holds(NextChar(text_, next))) break;
      end = next;
    }
    for (; count >= item.least; --count) {
      const size_t whole = MatchItems(items, index + 1, end, then);
      if (whole != kNoMatch || item.possessive || count == 0) return whole;
      do --end;
      while ((static_cast<uint8_t>(text_[end]) & 0xC0) == 0x80);
    }
    return kNoMatch;
  }

  std::string_view text_;
};

}  // namespace

Pattern::Pattern(const std::string& expression) : root_(Parser(expression).Alternatives()) {}

std::optional<Pattern> Pattern::Find(const std::string& expression) {
  const bool known =
      std::find(std::begin(kKnown), std::end(kKnown), expression) != std::end(kKnown);
  return known ? std::optional(Pattern(expression)) : std::nullopt;
}

const Pattern& Pattern::Gpt2() {
  static const Pattern pattern(kGpt2);
  return pattern;
}

size_t Pattern::Match(std::string_view text, size_t at) const {
  const size_t end = Matcher(text).Match(*root_, at, nullptr);
  return end == kNoMatch ? 0 : end - at;
}

}  // namespace ridge
