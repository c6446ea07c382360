#include <numbers>

#include "tests/generate/families.h"

namespace ridge {

void DrawBatchNorm(Sketch& s) {
  const Value x = s.AnyOfRank(2, 4);
  if (!x.valid() || s.rank(x) < 2) return;
  const Dims row = {s.extent(x, 1)};
  // A variance close to 0 blows rounding up.
  const AttrMap attrs = {{"epsilon", s.dice.Percent(50) ? 1e-2 : 0.1}};
  const Value scale = s.Parameter(row), shift = s.Parameter(row);
  Value y;
  if (s.dice.Percent(50)) {
    y = s.Op("batch_norm_inference",
             {x, scale, shift, s.Statistic(row, -1, 1), s.Statistic(row, 0.5, 2)}, attrs);
  } else {
    const std::vector<Value> outputs = s.Outputs("batch_norm", {x, scale, shift}, attrs);
    y = outputs[0];
    if (!y.valid()) return;
    const Value running = s.Statistic(row, -1, 1);
    s.UpdateStatistic(running, s.Add(s.Times(running, 0.9), s.Times(outputs[1], 0.1)));
    if (s.dice.Percent(10)) s.Keep(outputs[1 + s.dice.Below(2)]);
  }
  s.Keep(s.dice.Percent(50) ? RandomActivation(s, y) : y);
}

namespace {

Dims Tail(const Dims& dims, int64_t axis) { return Dims(dims.begin() + axis, dims.end()); }

}  // namespace

void DrawLayerNorm(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Percent(70) ? s.rank(x) - 1 : s.dice.Below(s.rank(x));
  const Dims row = Tail(s.dims(x), axis);
  const bool root = s.dice.Percent(40);
  std::vector<Value> inputs = {x};
  if (s.dice.Percent(70)) inputs.push_back(s.Parameter(row));
  if (!root && inputs.size() == 2 && s.dice.Percent(70)) inputs.push_back(s.Parameter(row));
  const AttrMap attrs = {{"axis", s.dice.Percent(50) ? axis : axis - s.rank(x)},
                         {"epsilon", s.dice.Percent(50) ? 1e-2 : 0.1}};
  s.Keep(s.Outputs(root ? "rms_norm" : "layer_norm", inputs, attrs)[0]);
}

// As exporters write them, in a few spellings; now and then something else reads a part.
void DrawNormNodes(Sketch& s) {
  const Value x = s.AnyOfRank(1, 3);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Percent(80) ? s.rank(x) - 1 : s.dice.Below(s.rank(x));
  std::vector<int64_t> axes;
  for (int64_t d = axis; d < s.rank(x); ++d) axes.push_back(d);
  const AttrMap mean = {{"axes", axes}, {"keep_dims", 1}};
  const bool root = s.dice.Percent(40);
  const Value d = root ? x : s.Sub(x, s.Op("reduce_mean", {x}, mean));
  const int64_t spelling = s.dice.Below(3);
  const Value square = spelling == 0   ? s.Op("square", {d})
                       : spelling == 1 ? s.Mul(d, d)
                                       : s.Op("pow", {d, s.Scalar(2)});
  const Value variance = s.Plus(s.Op("reduce_mean", {square}, mean), s.dice.Between(0.01, 0.1));
  Value y =
      s.dice.Percent(50) ? s.Div(d, s.Op("sqrt", {variance})) : s.Mul(d, s.Op("rsqrt", {variance}));
  const Dims row = Tail(s.dims(x), axis);
  if (s.dice.Percent(60)) y = s.Mul(y, s.Parameter(row));
  if (s.dice.Percent(60)) y = s.Add(y, s.Parameter(row));
  s.Keep(y);
  if (s.dice.Percent(15)) s.Keep(variance);
  if (s.dice.Percent(10)) s.Keep(d);
}

void DrawActivationNodes(Sketch& s) {
  const Value x = s.Any();
  const int64_t kind = s.dice.Below(3);
  if (kind == 0) return s.Keep(s.Mul(x, s.Op("sigmoid", {x})));
  Value inner;
  if (kind == 1) {
    inner = s.Op("erf", {s.dice.Percent(50) ? s.Times(x, 1 / std::numbers::sqrt2)
                                            : s.Div(x, s.Scalar(std::numbers::sqrt2))});
  } else {
    const Value cube = s.dice.Percent(50) ? s.Mul(s.Mul(x, x), x) : s.Op("pow", {x, s.Scalar(3)});
    inner =
        s.Op("tanh", {s.Times(s.Add(x, s.Times(cube, 0.044715)), std::sqrt(2 / std::numbers::pi))});
  }
  const Value one_more = s.Plus(inner, 1);
  const Value y =
      s.dice.Percent(50) ? s.Times(s.Mul(x, one_more), 0.5) : s.Mul(s.Times(x, 0.5), one_more);
  s.Keep(y);
  if (s.dice.Percent(10)) s.Keep(one_more);
}

}  // namespace ridge
