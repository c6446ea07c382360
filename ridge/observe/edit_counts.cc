#include "ridge/observe/edit_counts.h"

#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::vector<int64_t> LettersOf(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::vector<int64_t> letters;
  for (size_t at = 0; at < text.size();)
    letters.push_back(static_cast<int64_t>(NextChar(text, at)));
  return letters;
}

}  // namespace

void EditCounts::AddClasses(const std::vector<int64_t>& heard, const std::vector<int64_t>& said) {
  letters_.edits += EditDistance(heard, said);
  letters_.length += static_cast<int64_t>(said.size());
}

void EditCounts::AddText(std::string_view heard, std::string_view said) {
  AddClasses(LettersOf(heard), LettersOf(said));
  const std::vector<std::string_view> words = WordsOf(said);
  words_.edits += EditDistance(WordsOf(heard), words);
  words_.length += static_cast<int64_t>(words.size());
}

void EditCounts::Pack(PackedNumbers& to) const {
  for (const Sum* sum : {&letters_, &words_}) PackAll<int64_t>({sum->edits, sum->length}, to);
}

void EditCounts::Merge(NumberReader& from) {
  for (Sum* sum : {&letters_, &words_}) {
    sum->edits += from.TakeCount();
    sum->length += from.TakeCount();
  }
}

}  // namespace ridge
