#include "ridge/graph/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/graph/text.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr char kNet[] = R"(graph net
  x = input f32[2]
  w = parameter f32[2]
  s = state f32[2] role=statistic
  h = mul(x, w)
  y = exp(h)
  dead = neg(x)
  n = add(s, y)
  output y
  update s = n
)";

class ReachTest : public testing::Test {
 protected:
  ReachTest() : graph_(*ParseGraph(kNet, "net.ridge")) {}

  std::vector<ValueId> Ids(const std::vector<std::string>& names) const {
    std::vector<ValueId> ids;
    for (const std::string& name : names) ids.push_back(graph_.FindValue(name));
    return ids;
  }
  std::vector<std::string> Names(const ValueSet& values) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]) names.push_back(graph_.values()[i].name);
    }
    return names;
  }

  const Graph graph_;
};

TEST_F(ReachTest, AncestorsAreWhatTheRootsAreComputedFrom) {
  EXPECT_THAT(Names(Ancestors(graph_, Ids({"y"}))), UnorderedElementsAre("x", "w", "h", "y"));
  EXPECT_THAT(Names(Ancestors(graph_, {})), ElementsAre());
}

TEST_F(ReachTest, AnInputMayBeClosed) {
  const auto first = [](const Node&, size_t input) { return input == 0; };
  EXPECT_THAT(Names(Ancestors(graph_, Ids({"y"}), first)), UnorderedElementsAre("x", "h", "y"));
}

TEST_F(ReachTest, DescendantsAreWhatIsComputedFromTheRoots) {
  EXPECT_THAT(Names(Descendants(graph_, Ids({"w"}))), UnorderedElementsAre("w", "h", "y", "n"));
}

TEST_F(ReachTest, NodesFollowFromTheirOutputs) {
  const std::vector<bool> of_outputs = ProducersOf(graph_, Ancestors(graph_, OutputValues(graph_)));
  EXPECT_THAT(of_outputs, ElementsAre(true, true, false, false));
  const std::vector<bool> of_all = ProducersOf(graph_, Ancestors(graph_, ResultValues(graph_)));
  EXPECT_THAT(of_all, ElementsAre(true, true, false, true));
}

}  // namespace
}  // namespace ridge
