#include "tests/generate/draw.h"

#include "ridge/graph/passes/passes.h"
#include "tests/generate/families.h"

namespace ridge {
namespace {

struct Family {
  int weight;
  void (*draw)(Sketch&);
};

constexpr Family kFamilies[] = {{10, DrawUnary},
                                {10, DrawBinary},
                                {4, DrawSelect},
                                {1, DrawBackwardPointwise},
                                {3, DrawCase},
                                {6, DrawReshape},
                                {6, DrawTranspose},
                                {4, DrawSlice},
                                {3, DrawExpand},
                                {2, DrawPad},
                                {3, DrawConcat},
                                {3, DrawSplit},
                                {6, DrawReduce},
                                {2, DrawScan},
                                {4, DrawSoftmax},
                                {1, DrawDet},
                                {1, DrawCtc},
                                {5, DrawMatmul},
                                {7, DrawLinear},
                                {7, DrawConv},
                                {2, DrawTransposedConv},
                                {1, DrawConvOfGradients},
                                {4, DrawPool},
                                {2, DrawConvPool},
                                {2, DrawInterpolate},
                                {1, DrawRegions},
                                {5, DrawBatchNorm},
                                {4, DrawLayerNorm},
                                {3, DrawNormNodes},
                                {3, DrawActivationNodes},
                                {3, DrawAttention},
                                {4, DrawAttentionNodes},
                                {3, DrawGather},
                                {2, DrawScatter},
                                {1, DrawTopK},
                                {3, DrawRecurrent},
                                {2, DrawRandom},
                                {5, DrawViewReadTwice},
                                {6, DrawResidual},
                                {4, DrawAgain},
                                {2, DrawAxialAttention}};

void DrawOne(Sketch& s) {
  int64_t all = 0;
  for (const Family& family : kFamilies) all += family.weight;
  int64_t at = s.dice.Below(all);
  for (const Family& family : kFamilies) {
    at -= family.weight;
    if (at < 0) return family.draw(s);
  }
}

// Inputs of one to four dimensions, of which one is multiplied by something that is trained.
void Start(Sketch& s) {
  s.set_batch(s.dice.OneOf({1, 1, 1, 2, 3}));
  for (int64_t i = s.dice.From(1, 2); i > 0; --i) {
    Dims rest;
    for (int64_t rank = s.dice.From(0, 3); rank > 0; --rank)
      rest.push_back(s.dice.OneOf({1, 1, 2, 3, 4, 5}));
    s.Keep(s.Input(rest));
  }
  if (s.dice.Percent(50)) DrawLinear(s);
  if (s.dice.Percent(30)) s.Keep(s.Parameter({s.dice.From(1, 4), s.dice.From(1, 4)}));
}

// sum(v * c), mean(v^2), or the mean cross entropy of v's rows.
Value Term(Sketch& s, Value v) {
  const int64_t kind = s.dice.Below(10);
  if (kind == 0 && s.rank(v) > 0) {
    Dims labels = s.dims(v);
    const int64_t classes = labels.back();
    labels.pop_back();
    const bool from_input = !labels.empty() && labels[0] == s.batch();
    if (from_input) labels.erase(labels.begin());
    const Value label = from_input ? s.Labels(labels, classes) : s.Integers(labels, 0, classes - 1);
    const Value losses = s.Op("softmax_cross_entropy", {v, label});
    return s.Op("reduce_mean", {losses});
  }
  if (kind < 3) return s.Op("reduce_mean", {s.Op("square", {v})});
  return s.Op("reduce_sum", {s.Mul(v, s.Frozen(s.dims(v)))});
}

// Of what nobody reads, at most four values.
bool AddLoss(Sketch& s) {
  Value loss;
  int terms = 0;
  const std::vector<Value> kept = s.kept();
  for (size_t i = kept.size(); i-- > 0 && terms < 4;) {
    if (s.IsRead(kept[i])) continue;
    const Value term = Term(s, kept[i]);
    if (!term.valid()) continue;
    loss = loss.valid() ? s.Add(loss, term) : term;
    ++terms;
    if (!loss.valid()) return false;
  }
  if (!loss.valid()) return false;
  s.b().Output("loss", loss);
  return true;
}

bool Trains(const Graph& graph) {
  bool trains = false, reads = false;
  for (const ValueInfo& info : graph.values()) {
    trains = trains || (info.kind == ValueKind::kParameter && info.trainable);
    reads = reads || (info.kind == ValueKind::kInput && info.name != "rng");
  }
  return trains && reads;
}

}  // namespace

Graph DrawGraph(uint64_t seed) {
  for (uint64_t attempt = 0;; ++attempt) {
    Sketch s(seed + (attempt << 40));
    Start(s);
    for (int64_t count = s.dice.From(2, 12); count > 0; --count) DrawOne(s);
    if (!AddLoss(s)) continue;
    Result<Graph> graph = KeepNeeded(s.b().graph());
    RIDGE_CHECK(graph.ok(), graph.status().message());
    if (Trains(*graph)) return *std::move(graph);
  }
}

}  // namespace ridge
