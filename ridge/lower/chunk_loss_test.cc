// Logits of some rows at a time: the same results, whatever else the step computes of them.
#include "ridge/lower/chunk_loss.h"

#include <gtest/gtest.h>

#include "ridge/graph/test_results.h"

namespace ridge {
namespace {

Graph Chunked(const std::string& text, int64_t chunks) {
  Result<ChunkedLoss> chunked = ChunkLoss(ParsedGraph(text), chunks);
  EXPECT_TRUE(chunked.ok()) << chunked.status().message();
  return std::move(chunked->graph);
}

// But for how sums over rows are rounded.
void ExpectSame(const std::string& text, int64_t chunks) {
  const Graph chunked = Chunked(text, chunks);
  ASSERT_TRUE(CheckGraph(chunked).ok()) << PrintGraph(chunked);
  const auto whole = TestResults(ParsedGraph(text), {3, 1}), parts = TestResults(chunked, {3, 1});
  for (const auto& [name, tensor] : whole) {
    for (int64_t i = 0; i < tensor.elements(); ++i)
      ASSERT_NEAR(tensor.at(i), parts.at(name).at(i), 1e-12) << name << "\n" << PrintGraph(chunked);
  }
}

std::optional<ChunkableLogits> LogitsOf(const std::string& text) {
  const Result<ChunkedLoss> found = ChunkLoss(ParsedGraph(text), /*chunks=*/1);
  EXPECT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(PrintGraph(found->graph), PrintGraph(ParsedGraph(text)));
  return found->logits;
}

int64_t RowsOf(const std::string& text) {
  const std::optional<ChunkableLogits> logits = LogitsOf(text);
  return logits ? logits->rows : 0;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// A head as autodiff leaves it, with what metrics and the optimizer read.
constexpr char kStep[] = R"(graph g
  x = input f64[4,3,2]
  w = input f64[2,5]
  label = input i64[4,3]
  logits = matmul(x, w)
  losses = softmax_cross_entropy(logits, label, ignore_index=-1)
  best = argmax(logits, axis=2)
  loss = reduce_sum(losses, axes=[0, 1])
  one = constant f64[] [1.0]
  dlosses = expand(one, dims=[4, 3])
  dlogits = softmax_cross_entropy_grad(logits, label, dlosses, ignore_index=-1)
  dx = matmul(dlogits, w, transpose_b=1)
  rows = reshape(x, dims=[12, 2])
  drows = reshape(dlogits, dims=[12, 5])
  dw = matmul(rows, drows, transpose_a=1)
  output loss
  output best
  output dx
  output dw
)";

TEST(ChunkLoss, ComputesTheLogitsOfAFewRowsAtATime) {
  EXPECT_EQ(PrintGraph(Chunked(kStep, 2)), R"(graph g
  x = input f64[4,3,2]
  w = input f64[2,5]
  label = input i64[4,3]
  x.chunk0 = slice(x, axes=[0], ends=[2], starts=[0])
  logits.chunk0 = matmul(x.chunk0, w)
  label.chunk0 = slice(label, axes=[0], ends=[2], starts=[0])
  losses.chunk0 = softmax_cross_entropy(logits.chunk0, label.chunk0, ignore_index=-1)
  best.chunk0 = argmax(logits.chunk0, axis=2)
  one = constant f64[] 1.0
  dlosses = expand(one, dims=[4,3])
  dlosses.chunk0 = slice(dlosses, axes=[0], ends=[2], starts=[0])
  dlogits.chunk0 = softmax_cross_entropy_grad(logits.chunk0, label.chunk0, dlosses.chunk0, ignore_index=-1)
  dx.chunk0 = matmul(dlogits.chunk0, w, transpose_b=1)
  drows.chunk0 = reshape(dlogits.chunk0, dims=[6,5])
  rows.chunk0 = reshape(x.chunk0, dims=[6,2])
  dw.chunk0 = matmul(rows.chunk0, drows.chunk0, transpose_a=1)
  x.chunk1 = slice(x, axes=[0], ends=[4], starts=[2])
  logits.chunk1 = matmul(x.chunk1, w)
  label.chunk1 = slice(label, axes=[0], ends=[4], starts=[2])
  losses.chunk1 = softmax_cross_entropy(logits.chunk1, label.chunk1, ignore_index=-1)
  best.chunk1 = argmax(logits.chunk1, axis=2)
  dlosses.chunk1 = slice(dlosses, axes=[0], ends=[4], starts=[2])
  dlogits.chunk1 = softmax_cross_entropy_grad(logits.chunk1, label.chunk1, dlosses.chunk1, ignore_index=-1)
  dx.chunk1 = matmul(dlogits.chunk1, w, transpose_b=1)
  drows.chunk1 = reshape(dlogits.chunk1, dims=[6,5])
  rows.chunk1 = reshape(x.chunk1, dims=[6,2])
  dw.chunk1 = matmul(rows.chunk1, drows.chunk1, transpose_a=1)
  dw = add(dw.chunk0, dw.chunk1)
  losses = concat(losses.chunk0, losses.chunk1, axis=0)
  best = concat(best.chunk0, best.chunk1, axis=0)
  dx = concat(dx.chunk0, dx.chunk1, axis=0)
  loss = reduce_sum(losses, axes=[0,1])
  output loss
  output best
  output dx
  output dw
)");
}

TEST(ChunkLoss, ComputesWhatWholeLogitsGive) {
  EXPECT_EQ(RowsOf(kStep), 4);
  ExpectSame(kStep, 2);
  ExpectSame(kStep, 4);
}

// A bias with its gradient, a cap of the logits, labels of all tokens but the first, and smoothing.
TEST(ChunkLoss, TakesWhatElseIsMadeOfRows) {
  const std::string text = R"(graph g
  x = input f64[4,3,2]
  w = input f64[2,5]
  b = input f64[5]
  label = input i64[4,2]
  product = matmul(x, w, b)
  whole = tanh(product)
  logits = slice(whole, axes=[1], starts=[0], ends=[2])
  losses = softmax_cross_entropy(logits, label, ignore_index=-1)
  p = log_softmax(logits)
  smooth = reduce_mean(p, axes=[2])
  weights = exp(label_f)
  dlosses = mul(weights, weights)
  part = softmax_cross_entropy_grad(logits, label, dlosses, ignore_index=-1)
  more = softmax(logits)
  dlogits = add(part, more)
  dwhole = pad(dlogits, before=[0, 0, 0], after=[0, 1, 0])
  square = mul(whole, whole)
  kept = sub(dwhole, square)
  dproduct = mul(kept, dwhole)
  dx = matmul(dproduct, w, transpose_b=1)
  rows = reshape(x, dims=[12, 2])
  drows = reshape(dproduct, dims=[12, 5])
  dw = matmul(drows, rows, transpose_a=1)
  db = reduce_sum(drows, axes=[0])
  output losses
  output smooth
  output dx
  output dw
  output db
)";
  const std::string step =
      Replaced(text, "  weights = exp(label_f)\n",
               "  label_f = cast(label, to=\"f64\")\n  weights = exp(label_f)\n");
  EXPECT_EQ(RowsOf(step), 4);
  ExpectSame(step, 2);
  ExpectSame(step, 4);
}

// The rows of a matrix, and those of one sample.
TEST(ChunkLoss, CutsTheFirstDimensionOfRows) {
  for (const std::string dims : {"6", "1,6"}) {
    const std::string text = R"(graph g
  x = input f64[)" + dims + R"(,2]
  w = input f64[2,5]
  label = input i64[)" + dims +
                             R"(]
  logits = matmul(x, w)
  losses = softmax_cross_entropy(logits, label, ignore_index=-1)
  output losses
)";
    EXPECT_EQ(RowsOf(text), 6);
    ExpectSame(text, 3);
  }
}

