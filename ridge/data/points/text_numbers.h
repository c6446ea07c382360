// TextNumbers: words and numbers in text, one after the other.
#pragma once
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace ridge {

// A file's words in a message: other bytes than printable ASCII become '?', a long text is cut.
inline std::string Shown(std::string_view text, size_t most = 40) {
  std::string shown(text.substr(0, most));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > most ? shown + "..." : shown;
}

class TextNumbers {
 public:
  explicit TextNumbers(std::string_view text, bool comments = false)
      : text_(text), comments_(comments) {}

  size_t position() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }

  // Empty at the end.
  std::string_view Word() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && !IsSpace(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  template <typename T>
  std::optional<T> Number() {
    std::string_view word = Word();
    if (word.starts_with('+')) word.remove_prefix(1);
    T number{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return number;
  }

  // Behind the end of this line.
  std::string_view Line() {
    const size_t end = text_.find('\n', at_);
    std::string_view line = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  void SkipSpace() {
    for (; at_ < text_.size(); ++at_) {
      if (comments_ && text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_ == text_.size()) return;
      }
      if (!IsSpace(text_[at_])) return;
    }
  }

  std::string_view text_;
  const bool comments_;  // from # to the end of the line
  size_t at_ = 0;
};

}  // namespace ridge
