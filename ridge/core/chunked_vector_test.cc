#include "ridge/core/chunked_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ridge {
namespace {

ChunkedVector<std::string> Numbers(int count) {
  ChunkedVector<std::string> list;
  for (int i = 0; i < count; ++i) list.push_back(std::to_string(i));
  return list;
}

TEST(ChunkedVector, ReferencesStayValidWhileItGrows) {
  ChunkedVector<std::string> list = Numbers(1);
  const std::string& first = list[0];
  for (int i = 1; i < 1000; ++i) list.push_back(std::to_string(i));
  EXPECT_EQ(&first, &list[0]);
  EXPECT_EQ(first, "0");
}

TEST(ChunkedVector, ReferencesIntoACopyStayValidToo) {
  ChunkedVector<std::string> copy = Numbers(33);
  copy = ChunkedVector<std::string>(copy);
  const std::string& last = copy.back();
  for (int i = 0; i < 100; ++i) copy.push_back("more");
  EXPECT_EQ(&last, &copy[32]);
}

TEST(ChunkedVector, HoldsItsElementsInOrder) {
  for (int count : {0, 1, 31, 32, 33, 64, 100}) {
    const ChunkedVector<std::string> list = Numbers(count);
    ASSERT_EQ(list.size(), static_cast<size_t>(count));
    EXPECT_EQ(list.empty(), count == 0);
    int i = 0;
    for (const std::string& element : list) EXPECT_EQ(element, std::to_string(i++));
    EXPECT_EQ(i, count);
    for (auto at = list.rbegin(); at != list.rend(); ++at) EXPECT_EQ(*at, std::to_string(--i));
    EXPECT_EQ(std::count(list.begin(), list.end(), "7"), count > 7 ? 1 : 0);
  }
}

TEST(ChunkedVector, AtThrowsBehindTheEndAndAMovedListIsEmpty) {
  ChunkedVector<std::string> list = Numbers(40);
  EXPECT_THROW(list.at(40), std::out_of_range);
  const ChunkedVector<std::string> other = std::move(list);
  EXPECT_EQ(other.at(39), "39");
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace ridge
