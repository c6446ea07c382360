#include "ridge/graph/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ridge/graph/base64.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/suggest.h"
#include "ridge/graph/text_attr.h"
#include "ridge/graph/verify.h"

namespace ridge {
namespace {

constexpr const char* kTraining = R"(graph mlp
  x = input f32[batch=4,3]
  labels = input i64[batch=4]
  w = parameter f32[5,3] init=uniform(0.5)
  frozen = parameter f32[5] init=normal(0.02) frozen=1
  s = state f32[5,3] init=zeros role=optimizer
  started = state f64[2] init=values(1.5, -0.0)
  c = constant f32[2] [0.5, 1.0]
  one = constant i64[] -9223372036854775808
  h = matmul(x, w, frozen, transpose_b=1)
  r = relu(h)
  "name with space" = clip(r, max=6.0, min=-1e-07)
  y, "y.mean 2", v = batch_norm("name with space", frozen, frozen)
  q = matmul(x, w, _, r, epilogue="add", transpose_b=1)
  losses = softmax_cross_entropy(q, labels)
  loss = reduce_mean(losses)
  w.grad = mul(s, w) role=gradient
  output loss
  output logits = y
  update s = w.grad
)";

Graph Parse(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::string ErrorOf(const std::string& text) {
  const Result<Graph> graph = ParseGraph(text, "net.ridge");
  EXPECT_FALSE(graph.ok()) << text;
  if (graph.ok()) return "";
  EXPECT_EQ(graph.status().code(), ErrorCode::kInvalidModel);
  return graph.status().message();
}

std::string PrintedAgain(const std::string& text) { return PrintGraph(Parse(text)); }

TEST(GraphText, PrintsWhatItRead) { EXPECT_EQ(PrintedAgain(kTraining), kTraining); }

TEST(GraphText, ReadsAGraphThatPassesTheChecker) {
  const Status status = CheckGraph(Parse(kTraining));
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(GraphText, KeepsKindsRolesAndTypes) {
  const Graph graph = Parse(kTraining);
  EXPECT_EQ(graph.value(graph.FindValue("s")).role, ValueRole::kOptimizer);
  EXPECT_EQ(graph.value(graph.FindValue("w.grad")).role, ValueRole::kGradient);
  EXPECT_FALSE(graph.value(graph.FindValue("frozen")).trainable);
  EXPECT_TRUE(graph.value(graph.FindValue("w")).trainable);
  EXPECT_EQ(graph.type(graph.FindValue("y")), (TensorType{DType::kF32, {4, 5}}));
  EXPECT_EQ(graph.value(graph.FindValue("x")).dim_names, (std::vector<std::string>{"batch", ""}));
  EXPECT_EQ(graph.value(graph.FindValue("one")).constant.as<int64_t>()[0],
            std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(std::signbit(graph.value(graph.FindValue("started")).init.tensor.at(1)));
  EXPECT_EQ(graph.nodes()[0].location, "line 10");
}

TEST(GraphText, CommentsBlanksAndLinesWithinBracketsMeanNothing) {
  EXPECT_EQ(PrintedAgain("# a comment\n\ngraph g # name\r\n x = input f32[2, # two\n  3]\n\n"
                         "y = relu(\n  x\n)# end\noutput y"),
            "graph g\n  x = input f32[2,3]\n  y = relu(x)\n  output y\n");
}

TEST(GraphText, KeywordsMayBeNames) {
  const std::string text =
      "graph graph\n  input = input f32[2]\n  output = relu(input)\n  update, m, v = "
      "batch_norm(output2, input, input)\n";
  EXPECT_EQ(PrintedAgain("graph\n output = input f32[2]\n graph = relu(output)\n output graph\n"
                         " output output = graph\n"),
            "graph graph\n  output = input f32[2]\n  graph = relu(output)\n  output graph\n"
            "  output output = graph\n");
  EXPECT_THAT(ErrorOf(text), testing::HasSubstr("'output2' is not defined"));
}

TEST(GraphText, TrueAndIntegersFitWhereTheyAreDeclared) {
  EXPECT_EQ(PrintedAgain("graph g\n x = input f32[2,2]\n y = matmul(x, x, transpose_b=true)\n"
                         " z = clip(y, min=0)\n"),
            "graph g\n  x = input f32[2,2]\n  y = matmul(x, x, transpose_b=1)\n"
            "  z = clip(y, min=0.0)\n");
}

TEST(GraphText, OpenDimensionsAreMarkedUntilTheyAreBound) {
  const std::string text =
      "graph g\n  x = input f32[batch,3]\n  y = input f32[batch,1]\n  z = add(x, y)\n  output z\n";
  const Graph graph = Parse(text);
  EXPECT_EQ(UnboundDims(graph), std::vector<std::string>{"batch"});
  EXPECT_EQ(PrintGraph(graph), text);
  const Result<Graph> bound = BindDims(graph, {{"batch", 7}});
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(PrintGraph(*bound),
            "graph g\n  x = input f32[batch=7,3]\n  y = input f32[batch=7,1]\n  z = add(x, y)\n"
            "  output z\n");
}

TEST(GraphText, LaterUsesOfADimensionTakeItsExtent) {
  EXPECT_EQ(PrintedAgain("graph g\n x = input f32[batch=5]\n y = input i64[batch]\n"),
            "graph g\n  x = input f32[batch=5]\n  y = input i64[batch=5]\n");
  EXPECT_EQ(ErrorOf("graph g\n x = input f32[batch=5]\n y = input i64[batch=6]\n"),
            "net.ridge:3: the dimension 'batch' is 5 at line 2 and 6 here");
}

TEST(GraphText, TensorsKeepTheirBits) {
  const float floats[] = {0.1F,          -0.0F,       1e-45F,
                          3.4028235e38F, 16777216.0F, std::numeric_limits<float>::infinity()};
  GraphBuilder b("bits");
  b.Constant(Tensor::FromFloats({6}, floats), "few");
  b.Constant(Tensor(TensorType{DType::kBF16, {100}}), "many");
  b.Constant(Tensor(TensorType{DType::kF32, {0, 3}}), "none");
  Tensor odd(TensorType{DType::kF32, {1}});
  odd.as_mutable<uint32_t>()[0] = 0xFFC00001;  // a NaN with a sign and a payload
  b.Constant(odd, "odd");
  const Graph again = Parse(PrintGraph(b.graph()));
  for (const ValueInfo& value : b.graph().values()) {
    const ValueId id = again.FindValue(value.name);
    ASSERT_NE(id, kNoValue);
    EXPECT_TRUE(again.value(id).constant.same_bits(value.constant)) << value.name;
  }
  EXPECT_EQ(PrintGraph(again), PrintGraph(b.graph()));
}

TEST(GraphText, EveryF16AndBF16ReadsBackTheSame) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (uint32_t bits = 0; bits < 0x10000; bits += 7) {
      Tensor tensor(TensorType{dtype, {1}});
      tensor.as_mutable<uint16_t>()[0] = static_cast<uint16_t>(bits);
      const std::string text = PrintAttr(Attr(tensor));
      const Result<Attr> again = ParseAttr(text);
      ASSERT_TRUE(again.ok()) << text;
      ASSERT_TRUE(SameAttr(*again, Attr(tensor))) << text;
    }
  }
}

TEST(AttrText, EveryKindReadsBackTheSame) {
  const Graph inner = Parse(kTraining);
  const std::vector<Attr> attrs = {
      int64_t{-3},
      0.1,
      1.0,
      1e300,
      5e-324,
      -std::numeric_limits<double>::infinity(),
      std::string("a \"quoted\"\n\ttext \\ \x01 \xc3\xa9"),
      std::vector<int64_t>{},
      std::vector<int64_t>{1, -2},
      std::vector<double>{0.5, 2.0},
      Tensor::Scalar(DType::kF64, 0.3),
      std::make_shared<const Graph>(inner),
      std::shared_ptr<const Graph>(),
  };
  for (const Attr& attr : attrs) {
    const std::string text = PrintAttr(attr);
    const Result<Attr> again = ParseAttr(text);
    ASSERT_TRUE(again.ok()) << text << ": " << again.status().message();
    EXPECT_TRUE(SameAttr(*again, attr)) << text;
    EXPECT_EQ(PrintAttr(*again), text);
  }
}

TEST(AttrText, RefusesWhatIsNoAttribute) {
  for (const char* text : {"",
                           "[1,",
                           "[1 2]",
                           "1 2",
                           "\"open",
                           "\"\\q\"",
                           "99999999999999999999",
                           "1e999",
                           "abc",
                           "[[1]]",
                           "{ graph g",
                           "tensor f32[2] [1]",
                           "tensor f32[1] base64(\"AAA\")",
                           "tensor u8[1] [300]",
                           "tensor i32[1] [1.5]",
                           "tensor f32[99999999,99999999] [1]",
                           "3x",
                           "-",
                           "{graph a\n}}",
                           "@",
                           "\"\\"}) {
    EXPECT_FALSE(ParseAttr(text).ok()) << text;
  }
}

TEST(AttrText, SubgraphsNestOnlySoDeep) {
  std::string text = "{graph g\n}";
  // matmul takes no subgraph, but its arguments are read before they are checked.
  for (int i = 0; i < 20; ++i) text = "{graph g\nx = input f32[1]\ny = relu(x, a=" + text + ")\n}";
  const Result<Attr> attr = ParseAttr(text);
  ASSERT_FALSE(attr.ok());
  EXPECT_EQ(attr.status().message(), "subgraphs are nested more than 8 deep");
}

TEST(Base64, ReadsWhatItWrites) {
  const std::vector<std::pair<std::vector<uint8_t>, std::string>> known = {
      {{}, ""}, {{'f'}, "Zg=="}, {{'f', 'o'}, "Zm8="}, {{'f', 'o', 'o'}, "Zm9v"}};  // RFC 4648
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
  for (const char* bad : {"Zg=", "Z===", "Zh==", "Zm9v!AAA", "=AAA", "Zg==Zg=="}) {
    EXPECT_EQ(DecodeBase64(bad), std::nullopt) << bad;
  }
}

TEST(Suggestion, IsTheNearestName) {
  EXPECT_EQ(ClosestName("mtmul", {"mul", "matmul", "add"}), "matmul");
  EXPECT_EQ(ClosestName("rleu", {"reduce_sum", "relu"}), "relu");
  EXPECT_EQ(ClosestName("zzzzzz", {"relu", "add"}), "");
}

// Bytes are changed, dropped and doubled; the reader must answer, with a graph that holds or with
// an error.
TEST(GraphText, DamagedTextNeverBreaksTheReader) {
  std::mt19937 random(20240607);
  const std::string valid = kTraining;
  const std::string letters = "()[]{}=,;#\"\\_.-/0123456789eax \n\xff";
  for (int round = 0; round < 4000; ++round) {
    std::string text = valid;
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int e = 0; e < edits; ++e) {
      const size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      const uint32_t how = random() % 4;
      if (how == 0) text[at] = letter;
      if (how == 1) text.insert(at, 1, letter);
      if (how == 2) text.erase(at, 1 + random() % 8);
      if (how == 3) text.insert(at, text.substr(random() % text.size(), random() % 40));
    }
    const Result<Graph> graph = ParseGraph(text, "net.ridge");
    if (!graph.ok()) {
      ASSERT_THAT(graph.status().message(), testing::StartsWith("net.ridge:")) << text;
      continue;
    }
    const Status status = CheckGraph(*graph);
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << text;
    const std::string printed = PrintGraph(*graph);
    ASSERT_EQ(PrintedAgain(printed), printed);
  }
}

TEST(GraphText, AModelHasAnOutputOrAnUpdate) {
  const auto check = [](const std::string& text) {
    const Result<Graph> graph = ParseGraph(text, "net.ridge");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    const Status status = CheckComputes(*graph, "net.ridge");
    EXPECT_TRUE(status.ok() || status.code() == ErrorCode::kInvalidModel);
    return status.message();
  };
  EXPECT_EQ(check("graph"),
            "net.ridge: the graph is empty. hint: define values and end with a line 'output NAME'");
  EXPECT_EQ(check("graph g\n  x = input f32[2]\n  y = relu(x)\n"),
            "net.ridge: the graph has no output and no update, so there is nothing to compute. "
            "hint: end with a line 'output NAME'");
  EXPECT_EQ(check("graph g\n  x = input f32[2]\n  output x\n"), "");
  EXPECT_EQ(check("graph g\n  s = state f32[2]\n  t = neg(s)\n  update s = t\n"), "");
}

TEST(GraphText, AMegabyteIsRead) {
  std::string text = "graph long\n  x0 = input f32[8]\n";
  int count = 0;
  while (text.size() < 1000000) {
    text += "  x" + std::to_string(count + 1) + " = relu(x" + std::to_string(count) + ")\n";
    ++count;
  }
  const Graph graph = Parse(text);
  EXPECT_EQ(graph.nodes().size(), static_cast<size_t>(count));
}

TEST(CheckGraph, FindsWhatAPassCouldBreak) {
  const auto message = [](void (*damage)(Graph&)) {
    Graph graph = Parse("graph g\n x = input f32[2]\n s = state f32[2]\n y = relu(x)\n output y\n");
    damage(graph);
    return CheckGraph(graph).message();
  };
  EXPECT_EQ(message([](Graph&) {}), "");
  EXPECT_EQ(message([](Graph& g) { g.mutable_value(2).type.dims = {3}; }),
            "graph 'g': relu 'y' (line 4): output 'y' is f32[3]; the operator gives f32[2]");
  EXPECT_EQ(message([](Graph& g) { g.mutable_value(2).name = "x"; }),
            "graph 'g': two values are named 'x'");
  EXPECT_EQ(message([](Graph& g) { g.mutable_value(2).kind = ValueKind::kInput; }),
            "graph 'g': 'y' is no result, but a node writes it");
  EXPECT_EQ(message([](Graph& g) { g.AddOutput("y", 0); }), "graph 'g': two outputs are named 'y'");
  EXPECT_EQ(message([](Graph& g) { g.AddOutput("z", 9); }),
            "graph 'g': the output 'z' has no value");
  EXPECT_EQ(message([](Graph& g) { g.AddUpdate(0, 2); }),
            "graph 'g': 'x' is updated, but is no variable");
  EXPECT_EQ(message([](Graph& g) {
              g.AddUpdate(1, 2);
              g.AddUpdate(1, 0);
            }),
            "graph 'g': 's' is updated twice");
}

}  // namespace
}  // namespace ridge
