#include "ridge/graph/attributes.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

int64_t Integer(const AttrMap& attrs, const std::string& name) {
  return std::get<int64_t>(attrs.at(name));
}

TEST(AttrMap, CopiesShareUntilOneIsChanged) {
  const AttrMap original = {{"axis", int64_t{1}}, {"keep", int64_t{0}}};
  AttrMap copy = original;
  EXPECT_TRUE(copy.SharesWith(original));
  copy["axis"] = int64_t{2};
  EXPECT_FALSE(copy.SharesWith(original));
  EXPECT_EQ(Integer(original, "axis"), 1);
  EXPECT_EQ(Integer(copy, "axis"), 2);
}

TEST(AttrMap, EveryChangeLeavesCopiesAsTheyAre) {
  const AttrMap original = {{"a", int64_t{1}}};
  AttrMap at = original, erased = original, emplaced = original, merged = original,
          walked = original;
  at.at("a") = int64_t{5};
  EXPECT_EQ(erased.erase("a"), 1u);
  EXPECT_FALSE(emplaced.emplace("a", int64_t{6}).second);
  EXPECT_TRUE(emplaced.try_emplace("b", int64_t{7}).second);
  merged.merge({{"a", int64_t{8}}, {"c", int64_t{9}}});
  for (auto& [name, value] : walked) value = int64_t{10};
  EXPECT_EQ(original.size(), 1u);
  EXPECT_EQ(Integer(original, "a"), 1);
  EXPECT_TRUE(erased.empty());
  EXPECT_EQ(Integer(emplaced, "b"), 7);
  EXPECT_EQ(Integer(merged, "a"), 1);
  EXPECT_EQ(Integer(merged, "c"), 9);
  EXPECT_EQ(Integer(walked, "a"), 10);
}

TEST(AttrMap, IsInOrderOfNamesAndMayBeEmpty) {
  const AttrMap none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_EQ(none.find("x"), none.end());
  std::string names;
  const AttrMap attrs = {{"b", 1.0}, {"a", 2.0}, {"c", 3.0}};
  for (const auto& [name, value] : attrs) names += name;
  EXPECT_EQ(names, "abc");
}

}  // namespace
}  // namespace ridge
