#include <array>

#include "tests/generate/families.h"

namespace ridge {

void DrawGather(Sketch& s) {
  const Value x =
      s.dice.Percent(30) ? s.Parameter({s.dice.From(1, 5), s.dice.From(1, 4)}) : s.AnyOfRank(1, 4);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Percent(50) ? 0 : s.dice.Below(s.rank(x));
  const int64_t extent = s.extent(x, static_cast<int>(axis));
  const Dims rows = s.dice.OneOf(std::vector<Dims>{{}, {1}, {3}, {2, 2}, {1, 2}});
  // Known ones are folded, and rewritten as slices.
  const int64_t kind = s.dice.Below(4);
  const std::array<int64_t, 1> known = {s.dice.From(-extent, extent - 1)};
  const Value index = kind == 0   ? s.Labels({s.dice.From(1, 2)}, extent)
                      : kind == 1 ? s.Constant(Tensor::FromInts({}, known))
                                  : s.Integers(rows, -extent, extent - 1);
  s.Keep(s.Op("gather", {x, index}, {{"axis", axis}}));
}

// Rows of x replaced or combined, and sums of rows at places.
void DrawScatter(Sketch& s) {
  const Value x = s.AnyOfRank(1, 3);
  if (!x.valid()) return;
  const int64_t count = s.dice.From(1, 3), extent = s.extent(x, 0);
  Dims dims = s.dims(x);
  if (s.dice.Percent(40)) {
    const int64_t axis = s.dice.Below(s.rank(x));
    dims[static_cast<size_t>(axis)] = s.dice.From(1, 4);
    const Value index =
        s.Integers({s.extent(x, static_cast<int>(axis))}, 0, dims[static_cast<size_t>(axis)] - 1);
    return s.Keep(s.Op("scatter_add", {index, x}, {{"dims", dims}, {"axis", axis}}));
  }
  dims[0] = count;
  const char* reduction = s.dice.OneOf({"none", "add", "mul", "max", "min"});
  s.Keep(s.Op("scatter", {x, s.Integers({count}, -extent, extent - 1), s.Parameter(dims)},
              {{"reduction", reduction}}));
}

void DrawTopK(Sketch& s) {
  const Value x = s.AnyOfRank(1, 3);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Below(s.rank(x)), extent = s.extent(x, static_cast<int>(axis));
  const std::vector<Value> best = s.Outputs(
      "top_k", {x}, {{"k", s.dice.From(1, extent)}, {"axis", axis}, {"largest", s.dice.Below(2)}});
  s.Keep(best[0]);
}

void DrawRecurrent(Sketch& s) {
  const Value x = s.AsRank(s.Any(), 3);
  if (!x.valid() || s.elements(x) > 48) return;
  const int64_t kind = s.dice.Below(3), hidden = s.dice.From(1, 3);
  const int64_t gates = kind == 0 ? 4 : kind == 1 ? 3 : 1, count = s.extent(x, 1);
  const Value projected = s.Op("matmul", {x, s.Parameter({s.dims(x).back(), gates * hidden}, 0.8),
                                          s.Parameter({gates * hidden})});
  const Value r = s.Parameter({gates * hidden, hidden}, 0.7);
  const Value h = s.dice.Percent(50) ? s.Parameter({count, hidden}) : s.Frozen({count, hidden});
  AttrMap attrs = {{"reverse", s.dice.Below(2)}};
  if (kind == 0) {
    attrs["gates"] = std::string(s.dice.Percent(50) ? "ifgo" : "iofg");
    const std::vector<Value> made =
        s.Outputs("lstm", {projected, r, h, s.Parameter({count, hidden})}, attrs);
    s.Keep(made[0]);
    if (s.dice.Percent(30)) s.Keep(made[1]);
  } else if (kind == 1) {
    attrs["gates"] = std::string(s.dice.Percent(50) ? "rzn" : "zrn");
    const Value bias = s.dice.Percent(50) ? s.Parameter({hidden}) : Sketch::Absent();
    s.Keep(s.Outputs("gru", {projected, r, h, bias}, attrs)[0]);
  } else {
    attrs["relu"] = s.dice.Below(2);
    s.Keep(s.Op("rnn", {projected, r, h}, attrs));
  }
}

void DrawRandom(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  if (!x.valid()) return;
  const int64_t stream = s.dice.From(1, 1000);
  if (s.dice.Percent(60)) {
    return s.Keep(
        s.Op("dropout", {x, s.Rng()}, {{"rate", s.dice.Between(0.1, 0.7)}, {"stream", stream}}));
  }
  const char* op = s.dice.Percent(50) ? "random_normal" : "random_uniform";
  const Value noise =
      s.Op(op, {s.Rng()}, {{"dims", s.dims(x)}, {"dtype", "f64"}, {"stream", stream}});
  s.Keep(s.Op(s.dice.Percent(50) ? "add" : "mul", {x, noise}));
}

}  // namespace ridge