TEST(ChunkLoss, LeavesOtherLogits) {
  // An output, a reader of columns, loss weights that all losses decide, and one row.
  EXPECT_EQ(RowsOf(Replaced(kStep, "  output loss\n", "  output loss\n  output logits\n")), 0);
  EXPECT_EQ(RowsOf(Replaced(kStep, "best = argmax(logits, axis=2)",
                            "best = reduce_max(logits, axes=[0])")),
            0);
  EXPECT_EQ(RowsOf(Replaced(kStep, "dlosses = expand(one, dims=[4, 3])", "dlosses = exp(losses)")),
            0);
  EXPECT_EQ(RowsOf(R"(graph g
  x = input f64[1,2]
  w = input f64[2,5]
  label = input i64[1]
  logits = matmul(x, w)
  losses = softmax_cross_entropy(logits, label)
  output losses
)"),
            0);
  // Not of a product.
  EXPECT_EQ(RowsOf(R"(graph g
  x = input f64[4,5]
  label = input i64[4]
  logits = exp(x)
  losses = softmax_cross_entropy(logits, label)
  output losses
)"),
            0);
}

TEST(ChunkLoss, CutsIntoNoFewerChunksThanAskedFor) {
  EXPECT_EQ(PrintGraph(Chunked(kStep, 3)), PrintGraph(Chunked(kStep, 4)));
  EXPECT_EQ(PrintGraph(Chunked(kStep, 9)), PrintGraph(Chunked(kStep, 4)));
}

// Of 67 samples there are 67 chunks: of their tokens six, that no chunk of a reshaped value is a
// range of.
std::string ManySamples() {
  std::string text = kStep;
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"x = input f64[4,3,2]", "x = input f64[67,6,2]"},
           {"label = input i64[4,3]", "label = input i64[67,6]"},
           {"dims=[4, 3]", "dims=[67, 6]"},
           {"reshape(x, dims=[12, 2])", "reshape(x, dims=[402, 2])"},
           {"reshape(dlogits, dims=[12, 5])", "reshape(dlogits, dims=[402, 5])"}})
    text = Replaced(text, from, to);
  return text;
}

