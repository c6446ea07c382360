#include "ridge/train/store/graph_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ridge/graph/text.h"
#include "ridge/train/store/evaluation_pictures.h"

namespace ridge {
namespace {

TEST(GraphNodesTest, NamesAreBoxesAndInputsAreNodes) {
  const auto graph = ParseGraph(
      "graph net\n"
      "  x = input f32[2,4]\n"
      "  fc.weight = parameter f32[4,3]\n"
      "  fc = matmul(x, fc.weight)\n"
      "  relu_7 = relu(fc)\n"
      "  values, places = top_k(relu_7, k=2)\n"
      "  y = add(values, values)\n"
      "  output y\n",
      "net");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const std::vector<GraphNode> nodes = GraphNodes(*graph);
  std::set<std::string> names;
  for (const GraphNode& node : nodes) EXPECT_TRUE(names.insert(node.name).second) << node.name;
  EXPECT_TRUE(names.contains("fc/weight"));
  EXPECT_TRUE(names.contains("x")) << "beside the boxes";
  EXPECT_TRUE(names.contains("fc/(fc)")) << "a box and a node of one name";
  for (const GraphNode& node : nodes) {
    for (const std::string& input : node.inputs)
      EXPECT_TRUE(names.contains(input.substr(0, input.find(':')))) << input;
  }
  const auto matmul = std::find_if(nodes.begin(), nodes.end(),
                                   [](const GraphNode& node) { return node.op == "matmul"; });
  ASSERT_NE(matmul, nodes.end());
  EXPECT_EQ(matmul->inputs, (std::vector<std::string>{"x", "fc/weight"}));
  EXPECT_EQ(matmul->shapes, (std::vector<Dims>{{2, 3}}));
}

TEST(EvaluationPicturesTest, TheMatrixIsDarkWhereARowLies) {
  EvaluationRecord record;
  record.classes.resize(2);
  record.confusion = {4, 0, 1, 1};
  std::optional<RgbPicture> picture = ConfusionPicture(record);
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->size, (ImageSize{320, 320}));
  EXPECT_EQ(picture->At(10, 10)[0], 8);     // all of the first row
  EXPECT_EQ(picture->At(10, 300)[0], 255);  // none of it
  EXPECT_EQ(picture->At(300, 10)[0], 132);  // half of the second
  EXPECT_EQ(picture->At(300, 300)[0], 132);
  record.confusion.clear();
  EXPECT_FALSE(ConfusionPicture(record));
}

}  // namespace
}  // namespace ridge
