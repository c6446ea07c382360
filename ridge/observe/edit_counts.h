// EditCounts: how far what was heard is from what was said, in words and in letters.
//
// An error rate is the sum over samples of the edits (letters replaced, left out or put in) that
// make one of the other, divided by the length of what was said: jiwer's wer and cer.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/observe/packed_numbers.h"

namespace ridge {

// Levenshtein distance.
template <typename T>
int64_t EditDistance(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<int64_t> row(b.size() + 1);  // to the beginnings of b
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

class EditCounts {
 public:
  // Classes that are no letters: no words.
  void AddClasses(const std::vector<int64_t>& heard, const std::vector<int64_t>& said);
  // Valid UTF-8; blanks part words, those at the ends count as nothing.
  void AddText(std::string_view heard, std::string_view said);

  // Of samples that another rank counted: adds what its Pack() gave.
  void Pack(PackedNumbers& to) const;
  void Merge(NumberReader& from);

  // Nothing before anything was said.
  std::optional<double> LetterErrorRate() const { return letters_.Rate(); }
  std::optional<double> WordErrorRate() const { return words_.Rate(); }

 private:
  struct Sum {
    int64_t edits = 0, length = 0;
    std::optional<double> Rate() const {
      if (length == 0) return std::nullopt;
      return static_cast<double>(edits) / static_cast<double>(length);
    }
  };
  Sum letters_, words_;
};

}  // namespace ridge