TEST(ChunkLoss, CutsTokensWhereSamplesGiveTooManyChunks) {
  EXPECT_EQ(LogitsOf(ManySamples())->rows, 67);
  EXPECT_EQ(LogitsOf(ManySamples())->tokens, 6);
  const std::string cut = PrintGraph(Chunked(ManySamples(), 2));
  for (const char* part :
       {"label.chunk1 = slice(label, axes=[1], ends=[6], starts=[3])",
        "drows.chunk1 = reshape(dlogits.chunk1, dims=[201,5])",
        "rows.chunk1 = reshape(x.chunk1, dims=[201,2])",
        "dx = concat(dx.chunk0, dx.chunk1, axis=1)", "dw = add(dw.chunk0, dw.chunk1)"})
    EXPECT_NE(cut.find(part), std::string::npos) << part << "\n" << cut;
  for (const int64_t chunks : {2, 3, 6}) ExpectSame(ManySamples(), chunks);
  EXPECT_EQ(PrintGraph(Chunked(ManySamples(), 4)), PrintGraph(Chunked(ManySamples(), 6)));
  ExpectSame(ManySamples(), 67);  // samples
}

// Tokens of all samples are no range of the flat rows.
TEST(ChunkLoss, CutsTokensOfAViewOfFlatRowsWhereTheyAreRanges) {
  const std::string step =
      Replaced(ManySamples(), "x = input f64[67,6,2]",
               "flat = input f64[402,2]\n  x = reshape(flat, dims=[67, 6, 2])");
  EXPECT_EQ(LogitsOf(step)->tokens, 6);
  for (const int64_t chunks : {2, 3, 6, 67}) ExpectSame(step, chunks);
}

// A result of which no chunk is a range, a flat view of tokens that is computed, and labels by
// tokens.
TEST(ChunkLoss, LeavesTokensThatAreNoRanges) {
  const std::string step = ManySamples();
  EXPECT_EQ(LogitsOf(Replaced(step, "  output dw\n",
                              "  flat = reduce_sum(drows, axes=[1])\n  output dw\n  output flat\n"))
                ->tokens,
            1);
  EXPECT_EQ(LogitsOf(Replaced(step, "rows = reshape(x, dims=[402, 2])",
                              "view = reshape(x, dims=[402, 2])\n  rows = exp(view)"))
                ->tokens,
            1);
  EXPECT_EQ(LogitsOf(Replaced(step, "best = argmax(logits, axis=2)",
                              "best = reduce_max(logits, axes=[1])"))
                ->tokens,
            1);
}

TEST(ChunkLoss, CountsChunksOfSamplesBeforeThoseOfTokens) {
  EXPECT_EQ(CountOfChunks({.rows = 22, .tokens = 1024}, 4), 11);
  EXPECT_EQ(CountOfChunks({.rows = 22, .tokens = 1024}, 12), 22);
  EXPECT_EQ(CountOfChunks({.rows = 67, .tokens = 1024}, 4), 4);
  EXPECT_EQ(CountOfChunks({.rows = 67, .tokens = 1024}, 67), 67);
  EXPECT_EQ(CountOfChunks({.rows = 67, .tokens = 3}, 4), 67);
  EXPECT_EQ(CountOfChunks({.rows = 2, .tokens = 1024}, 4), 2);
}

// Each sample against all: the rows of one operand, and all of the other.
constexpr char kSimilarity[] = R"(graph g
  x = input f64[4,2]
  y = input f64[4]
  label = input i64[4]
  raw = matmul(x, x, transpose_b=1)
  scores = mul(raw, y)
  losses = softmax_cross_entropy(scores, label, ignore_index=-1)
  output losses
)";

TEST(ChunkLoss, CutsAnOperandThatIsReadByRowsAndAsAWhole) {
  EXPECT_EQ(RowsOf(kSimilarity), 4);
  ExpectSame(kSimilarity, 2);
  const std::string normed = Replaced(kSimilarity, "  raw =", "  z = tanh(x)\n  raw =");
  ExpectSame(Replaced(normed, "matmul(x, x", "matmul(z, z"), 2);
}

// Losses of all rows beside each column, and products of logits with each other.
TEST(ChunkLoss, LeavesWhatReadsItsResultsAsAWhole) {
  EXPECT_EQ(RowsOf(Replaced(kSimilarity, "  output losses\n",
                            "  more = mul(scores, losses)\n  output losses\n  output more\n")),
            0);
  EXPECT_EQ(RowsOf(Replaced(kSimilarity, "  output losses\n",
                            "  gram = matmul(scores, scores, transpose_b=1)\n  output losses\n"
                            "  output gram\n")),
            0);
}

TEST(ChunkLoss, TakesTheLargestLogits) {
  const std::string text = R"(graph g
  x = input f64[4,2]
  v = input f64[2,3]
  w = input f64[2,5]
  label = input i64[4]
  small = matmul(x, v)
  small_losses = softmax_cross_entropy(small, label, ignore_index=-1)
  large = matmul(x, w)
  large_losses = softmax_cross_entropy(large, label, ignore_index=-1)
  output small_losses
  output large_losses
)";
  EXPECT_EQ(LogitsOf(text)->bytes, 4 * 5 * 8);
  ExpectSame(text, 2);
}

}  // namespace
}  // namespace ridge
