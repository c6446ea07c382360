#include "ridge/graph/name_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace ridge {
namespace {

TEST(NameTable, AnswersAsAMapDoesWhileNamesComeAndGo) {
  std::vector<std::string> names;
  const auto name_of = [&](int32_t i) -> const std::string& {
    return names[static_cast<size_t>(i)];
  };
  NameTable table;
  std::map<std::string, int32_t> expected;
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    const std::string name = std::to_string(random() % 500);
    const auto known = expected.find(name);
    EXPECT_EQ(table.Find(name, name_of), known == expected.end() ? -1 : known->second);
    if (known != expected.end()) {
      table.Erase(name, known->second);
      expected.erase(known);
    } else {
      names.push_back(name);
      const auto index = static_cast<int32_t>(names.size()) - 1;
      table.Insert(names.back(), index);
      expected.emplace(name, index);
    }
  }
}

TEST(NameTable, EmptyFindsNothing) {
  EXPECT_EQ(NameTable().Find("x", [](int32_t) { return std::string("x"); }), -1);
}

}  // namespace
}  // namespace ridge
