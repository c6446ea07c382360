// main() of every test program.
//
//   RIDGE_NO_SKIPS=1    a skipped test fails, unless its reason begins with "not on this machine: "
//
// So begin reasons that nobody can install away: no GPU, another instruction set, one core.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace ridge {
namespace {

constexpr char kAllowed[] = "not on this machine: ";

class NoSkips : public testing::EmptyTestEventListener {
  // Where gtest still takes failures of the test.
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    if (!result.Skipped()) return;
    for (int i = 0; i < result.total_part_count(); ++i) {
      const testing::TestPartResult& part = result.GetTestPartResult(i);
      // gtest writes "Skipped\n" before the reason.
      if (part.skipped() && std::strstr(part.message(), kAllowed) == nullptr)
        ADD_FAILURE() << "RIDGE_NO_SKIPS: " << part.message();
    }
  }
};

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::getenv("RIDGE_NO_SKIPS") != nullptr)
    testing::UnitTest::GetInstance()->listeners().Append(new ridge::NoSkips);
  return RUN_ALL_TESTS();
}
