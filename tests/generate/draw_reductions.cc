#include "tests/generate/families.h"

namespace ridge {

void DrawReduce(Sketch& s) {
  const Value x = s.Any();
  const std::string op = s.dice.OneOf({"reduce_sum", "reduce_mean", "reduce_mean", "reduce_max",
                                       "reduce_min", "reduce_prod", "reduce_log_sum_exp"});
  std::vector<int64_t> axes;
  for (int axis = 0; axis < s.rank(x); ++axis) {
    if (s.dice.Percent(40)) axes.push_back(s.dice.Percent(20) ? axis - s.rank(x) : axis);
  }
  const bool bounded = op == "reduce_prod";
  const Value in = bounded ? s.Within(x, -1.5, 1.5) : x;
  const Value y = s.Op(op.c_str(), {in}, {{"axes", axes}, {"keep_dims", s.dice.Below(2)}});
  s.Keep(y);
  if (!y.valid() || s.dice.Percent(60)) return;
  if (BroadcastDims(s.dims(x), s.dims(y)).ok())
    s.Keep(s.Op(s.dice.Percent(50) ? "sub" : "mul", {x, y}));
}

void DrawScan(Sketch& s) {
  const Value x = s.AnyOfRank(1, 3);
  if (!x.valid()) return;
  const bool product = s.dice.Percent(50);
  s.Keep(s.Op(product ? "cumprod" : "cumsum", {product ? s.Within(x, -1.5, 1.5) : x},
              {{"axis", s.dice.Below(s.rank(x))},
               {"exclusive", s.dice.Below(2)},
               {"reverse", s.dice.Below(2)}}));
}

void DrawSoftmax(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Percent(50) ? -1 : s.dice.Below(s.rank(x));
  if (s.dice.Percent(25) && s.rank(x) >= 2) {
    Dims rows = s.dims(x);
    const int64_t classes = rows.back();
    rows.pop_back();
    const Value labels = s.Integers(rows, 0, classes - 1);
    const AttrMap attrs = {{"ignore_index", s.dice.Percent(30) ? int64_t{0} : int64_t{-100}}};
    if (s.dice.Percent(15))
      return s.Keep(s.Op("softmax_cross_entropy_grad", {x, labels, s.Parameter(rows)}, attrs));
    return s.Keep(s.Op("softmax_cross_entropy", {x, labels}, attrs));
  }
  s.Keep(s.Op(s.dice.Percent(70) ? "softmax" : "log_softmax", {x}, {{"axis", axis}}));
}

// Two frames for each target at least: every target has an alignment.
void DrawCtc(Sketch& s) {
  const Value x = s.AnyOfRank(3, 3);
  if (!x.valid() || s.dims(x)[1] < 2 || s.dims(x)[2] < 2) return;
  const int64_t batch = s.dims(x)[0], frames = s.dims(x)[1], classes = s.dims(x)[2];
  const int64_t most = frames / 2;
  const Value targets = s.Integers({batch, most}, 1, classes - 1);
  const Value frames_of = s.Integers({batch}, frames, frames);
  const Value lengths = s.Integers({batch}, s.dice.Below(most + 1), most);
  s.Keep(s.Op("ctc_loss", {x, targets, frames_of, lengths}));
}

void DrawDet(Sketch& s) {
  const int64_t n = s.dice.From(1, 3);
  const Value x = s.Any();
  const int64_t count = s.elements(x) / (n * n);
  if (count == 0) return;
  const Value flat = s.Reshape(x, {-1});
  s.Keep(s.Op("det", {s.Reshape(s.Slice(flat, 0, 0, count * n * n), {count, n, n})}));
}

}  // namespace ridge
