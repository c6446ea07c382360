#include "ridge/learn/host_placement.h"

#include <gtest/gtest.h>

#include "ridge/graph/builder.h"

namespace ridge {
namespace {

using Names = std::vector<std::string>;

Graph Net() {
  GraphBuilder b("net");
  const Value rows = b.Input("rows", {DType::kI64, {4}});
  const Value small = b.Parameter("small.weight", {DType::kF32, {8, 4}}, Init::Zeros());
  const Value large = b.Parameter("large.weight", {DType::kF32, {64, 4}}, Init::Zeros());
  const Value tied = b.Parameter("tied.weight", {DType::kF32, {256, 4}}, Init::Zeros());
  const Value x = Op("gather", {small, rows}) + Op("gather", {large, rows});
  b.Output("y", x + Op("gather", {tied, rows}));
  b.Output("z", Op("exp", {tied}));
  auto graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *graph;
}

TEST(HostPlacement, PatternsNameParameters) {
  EXPECT_EQ(*PlacedParameters({"small.*=cpu,t*=cpu"}, Net()),
            (Names{"small.weight", "tied.weight"}));
  EXPECT_EQ(*PlacedParameters({"*=cpu"}, Net()),
            (Names{"small.weight", "large.weight", "tied.weight"}));
  EXPECT_EQ(PlacedParameters({"smal.weight=cpu"}, Net()).status().message(),
            "net: --place 'smal.weight' matches no parameter; the nearest are small.weight, "
            "large.weight, tied.weight. hint: --place 'small.*=cpu'");
}

TEST(HostPlacement, TablesAreWhatIsLookedUpLargestFirstAndTiedOnesLast) {
  EXPECT_EQ(TablesOf(Net()), (Names{"large.weight", "small.weight", "tied.weight"}));
}

TEST(HostPlacement, OtherTextsAreRefused) {
  EXPECT_EQ(*ParsePlace({"auto"}), Names{"auto"});
  for (const char* wrong : {"embed.*", "embed.*=gpu", "=cpu", "a=cpu,auto"}) {
    const std::string part = std::string(wrong) == "a=cpu,auto" ? "auto" : wrong;
    EXPECT_EQ(ParsePlace({wrong}).status().message(),
              "--place is '" + std::string(wrong) + "': '" + part +
                  "' is not PATTERN=cpu. hint: --place 'embed.*=cpu', or --place auto");
  }
}

}  // namespace
}  // namespace ridge
