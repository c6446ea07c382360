// The table of kernels as a whole; the kernels themselves: tests/ops/cpu_cases_test.cc.
#include "ridge/backend/cpu/kernel_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace ridge::cpu {
namespace {

TEST(KernelDefs, NameOperatorsThatExist) {
  for (const KernelDef& def : AllKernels()) {
    EXPECT_FALSE(def.ops.empty()) << def.name;
    for (const std::string& op : def.ops)
      EXPECT_TRUE(op == "*" || FindOp(op) != nullptr) << def.name << ": " << op;
  }
}

TEST(KernelDefs, MakeAKernelOfEachName) {
  for (const KernelDef& def : AllKernels()) {
    EXPECT_NE(def.make, nullptr) << def.name;
    EXPECT_EQ(def.name.find('/'), std::string::npos) << def.name;
  }
}

// A stored plan names a kernel; the operator and that name lead to one record.
TEST(KernelDefs, HaveNamesOfTheirOwn) {
  std::set<std::string> seen;
  for (const KernelDef& def : AllKernels()) {
    for (const OpDef& op : AllOps()) {
      if (!def.Runs(op)) continue;
      EXPECT_TRUE(seen.insert(op.name + " " + def.NameFor(op)).second) << def.NameFor(op);
      EXPECT_EQ(FindKernel(op, def.NameFor(op) + "/implementation"), &def);
    }
  }
}

// What the group of a pattern finds in a file, in order.
std::vector<std::string> Matches(const std::filesystem::path& path, const std::string& pattern) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string content = text.str();
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(content.begin(), content.end(), regex), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

TEST(KernelDefs, AreListedIfTheyAreDefined) {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  const std::filesystem::path folder =
      std::filesystem::path(source == nullptr ? "." : source) / "ridge/backend/cpu/kernels";
  std::vector<std::string> defined;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".cc") continue;
    for (const std::string& name : Matches(file.path(), R"(\nKernelDef (\w+)KernelDef\(\))"))
      defined.push_back(name);
  }
  EXPECT_THAT(Matches(folder / "kernels.def", R"(\nRIDGE_KERNEL\((\w+)\))"),
              testing::UnorderedElementsAreArray(defined));
}

}  // namespace
}  // namespace ridge::cpu
