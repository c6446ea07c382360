#include "ridge/observe/edit_counts.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

int64_t Distance(const std::string& a, const std::string& b) {
  return EditDistance(std::vector<char>(a.begin(), a.end()), std::vector<char>(b.begin(), b.end()));
}

// torchaudio.functional.edit_distance gives these.
TEST(EditCountsTest, EditsAreTheLeast) {
  EXPECT_EQ(Distance("", ""), 0);
  EXPECT_EQ(Distance("kitten", "sitting"), 3);
  EXPECT_EQ(Distance("flaw", "lawn"), 2);
  EXPECT_EQ(Distance("", "abc"), 3);
  EXPECT_EQ(Distance("intention", "execution"), 5);
}

TEST(EditCountsTest, EditsAreAMetric) {
  const std::vector<std::string> words = {"", "a", "ab", "ba", "abab", "bbbaa", "babab", "aabbaa"};
  for (const std::string& a : words) {
    for (const std::string& b : words) {
      EXPECT_EQ(Distance(a, b), Distance(b, a));
      EXPECT_EQ(Distance(a, b) == 0, a == b);
      for (const std::string& c : words)
        EXPECT_LE(Distance(a, c), Distance(a, b) + Distance(b, c)) << a << ' ' << b << ' ' << c;
    }
  }
}

// jiwer 3.0: wer and cer of ["hello world", "a b c"] heard as these.
TEST(EditCountsTest, RatesAreSumsOverAllSamplesAsJiwersAre) {
  EditCounts counts;
  EXPECT_EQ(counts.WordErrorRate(), std::nullopt);
  counts.AddText("hello duck", "hello world");
  counts.AddText(" a  c c d ", "a b c");
  EXPECT_DOUBLE_EQ(*counts.WordErrorRate(), 3.0 / 5);
  EXPECT_DOUBLE_EQ(*counts.LetterErrorRate(), 9.0 / 16);
  EditCounts accents;
  accents.AddText("\xC3\xA9t", "\xC3\xA9t\xC3\xA9");
  EXPECT_DOUBLE_EQ(*accents.LetterErrorRate(), 1.0 / 3);
}

TEST(EditCountsTest, MoreEditsThanLettersAreARateAboveOne) {
  EditCounts counts;
  counts.AddClasses({5, 5, 5, 5, 5, 5}, {4, 5});
  counts.AddClasses({}, {7});
  EXPECT_DOUBLE_EQ(*counts.LetterErrorRate(), 6.0 / 3);
  EXPECT_EQ(counts.WordErrorRate(), std::nullopt);
}

}  // namespace
}  // namespace ridge
